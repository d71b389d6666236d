#include "os/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "os/error.h"
#include "os/file.h"

namespace ringfence::os {

Result<UniqueFd> MakeMemoryFile(std::string_view name, ByteView bytes) {
  UniqueFd fd(memfd_create(std::string(name).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) {
    return ErrnoError("make memory file");
  }
  RINGFENCE_TRY(WriteAll(fd.get(), bytes));
  if (lseek(fd.get(), 0, SEEK_SET) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return ErrnoError("seal memory file");
  }
  return fd;
}

Result<Bytes> ReadMemoryFile(int fd, std::size_t bytes_max) {
  Bytes bytes;
  std::array<std::byte, 65536> chunk{};
  for (;;) {
    const ssize_t got = pread(fd, chunk.data(), chunk.size(), static_cast<off_t>(bytes.size()));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return ErrnoError("read memory file");
    }
    if (got == 0) {
      return bytes;
    }
    if (bytes.size() + static_cast<std::size_t>(got) > bytes_max) {
      return Error{Code::kExhausted, "memory file is longer than allowed"};
    }
    Append(bytes, ByteView(chunk).first(static_cast<std::size_t>(got)));
  }
}

Result<Pipe> MakePipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) {
    return ErrnoError("make pipe");
  }
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace ringfence::os

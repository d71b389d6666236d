#include "os/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "os/error.h"

namespace ringfence::os {

Result<UniqueFd> OpenKernelLog() {
  UniqueFd fd(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) {
    return ErrnoError("open /dev/kmsg");
  }
  if (lseek(fd.get(), 0, SEEK_END) < 0) {
    return ErrnoError("read /dev/kmsg");
  }
  return fd;
}

std::optional<std::string> NextKernelMessage(int fd) {
  std::array<char, 8192> record{};
  ssize_t got = 0;
  do {
    got = read(fd, record.data(), record.size());
  } while (got < 0 && (errno == EPIPE || errno == EINTR));
  if (got <= 0) {
    return std::nullopt;
  }
  // "6,1234,567890,-;text\n KEY=value\n"
  const std::string_view whole(record.data(), static_cast<std::size_t>(got));
  const std::size_t begin = whole.find(';');
  if (begin == std::string_view::npos) {
    return std::string();
  }
  const std::string_view text = whole.substr(begin + 1);
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace ringfence::os

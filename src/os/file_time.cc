#include "os/file_time.h"

#include <sys/stat.h>

#include "os/error.h"

namespace ringfence::os {

Result<FileStamp> StampOf(const std::string& path) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0) {
    return ErrnoError("look at " + path);
  }
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  return FileStamp{static_cast<std::uint64_t>(facts.st_size),
                   facts.st_mtim.tv_sec * kNanoseconds + facts.st_mtim.tv_nsec, facts.st_ino};
}

}  // namespace ringfence::os

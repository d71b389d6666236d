// The C library's calls that a test can spoil, for the whole program and the libraries in it:
// SQLite writes through these, and OpenSSL judges certificates by this clock.

#include "os/failpoint.h"

// Not under the thread sanitizer, which follows descriptors by intercepting these itself.
#if defined(RINGFENCE_FAILPOINTS) && !defined(__SANITIZE_THREAD__)

#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>

namespace failpoint = ringfence::os::failpoint;

namespace {

bool IsPlain(int fd) {
  struct stat facts{};
  return fstat(fd, &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode));
}

// What to fail a call on this file with; 0: let it through.
int Spoiled(int fd, std::size_t index) {
  if (failpoint::TableFd() < 0) {
    return 0;
  }
  const int saved = errno;
  const int number = IsPlain(fd) ? failpoint::Hit(index) : 0;
  errno = number > 0 ? number : saved;
  return number;
}

}  // namespace

extern "C" {

int fsync(int fd) {
  return Spoiled(fd, failpoint::IndexOf("disk.sync")) != 0
             ? -1
             : static_cast<int>(syscall(SYS_fsync, fd));
}

int fdatasync(int fd) {
  return Spoiled(fd, failpoint::IndexOf("disk.sync")) != 0
             ? -1
             : static_cast<int>(syscall(SYS_fdatasync, fd));
}

ssize_t write(int fd, const void* bytes, size_t size) {
  const int spoiled = Spoiled(fd, failpoint::IndexOf("disk.write"));
  if (spoiled == failpoint::kTorn) {
    (void)!syscall(SYS_write, fd, bytes, size / 2);
    failpoint::Die();
  }
  return spoiled != 0 ? -1 : syscall(SYS_write, fd, bytes, size);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  const int spoiled = Spoiled(fd, failpoint::IndexOf("disk.write"));
  if (spoiled == failpoint::kTorn) {
    (void)!syscall(SYS_pwrite64, fd, bytes, size / 2, offset);
    failpoint::Die();
  }
  return spoiled != 0 ? -1 : syscall(SYS_pwrite64, fd, bytes, size, offset);
}

int rename(const char* from, const char* to) noexcept {
  const int number =
      failpoint::TableFd() < 0 ? 0 : failpoint::Hit(failpoint::IndexOf("disk.rename"));
  if (number > 0) {
    errno = number;
    return -1;
  }
  return static_cast<int>(syscall(SYS_rename, from, to));
}

time_t time(time_t* into) noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  if (into != nullptr) {
    *into = seconds;
  }
  return seconds;
}

}  // extern "C"

namespace std::chrono {
inline namespace _V2 {

system_clock::time_point system_clock::now() noexcept {
  timespec time{};
  (void)clock_gettime(CLOCK_REALTIME, &time);
  const milliseconds offset(failpoint::ClockOffsetMillis());
  return time_point(
      duration_cast<duration>(seconds(time.tv_sec) + nanoseconds(time.tv_nsec) + offset));
}

}  // namespace _V2
}  // namespace std::chrono

#endif

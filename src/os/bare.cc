#include "os/bare.h"

#include <unistd.h>

#include <cerrno>

#include "os/error.h"

namespace ringfence::os {

Status LeaveEnvironment(char** arguments) {
  if (environ == nullptr || environ[0] == nullptr) {
    return {};
  }
  char* const nothing[] = {nullptr};
  (void)execve("/proc/self/exe", arguments, nothing);
  return ErrnoError("start anew without an environment");
}

Result<std::string> ReadInput(std::size_t bytes_max) {
  std::string text;
  char chunk[16384];
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return ErrnoError("read standard input");
    }
    if (got == 0) {
      return text;
    }
    text.append(chunk, static_cast<std::size_t>(got));
    if (text.size() > bytes_max) {
      return Error{Code::kExhausted,
                   "standard input is longer than " + std::to_string(bytes_max) + " bytes"};
    }
  }
}

}  // namespace ringfence::os

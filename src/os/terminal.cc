#include "os/terminal.h"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include "os/error.h"
#include "os/file.h"

namespace ringfence::os {
namespace {

// Byte by byte, so that Ctrl-C is a byte too and the terminal is always put back.
class Silent {
 public:
  explicit Silent(int fd) : fd_(fd), good_(tcgetattr(fd, &before_) == 0) {
    if (good_) {
      termios quiet = before_;
      quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG);
      quiet.c_cc[VMIN] = 1;
      quiet.c_cc[VTIME] = 0;
      good_ = tcsetattr(fd, TCSAFLUSH, &quiet) == 0;
    }
  }
  ~Silent() {
    if (good_) {
      (void)tcsetattr(fd_, TCSAFLUSH, &before_);
    }
  }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;
  bool good() const { return good_; }

 private:
  int fd_;
  termios before_{};
  bool good_;
};

}  // namespace

Result<SecretBytes> AskSecret(const std::string& prompt, std::size_t bytes_max) {
  const UniqueFd tty(open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!tty.valid()) {
    return Error{Code::kFailedPrecondition, "there is no terminal to ask at"};
  }
  Bytes typed;
  typed.reserve(bytes_max);  // never moved: nothing of it is left behind
  Status status = WriteAll(tty.get(), AsBytes(prompt));
  const Silent silent(tty.get());
  if (status.has_value() && !silent.good()) {
    status = ErrnoError("switch the terminal's echo off");
  }
  while (status.has_value()) {
    std::byte key{};
    const auto got = ReadSome(tty.get(), std::span(&key, 1));
    const char c = std::to_integer<char>(key);
    if (!got.has_value()) {
      status = got.error();
    } else if (*got == 0 || c == 3 || c == 4) {
      status = Error{Code::kUnavailable, "no passphrase was given"};
    } else if (c == '\n' || c == '\r') {
      break;
    } else if (c == 127 || c == 8) {
      if (!typed.empty()) {
        typed.pop_back();
      }
    } else if (c == 21) {
      typed.clear();
    } else if (typed.size() == bytes_max) {
      status = Error{Code::kInvalidArgument, "the passphrase is too long"};
    } else {
      typed.push_back(key);
    }
  }
  (void)WriteAll(tty.get(), AsBytes("\n"));
  SecretBytes secret(std::move(typed));
  if (!status.has_value()) {
    return status.error();
  }
  return secret;
}

}  // namespace ringfence::os

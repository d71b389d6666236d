#pragma once

// What attacks share.

#include <functional>
#include <string>
#include <vector>

#include "probe.h"

namespace ringfence::probe {

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  int release();

 private:
  int fd_;
};

// Up to `bytes_max` bytes of a file. False, with errno, when it cannot be opened or read.
bool ReadFile(const std::string& path, std::size_t bytes_max, std::string& into);
std::string ReadUpTo(int fd, std::size_t bytes_max);           // until its end
std::vector<std::string> ListFolder(const std::string& path);  // names, none on an error
// A file of the secret's bytes, readable to all. False, with errno.
bool WriteFile(const std::string& path, const std::string& bytes, unsigned mode = 0644);

// Runs `attack` in a process of its own, which may change its namespaces or die.
Outcome InChild(const std::function<Outcome()>& attack);

// The victim's process as our /proc shows it; none when it does not. `seen`: processes there.
struct Target {
  int pid = 0;  // 0: not there
  int seen = 0;
};
Target FindVictim(const Input& input);
Outcome NotVisible(const Target& target);

}  // namespace ringfence::probe

#include "util.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ringfence::probe {

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
Fd::~Fd() {
  if (fd_ >= 0) {
    (void)close(fd_);
  }
}
int Fd::release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

std::string ReadUpTo(int fd, std::size_t bytes_max) {
  std::string text;
  char chunk[4096];
  while (text.size() < bytes_max) {
    const ssize_t got = read(fd, chunk, std::min(sizeof chunk, bytes_max - text.size()));
    if (got <= 0) {
      break;
    }
    text.append(chunk, static_cast<std::size_t>(got));
  }
  return text;
}

bool ReadFile(const std::string& path, std::size_t bytes_max, std::string& into) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.ok()) {
    return false;
  }
  errno = 0;
  into = ReadUpTo(fd.get(), bytes_max);
  return errno == 0 || !into.empty();
}

std::vector<std::string> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  DIR* const folder = opendir(path.c_str());
  if (folder == nullptr) {
    return names;
  }
  while (const dirent* entry = readdir(folder)) {
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) {
      names.emplace_back(entry->d_name);
    }
  }
  (void)closedir(folder);
  return names;
}

bool WriteFile(const std::string& path, const std::string& bytes, unsigned mode) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  return fd.ok() && fchmod(fd.get(), mode) == 0 &&
         write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

Outcome InChild(const std::function<Outcome()>& attack) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return CannotTry("pipe: " + Words(errno));
  }
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  const pid_t child = fork();
  if (child < 0) {
    return CannotTry("fork: " + Words(errno));
  }
  if (child == 0) {
    const Outcome outcome = attack();
    const std::string said =
        std::string(1, static_cast<char>('0' + static_cast<int>(outcome.result))) +
        std::to_string(outcome.leaked_bytes) + " " + outcome.detail;
    (void)!write(writer.get(), said.data(), said.size());
    _exit(0);
  }
  writer = Fd();
  const std::string said = ReadUpTo(reader.get(), 65536);
  (void)waitpid(child, nullptr, 0);
  const std::size_t space = said.find(' ');
  if (said.empty() || space == std::string::npos) {
    return CannotTry("the attack's process ended without a word");
  }
  return {static_cast<Outcome::Result>(said[0] - '0'), std::stoull(said.substr(1, space - 1)),
          said.substr(space + 1)};
}

Target FindVictim(const Input& input) {
  Target target;
  const std::int64_t wanted = input.Number("pid");
  for (const std::string& name : ListFolder("/proc")) {
    if (name[0] < '1' || name[0] > '9') {
      continue;
    }
    ++target.seen;
    std::string words;
    // Another namespace's number may be one of our own here: its command line tells.
    if (name == std::to_string(wanted) && wanted != getpid() &&
        ReadFile("/proc/" + name + "/cmdline", 65536, words) &&
        words.find(std::string("\0victim\0", 8)) != std::string::npos) {
      target.pid = static_cast<int>(wanted);
    }
  }
  return target;
}

Outcome NotVisible(const Target& target) {
  return Held("/proc shows " + std::to_string(target.seen) +
              " processes, and none of them is the victim");
}

}  // namespace ringfence::probe

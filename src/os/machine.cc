#include "os/machine.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "os/error.h"
#include "os/file.h"

namespace ringfence::os {
namespace {

constexpr std::size_t kSmallBytesMax = 64 * 1024;
constexpr std::size_t kCommandLineBytesMax = 256 * 1024;

Status BindTo(int family, const sockaddr* address, socklen_t bytes) {
  const UniqueFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  // As the server does: an address that old connections still linger on is free.
  if (!fd.valid() || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd.get(), address, bytes) != 0 || listen(fd.get(), 1) != 0) {
    return ErrnoError("listen");
  }
  return {};
}

}  // namespace

Result<DiskRoom> RoomAt(const std::string& path) {
  struct statvfs facts{};
  if (statvfs(path.c_str(), &facts) != 0) {
    return ErrnoError("look at the file system of " + path);
  }
  const std::uint64_t block = facts.f_frsize;
  return DiskRoom{facts.f_bavail * block, facts.f_blocks * block, facts.f_favail, facts.f_files,
                  (facts.f_flag & ST_RDONLY) != 0};
}

Result<Memory> MemoryNow() {
  RINGFENCE_ASSIGN(const std::string text, ReadText("/proc/meminfo", kSmallBytesMax));
  Memory memory;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kibibytes = 0;
    words >> name >> kibibytes;
    if (name == "MemTotal:") {
      memory.total_bytes = kibibytes << 10U;
    } else if (name == "MemAvailable:") {
      memory.available_bytes = kibibytes << 10U;
    }
  }
  return memory;
}

ClockSync ClockSynchronised() {
  timex facts{};
  if (adjtimex(&facts) < 0) {
    return ClockSync::kUnknown;
  }
  return (facts.status & STA_UNSYNC) != 0 ? ClockSync::kNo : ClockSync::kYes;
}

Status TryListen(const std::string& ip, std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (inet_pton(AF_INET, ip.c_str(), &v4.sin_addr) == 1) {
    return BindTo(AF_INET, reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (inet_pton(AF_INET6, ip.c_str(), &v6.sin6_addr) == 1) {
    return BindTo(AF_INET6, reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  }
  return Error{Code::kInvalidArgument, ip + " is not a numeric address"};
}

std::vector<Process> ProcessesNamed(const std::string& name) {
  std::vector<Process> found;
  const auto entries = ListDir("/proc");
  for (const std::string& entry : entries.has_value() ? *entries : std::vector<std::string>()) {
    Process process;
    const auto [end, wrong] =
        std::from_chars(entry.data(), entry.data() + entry.size(), process.pid);
    if (wrong != std::errc{} || end != entry.data() + entry.size()) {
      continue;
    }
    const auto line = ReadText("/proc/" + entry + "/cmdline", kCommandLineBytesMax);
    if (!line.has_value()) {
      continue;
    }
    std::istringstream words(*line);
    for (std::string word; std::getline(words, word, '\0');) {
      process.arguments.push_back(word);
    }
    if (!process.arguments.empty() &&
        process.arguments[0].substr(process.arguments[0].rfind('/') + 1) == name) {
      found.push_back(std::move(process));
    }
  }
  return found;
}

}  // namespace ringfence::os

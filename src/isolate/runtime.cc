#include "isolate/runtime.h"

#include <array>
#include <charconv>
#include <vector>

#include "os/file.h"
#include "os/memory_file.h"
#include "os/process.h"

namespace ringfence::isolate {
namespace {

struct Candidate {
  const char* path;
  const char* name;
  const char* least;
};

constexpr Candidate kCandidates[] = {
    {"/usr/sbin/runc", "runc", "1.1.5"},
    {"/usr/bin/runc", "runc", "1.1.5"},
    {"/usr/local/sbin/runc", "runc", "1.1.5"},
};

constexpr std::size_t kVersionTextBytesMax = 4096;

// The third word of "runc version 1.1.5+ds1".
Result<std::string> AskVersion(const char* path) {
  RINGFENCE_ASSIGN(os::Pipe out, os::MakePipe());
  os::SpawnOptions spawn;
  spawn.path = path;
  spawn.arguments = {path, "--version"};
  spawn.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  spawn.fds = {{out.write.get(), 1}};
  RINGFENCE_ASSIGN(const int pid, os::Spawn(spawn));
  out.write.Reset();
  std::array<std::byte, kVersionTextBytesMax> text{};
  const auto got = os::ReadSome(out.read.get(), text);
  const os::Ended ended = os::WaitFor(pid);
  if (!got.has_value() || ended.signalled || ended.code != 0) {
    return Error{Code::kUnavailable, std::string(path) + " --version failed"};
  }
  std::string line = ToText(ByteView(text).first(*got));
  line = line.substr(0, line.find('\n'));
  const std::size_t at = line.find("version ");
  if (at == std::string::npos) {
    return Error{Code::kUnavailable, std::string(path) + " --version says no version"};
  }
  line = line.substr(at + 8);
  return line.substr(0, line.find_first_of("+ "));
}

std::array<int, 3> Numbers(const std::string& version) {
  std::array<int, 3> numbers{};
  const char* at = version.data();
  const char* const end = at + version.size();
  for (int& number : numbers) {
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '.') {
      break;
    }
    at = parsed.ptr + 1;
  }
  return numbers;
}

}  // namespace

bool VersionAtLeast(const std::string& version, const std::string& least) {
  return Numbers(version) >= Numbers(least);
}

Result<Runtime> FindRuntime() {
  std::string too_old;
  for (const Candidate& candidate : kCandidates) {
    if (!os::Exists(candidate.path)) {
      continue;
    }
    RINGFENCE_ASSIGN(const std::string version, AskVersion(candidate.path));
    if (VersionAtLeast(version, candidate.least)) {
      return Runtime{candidate.path, candidate.name, version};
    }
    too_old =
        std::string(candidate.path) + " is version " + version + ", needed is " + candidate.least;
  }
  return Error{Code::kNotFound, too_old.empty() ? "runc is not installed" : too_old,
               "apt-get install runc"};
}

}  // namespace ringfence::isolate

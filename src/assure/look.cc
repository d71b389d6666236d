// What there is to see on this machine.

#include <algorithm>
#include <charconv>
#include <sstream>

#include "assure/doctor.h"
#include "isolate/box_config.h"
#include "isolate/runtime.h"
#include "net/address.h"
#include "os/capture.h"
#include "os/file.h"
#include "os/identity.h"
#include "os/privileges.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kSmallBytesMax = 64 * 1024;
constexpr std::size_t kListBytesMax = std::size_t{16} << 20U;
constexpr unsigned kDaemonIds = 5;  // below the boxes': worker, server, agent, image, resolver
constexpr unsigned kSlots = 1024;

// The nearest folder above that exists: where the state would be made.
std::string Existing(std::string path) {
  while (!path.empty() && !os::Exists(path)) {
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return path.empty() ? "/" : path;
}

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

void SeeRuntime(Seen& seen, const std::string& advisories_file) {
  const auto runtime = isolate::FindRuntime();
  if (!runtime.has_value()) {
    seen.runtime_error = runtime.error().message;
    return;
  }
  seen.runtime_path = runtime->path;
  seen.runtime.upstream = runtime->version;
  // A runtime that somebody put elsewhere is not the package's.
  if (runtime->path.starts_with("/usr/sbin/") || runtime->path.starts_with("/usr/bin/")) {
    const auto package = os::Capture(
        {"/usr/bin/dpkg-query", "-W", "-f", "${Version}", runtime->name}, kSmallBytesMax);
    seen.runtime.package = package.has_value() ? Trimmed(*package) : "";
    const auto changelog = os::Capture(
        {"/usr/bin/gzip", "-dc", "/usr/share/doc/" + runtime->name + "/changelog.Debian.gz"},
        kListBytesMax);
    seen.runtime.changelog = changelog.has_value() ? *changelog : "";
  }
  const auto text = os::ReadText(advisories_file, kListBytesMax);
  auto advisories = text.has_value() ? ParseAdvisories(*text, advisories_file) : text.error();
  if (advisories.has_value()) {
    seen.advisories = std::move(advisories).value();
  } else {
    seen.advisories_error = advisories.error().message;
  }
}

bool Number(const std::string& text, std::uint64_t& number) {
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  return wrong == std::errc{} && end == text.data() + text.size();
}

std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ':');) {
    fields.push_back(field);
  }
  return fields;
}

// Accounts (name:x:UID:...) and delegated ranges (name:FIRST:COUNT) within ours.
void SeeUserIds(Seen& seen, unsigned uid_base) {
  seen.uid_first = uid_base - kDaemonIds;
  seen.uid_last = uid_base + kSlots * isolate::kBoxUidCount - 1;
  for (const bool ranges : {false, true}) {
    const auto text = os::ReadText(ranges ? "/etc/subuid" : "/etc/passwd", kListBytesMax);
    std::istringstream lines(text.has_value() ? *text : "");
    for (std::string line; std::getline(lines, line);) {
      const std::vector<std::string> fields = Fields(line);
      std::uint64_t first = 0;
      std::uint64_t count = 1;
      if (fields.size() < 3 || !Number(fields[ranges ? 1 : 2], first) ||
          (ranges && !Number(fields[2], count)) || count == 0) {
        continue;
      }
      if (first <= seen.uid_last && first + count - 1 >= seen.uid_first) {
        seen.uid_accounts.push_back((ranges ? "the range of " : "account ") + fields[0]);
      }
    }
  }
}

std::string After(const std::vector<std::string>& words, std::string_view option) {
  const auto found = std::find(words.begin(), words.end(), option);
  return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
}

void SeeOtherNodes(Seen& seen, const LookOptions& options) {
  for (const os::Process& process : os::ProcessesNamed("ringfence-jailer")) {
    const std::string state = After(process.arguments, "--state");
    if (After(process.arguments, "--uid-base") == std::to_string(options.uid_base) &&
        !state.starts_with(options.state + "/") &&
        std::find(seen.uid_sharers.begin(), seen.uid_sharers.end(), state) ==
            seen.uid_sharers.end()) {
      seen.uid_sharers.push_back(state);
    }
  }
}

bool HasLibrary(const std::string& name) {
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                             "/usr/lib64", "/usr/lib", "/usr/local/lib"}) {
    if (os::Exists(std::string(folder) + "/" + name)) {
      return true;
    }
  }
  return false;
}

void SeeDriver(Seen& seen) {
  const auto version = os::ReadText("/proc/driver/nvidia/version", kSmallBytesMax);
  seen.driver = version.has_value();
  if (!seen.driver) {
    return;
  }
  seen.driver_version = version->substr(0, version->find('\n'));
  for (const char* file : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"}) {
    if (!os::Exists(file)) {
      seen.driver_missing.emplace_back(file);
    }
  }
  for (const char* library : {"libnvidia-ml.so.1", "libcuda.so.1"}) {
    if (!HasLibrary(library)) {
      seen.driver_missing.emplace_back(library);
    }
  }
  const auto params = os::ReadText("/proc/driver/nvidia/params", kSmallBytesMax);
  std::istringstream lines(params.has_value() ? *params : "");
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kName = "RmProfilingAdminOnly: ";
    if (line.starts_with(kName)) {
      seen.profiling_admin_only = Trimmed(line.substr(kName.size()));
    }
  }
}

void SeeAddress(Seen& seen, const std::string& server_listens) {
  const auto address = net::ParseAddress(seen.listen);
  if (!address.has_value()) {
    seen.listen_error = address.error().message;
    return;
  }
  const std::string ip = address->host == "localhost" ? "127.0.0.1" : address->host;
  const Status free = os::TryListen(ip, address->port);
  if (!free.has_value()) {
    seen.listen_error = free.error().message;
    // By the port: it may listen on every address, and be known by one of them.
    const auto ours = net::ParseAddress(server_listens);
    seen.listen_is_ours =
        free.error().code == Code::kConflict && ours.has_value() && ours->port == address->port;
  }
}

}  // namespace

Seen Look(const LookOptions& options) {
  Seen seen;
  seen.now = options.now;
  seen.root = os::IsRoot();
  seen.kernel = seen.root ? isolate::ProbeKernel() : isolate::ProbeCalls();
  seen.clock = os::ClockSynchronised();
  if (const auto memory = os::MemoryNow(); memory.has_value()) {
    seen.memory = *memory;
  }
  seen.state = options.state;
  seen.state_trust = options.state_trust;
  if (const auto disk = os::RoomAt(Existing(options.state)); disk.has_value()) {
    seen.disk = *disk;
  }
  seen.listen = options.listen;
  SeeAddress(seen, options.server_listens);
  seen.open_files = os::HardLimit(os::Limit::kOpenFiles);
  SeeRuntime(seen, options.advisories_file);
  for (const std::string& program : options.programs) {
    if (!os::Exists(program)) {
      seen.programs_missing.push_back(program);
    }
  }
  SeeUserIds(seen, options.uid_base);
  SeeOtherNodes(seen, options);
  SeeDriver(seen);
  return seen;
}

}  // namespace ringfence::assure

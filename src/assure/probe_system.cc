// Probes of the running system and of what is installed.

#include <algorithm>
#include <map>

#include "assure/probe.h"

namespace ringfence::assure {
namespace {

bool IsNumber(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool MatchesAny(const std::vector<std::string>& patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [text](const std::string& pattern) { return GlobMatches(pattern, text); });
}

int HexValue(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                : -1;
}

// "0100007F" -> "127.0.0.1"; the long form is IPv6.
std::string AddressText(std::string_view hex) {
  if (hex.size() != 8 && hex.size() != 32) {
    return "";
  }
  std::vector<int> bytes;
  for (std::size_t word = 0; word < hex.size(); word += 8) {
    for (std::size_t i = 0; i < 4; ++i) {  // each word is little-endian
      const std::size_t at = word + 6 - 2 * i;
      const int value = HexValue(hex[at]) * 16 + HexValue(hex[at + 1]);
      bytes.push_back(value);
    }
  }
  if (bytes.size() == 4) {
    return std::to_string(bytes[0]) + "." + std::to_string(bytes[1]) + "." +
           std::to_string(bytes[2]) + "." + std::to_string(bytes[3]);
  }
  if (std::all_of(bytes.begin(), bytes.end(), [](int b) { return b == 0; })) {
    return "::";
  }
  if (bytes.back() == 1 &&
      std::all_of(bytes.begin(), bytes.end() - 1, [](int b) { return b == 0; })) {
    return "::1";
  }
  const bool mapped =
      std::all_of(bytes.begin(), bytes.begin() + 10, [](int b) { return b == 0; }) &&
      bytes[10] == 255 && bytes[11] == 255;
  if (mapped) {
    return std::to_string(bytes[12]) + "." + std::to_string(bytes[13]) + "." +
           std::to_string(bytes[14]) + "." + std::to_string(bytes[15]);
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    out += i == 0 ? "" : ":";
    for (const int byte : {bytes[i], bytes[i + 1]}) {
      out += kDigits[static_cast<std::size_t>(byte) >> 4U & 15U];
      out += kDigits[static_cast<std::size_t>(byte) & 15U];
    }
  }
  return out;
}

// The listening sockets of one table of /proc/net.
void ReadSockets(std::string_view table, const ProbeSpec& probe, Observed& seen) {
  const auto lines = SplitLines(table);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto fields = SplitFields(lines[i]);
    if (fields.size() < 4 || fields[3] != "0A") {
      continue;
    }
    const std::size_t colon = fields[1].find(':');
    if (colon == std::string_view::npos || fields[1].size() != colon + 5) {
      continue;
    }
    unsigned port = 0;
    for (const char c : fields[1].substr(colon + 1)) {
      port = port * 16 + static_cast<unsigned>(std::max(0, HexValue(c)));
    }
    const bool wanted = probe.ports.empty() || std::find(probe.ports.begin(), probe.ports.end(),
                                                         port) != probe.ports.end();
    const std::string address = AddressText(fields[1].substr(0, colon));
    if (wanted && !address.empty()) {
      seen.values.push_back({"tcp " + address + " port " + std::to_string(port), address});
    }
  }
}

}  // namespace

Observed ObserveProcess(const ProbeSpec& probe, const ProbeContext& context) {
  const auto names = context.machine.List("/proc");
  if (!names.has_value()) {
    return Observed::Unknown("no processes can be seen: " + names.error().message);
  }
  Observed seen;
  bool any = false;
  for (const std::string& pid : *names) {
    if (!IsNumber(pid)) {
      continue;
    }
    const auto comm = context.machine.Read("/proc/" + pid + "/comm", 4096);
    if (!comm.has_value()) {
      continue;  // it has ended since, or it is not ours to see
    }
    any = true;
    const std::string_view name = Trim(*comm);
    if (!MatchesAny(probe.names, name)) {
      continue;
    }
    auto line = context.machine.Read("/proc/" + pid + "/cmdline", kProbeBytesMax);
    std::string words = line.has_value() ? std::move(*line) : std::string();
    std::replace(words.begin(), words.end(), '\0', ' ');
    seen.values.push_back(
        {"process " + pid + " (" + std::string(name) + ")", std::string(Trim(words))});
  }
  return any ? seen : Observed::Unknown("no processes can be seen");
}

Observed ObserveSocket(const ProbeSpec& probe, const ProbeContext& context) {
  Observed seen;
  bool any = false;
  for (const char* folder : {"/proc/net", "/proc/1/net"}) {
    for (const char* table : {"/tcp", "/tcp6"}) {
      const auto text = context.machine.Read(std::string(folder) + table, kProbeBytesMax);
      if (text.has_value()) {
        any = true;
        ReadSockets(*text, probe, seen);
      }
    }
    if (any) {
      return seen;
    }
  }
  return Observed::Unknown("the table of sockets, /proc/net/tcp, cannot be read");
}

Observed ObservePackage(const ProbeSpec& probe, const ProbeContext& context) {
  const auto text = context.machine.Read("/var/lib/dpkg/status", std::size_t{64} << 20U);
  if (!text.has_value()) {
    return Observed::Unknown("no list of Debian packages: " + text.error().message);
  }
  Observed seen;
  std::string_view name;
  bool installed = false;
  for (const std::string_view line : SplitLines(*text)) {
    if (line.empty()) {
      installed = false;
      name = {};
    } else if (line.starts_with("Package: ")) {
      name = Trim(line.substr(9));
    } else if (line.starts_with("Status: ")) {
      installed = line.find("ok installed") != std::string_view::npos;
    } else if (line.starts_with("Version: ") && installed && MatchesAny(probe.names, name)) {
      seen.values.push_back({"package " + std::string(name), std::string(Trim(line.substr(9)))});
    }
  }
  if (seen.values.empty() && probe.get != "list") {
    return Observed::Absent("package " + (probe.names.empty() ? "" : probe.names.front()) +
                            " is not installed");
  }
  return seen;
}

Observed ObserveUnit(const ProbeSpec& probe, const ProbeContext& context) {
  if (!context.machine.Look("/etc/systemd/system").has_value() &&
      !context.machine.Look("/usr/lib/systemd/system").has_value() &&
      !context.machine.Look("/lib/systemd/system").has_value()) {
    return Observed::Unknown("no units of systemd can be seen");
  }
  Observed seen;
  for (const std::string& unit : probe.names) {
    const auto link = context.machine.Link("/etc/systemd/system/" + unit);
    if (link.has_value() && *link == "/dev/null") {
      seen.values.push_back({"unit " + unit, "masked"});
      continue;
    }
    bool enabled = false;
    for (const char* folder :
         {"/etc/systemd/system/*.wants/", "/etc/systemd/system/*.requires/",
          "/usr/lib/systemd/system/*.wants/", "/run/systemd/system/*.wants/"}) {
      const std::size_t star = std::string(folder).find('*');
      const std::string base = std::string(folder).substr(0, star - 1);
      const auto names = context.machine.List(base);
      for (std::size_t i = 0; names.has_value() && i < names->size(); ++i) {
        if (GlobMatches(std::string(folder).substr(star, std::string(folder).size() - star - 1),
                        (*names)[i])) {
          // The link's target need not be in a captured root.
          const auto here = context.machine.List(base + "/" + (*names)[i]);
          enabled = enabled || (here.has_value() &&
                                std::find(here->begin(), here->end(), unit) != here->end());
        }
      }
    }
    const bool present = context.machine.Look("/lib/systemd/system/" + unit).has_value() ||
                         context.machine.Look("/usr/lib/systemd/system/" + unit).has_value() ||
                         context.machine.Look("/etc/systemd/system/" + unit).has_value();
    if (enabled || present) {
      seen.values.push_back({"unit " + unit, enabled ? "enabled" : "disabled"});
    }
  }
  return seen.values.empty() ? Observed::Absent("there is no unit " + probe.names.front()) : seen;
}

Observed ObserveMount(const ProbeSpec& probe, const ProbeContext& context) {
  auto text = context.machine.Read("/proc/mounts", kProbeBytesMax);
  text =
      text.has_value() ? std::move(text) : context.machine.Read("/proc/1/mounts", kProbeBytesMax);
  if (!text.has_value()) {
    return Observed::Unknown("the table of mounts, /proc/mounts, cannot be read");
  }
  Observed seen;
  for (const std::string_view line : SplitLines(*text)) {
    const auto fields = SplitFields(line);
    if (fields.size() < 4 ||
        !MatchesAny(probe.names, probe.get == "type" ? fields[2] : fields[1])) {
      continue;
    }
    seen.values.push_back({"mount " + std::string(fields[1]), "," + std::string(fields[3]) + ","});
  }
  return seen.values.empty() && probe.get != "type"
             ? Observed::Absent(probe.names.front() + " is no mount of its own")
             : seen;
}

Observed ObserveAccount(const ProbeSpec& probe, const ProbeContext& context) {
  const std::string path = probe.get == "empty_password" ? "/etc/shadow"
                           : probe.get == "members"      ? "/etc/group"
                                                         : "/etc/passwd";
  const TextOrSeen text = ReadFor(context, path);
  if (!text.ok) {
    return Observed::Unknown(text.seen.why);
  }
  Observed seen;
  for (const std::string_view line : SplitLines(text.text)) {
    std::vector<std::string_view> fields;
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t end = std::min(line.find(':', at), line.size());
      fields.push_back(line.substr(at, end - at));
      at = end + 1;
    }
    if (fields.size() < 4) {
      continue;
    }
    const std::string name(fields[0]);
    const bool found = (probe.get == "uid0" && fields[2] == "0" && name != "root") ||
                       (probe.get == "empty_password" && fields[1].empty());
    if (found) {
      seen.values.push_back({path, name});
    } else if (probe.get == "members" && MatchesAny(probe.names, name)) {
      for (std::size_t at = 0; at < fields[3].size();) {
        const std::size_t end = std::min(fields[3].find(',', at), fields[3].size());
        seen.values.push_back({path + " " + name, std::string(fields[3].substr(at, end - at))});
        at = end + 1;
      }
    }
  }
  return seen;
}

// A file of each PCI device of a vendor (names) whose class begins with `match`.
Observed ObservePci(const ProbeSpec& probe, const ProbeContext& context) {
  const auto devices = context.machine.List("/sys/bus/pci/devices");
  if (!devices.has_value()) {
    return Observed::Unknown("no PCI devices can be seen: " + devices.error().message);
  }
  Observed seen;
  for (const std::string& device : *devices) {
    const std::string folder = "/sys/bus/pci/devices/" + device;
    const auto vendor = context.machine.Read(folder + "/vendor", 64);
    const auto kind = context.machine.Read(folder + "/class", 64);
    if (!vendor.has_value() || !kind.has_value() || !MatchesAny(probe.names, Trim(*vendor)) ||
        !Trim(*kind).starts_with(probe.match)) {
      continue;
    }
    const std::string path = folder + "/" + probe.key;
    if (probe.get == "exists") {
      seen.values.push_back({path, context.machine.Look(path).has_value() ? "yes" : "no"});
      continue;
    }
    const auto value = context.machine.Read(path, 65536);
    if (value.has_value()) {
      seen.values.push_back({path, std::string(Trim(*value))});
    }
  }
  return seen.values.empty() ? Observed::Absent("there is no such PCI device") : seen;
}

Observed ObserveKernelArgument(const ProbeSpec& probe, const ProbeContext& context) {
  const TextOrSeen text = ReadFor(context, "/proc/cmdline");
  if (!text.ok) {
    return Observed::Unknown(text.seen.why);
  }
  Observed seen;
  for (const std::string_view word : SplitFields(Trim(text.text))) {
    const std::size_t equals = word.find('=');
    if (word.substr(0, equals) == probe.key) {
      seen.values.push_back({"/proc/cmdline", equals == std::string_view::npos
                                                  ? "present"
                                                  : std::string(word.substr(equals + 1))});
    }
  }
  if (seen.values.empty()) {
    seen.values.push_back({"/proc/cmdline", probe.fallback.value_or("absent")});
  }
  return seen;
}

Observed ObserveKernelConfig(const ProbeSpec& probe, const ProbeContext& context) {
  const TextOrSeen release = ReadFor(context, "/proc/sys/kernel/osrelease");
  const std::string path =
      "/boot/config-" + (release.ok ? std::string(Trim(release.text)) : std::string("*"));
  const Found found = FindPaths(context.machine, path);
  if (found.paths.empty()) {
    return Observed::Unknown("the kernel's configuration, " + path + ", is not there");
  }
  const TextOrSeen text = ReadFor(context, found.paths.back());
  if (!text.ok) {
    return Observed::Unknown(text.seen.why);
  }
  const std::string start = probe.key + "=";
  for (const std::string_view line : SplitLines(text.text)) {
    if (line.starts_with(start)) {
      return {Observed::State::kSeen,
              "",
              {{found.paths.back(), std::string(Trim(line.substr(start.size())))}}};
    }
  }
  return {Observed::State::kSeen, "", {{found.paths.back(), "n"}}};
}

// Flaws that the installed version of a product has. The version is the first word of the probe's
// file that looks like one, or that of a Debian package.
Observed ObserveAdvisory(const ProbeSpec& probe, const ProbeContext& context) {
  std::string version;
  std::string where;
  if (!probe.paths.empty()) {
    const TextOrSeen text = ReadFor(context, probe.paths.front());
    if (!text.ok) {
      return text.seen;
    }
    where = probe.paths.front();
    for (const std::string_view word : SplitFields(
             SplitLines(text.text).empty() ? std::string_view() : SplitLines(text.text).front())) {
      if (std::count(word.begin(), word.end(), '.') >= 1 && word.front() >= '0' &&
          word.front() <= '9') {
        version = std::string(word);
        break;
      }
    }
  } else {
    const Observed package = ObservePackage(probe, context);
    if (package.state != Observed::State::kSeen || package.values.empty()) {
      return package;
    }
    version = package.values.front().value;
    where = package.values.front().where;
  }
  if (context.advisories == nullptr) {
    return Observed::Unknown("no bulletins were given (--csaf)");
  }
  const auto query = context.advisories->Ask(probe.key, "Linux", version);
  if (!query.has_value()) {
    return Observed::Unknown(query.error().message);
  }
  Observed seen;
  for (const FlawVerdict& flaw : context.advisories->Match(*query)) {
    if (flaw.verdict == Verdict::kAffected) {
      seen.values.push_back({where + " " + version, flaw.cve + " " + flaw.severity});
    }
  }
  return seen;
}

}  // namespace ringfence::assure

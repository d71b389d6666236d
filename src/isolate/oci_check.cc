#include "isolate/oci_check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "base/json.h"
#include "isolate/names.h"

namespace ringfence::isolate {
namespace {

constexpr std::size_t kPathBytesMax = 4096;
constexpr std::int64_t kPidMost = 0x7fffffff;
constexpr std::int64_t kMajorMost = 0xfff;
constexpr std::int64_t kMinorMost = 0xfffff;
constexpr std::uint32_t kNvidiaMajor = 195;
constexpr std::uint32_t kDrmMajor = 226;
constexpr std::size_t kMountsMax = 10'000;

Error Odd(std::string_view what) {
  return Error{Code::kInvalidArgument, "config.json: " + std::string(what)};
}

// The member of an object, if it is there; null counts as absent.
const Json* Member(const Json* value, std::string_view name) {
  const JsonObject* const object = value == nullptr ? nullptr : value->if_object();
  const Json* const member = object == nullptr ? nullptr : object->if_contains(name);
  return member == nullptr || member->is_null() ? nullptr : member;
}

Result<std::vector<const Json*>> Objects(const Json* list, std::string_view name) {
  std::vector<const Json*> objects;
  if (list == nullptr) {
    return objects;
  }
  const JsonArray* const array = list->if_array();
  if (array == nullptr) {
    return Odd(std::string(name) + " is not a list");
  }
  for (const Json& entry : *array) {
    if (!entry.is_object()) {
      return Odd(std::string(name) + " has an entry that is not an object");
    }
    objects.push_back(&entry);
  }
  return objects;
}

std::string TextOr(const Json* value, std::string_view fallback) {
  const auto* const text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string(fallback) : std::string(text->data(), text->size());
}

// Absent or negative: any.
Result<std::optional<std::uint32_t>> Number(const Json* value, std::int64_t most) {
  if (value == nullptr) {
    return std::optional<std::uint32_t>();
  }
  const std::int64_t* const number = value->if_int64();
  if (number == nullptr || *number > most) {
    return Odd("a device's number is none");
  }
  return *number < 0 ? std::optional<std::uint32_t>()
                     : std::optional<std::uint32_t>(static_cast<std::uint32_t>(*number));
}

std::string Numbers(const AskedDevice& device) {
  return std::to_string(device.major) + ":" +
         (device.minor.has_value() ? std::to_string(*device.minor) : "*");
}

// Where text of strangers is repeated to people.
std::string Shown(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.substr(0, 200);
}

Status ReadDevices(const Json* linux, const std::set<std::uint32_t>& majors,
                   std::vector<AskedDevice>& asked) {
  RINGFENCE_ASSIGN(const auto devices, Objects(Member(linux, "devices"), "linux.devices"));
  for (const Json* device : devices) {
    const std::string type = TextOr(Member(device, "type"), "");
    RINGFENCE_ASSIGN(const auto major, Number(Member(device, "major"), kMajorMost));
    RINGFENCE_ASSIGN(const auto minor, Number(Member(device, "minor"), kMinorMost));
    if (type == "b" || type == "p" || !majors.contains(major.value_or(0))) {
      continue;
    }
    asked.push_back({major.value_or(0), minor.value_or(0), false,
                     "linux.devices: " + Shown(TextOr(Member(device, "path"), "?"))});
  }
  return {};
}

// Rules are taken in their order: one that denies all ends what those before it allowed.
Status ReadRules(const Json* linux, const std::set<std::uint32_t>& majors,
                 std::vector<AskedDevice>& asked) {
  RINGFENCE_ASSIGN(const auto rules, Objects(Member(Member(linux, "resources"), "devices"),
                                             "linux.resources.devices"));
  std::vector<AskedDevice> allowed;
  for (const Json* rule : rules) {
    const Json* const allow = Member(rule, "allow");
    if (allow == nullptr || !allow->is_bool()) {
      return Odd("a device rule neither allows nor denies");
    }
    const std::string type = TextOr(Member(rule, "type"), "a");
    const std::string access = TextOr(Member(rule, "access"), "rwm");
    RINGFENCE_ASSIGN(const auto major, Number(Member(rule, "major"), kMajorMost));
    RINGFENCE_ASSIGN(const auto minor, Number(Member(rule, "minor"), kMinorMost));
    const bool all = type == "a" && !major.has_value() && !minor.has_value();
    if (!allow->get_bool()) {
      if (all && access.find('r') != std::string::npos && access.find('w') != std::string::npos) {
        allowed.clear();
      }
      continue;
    }
    // Making a node of a device that may not be used is no use of it.
    const bool used = access.empty() || access.find_first_of("rw") != std::string::npos;
    if (type == "b" || !used || (major.has_value() && !majors.contains(*major))) {
      continue;
    }
    allowed.push_back({major.value_or(0), minor, !major.has_value(), "linux.resources.devices"});
  }
  asked.insert(asked.end(), allowed.begin(), allowed.end());
  return {};
}

// Our CDI document puts our hook there with the lease's name; nobody but root and the runtime can.
Status ReadLeases(const Json* hooks, std::string_view hook, std::set<std::string>& leases) {
  for (const char* stage : {"prestart", "createRuntime"}) {
    RINGFENCE_ASSIGN(const auto entries, Objects(Member(hooks, stage), "hooks"));
    for (const Json* entry : entries) {
      if (hook.empty() || TextOr(Member(entry, "path"), "") != hook) {
        continue;
      }
      const Json* const list = Member(entry, "args");
      const JsonArray* const words = list == nullptr ? nullptr : list->if_array();
      for (std::size_t i = 0; words != nullptr && i + 1 < words->size(); ++i) {
        if (TextOr(&(*words)[i], "") == "--lease") {
          const std::string lease = TextOr(&(*words)[i + 1], "");
          if (!IsName(lease)) {
            return Odd("our hook's --lease is no lease's id");
          }
          leases.insert(lease);
        }
      }
    }
  }
  return {};
}

// "\040" and the like, as the kernel writes spaces, tabs, line breaks and backslashes.
std::string Unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 4, value, 8).ptr ==
            text.data() + i + 4 &&
        value < 256) {
      out += static_cast<char>(value);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool HasWord(std::string_view list, std::string_view wanted) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == wanted) {
      return true;
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

Result<ContainerState> ReadContainerState(std::string_view text) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kContainerStateBytesMax));
  ContainerState state;
  state.id = TextOr(Member(&json, "id"), "");
  state.bundle = TextOr(Member(&json, "bundle"), "");
  const Json* const pid = Member(&json, "pid");
  const std::int64_t* const number = pid == nullptr ? nullptr : pid->if_int64();
  if (number == nullptr || *number < 2 || *number > kPidMost) {
    return Error{Code::kInvalidArgument, "the container's state names no process",
                 "run this hook at createRuntime or prestart", "pid"};
  }
  state.pid = static_cast<int>(*number);
  if (!IsContainerId(state.id)) {
    return Error{Code::kInvalidArgument, "the container's state has no usable id", {}, "id"};
  }
  if (!state.bundle.starts_with('/') || state.bundle.size() > kPathBytesMax ||
      state.bundle.find('\0') != std::string::npos) {
    return Error{
        Code::kInvalidArgument, "the container's bundle is no absolute path", {}, "bundle"};
  }
  return state;
}

Result<ContainerConfig> ReadContainerConfig(std::string_view text,
                                            const std::set<std::uint32_t>& majors,
                                            std::string_view hook) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kContainerConfigBytesMax));
  if (!json.is_object()) {
    return Odd("is not an object");
  }
  ContainerConfig config;
  config.root = TextOr(Member(Member(&json, "root"), "path"), "");
  if (config.root.empty() || config.root.size() > kPathBytesMax ||
      config.root.find('\0') != std::string::npos) {
    return Odd("root.path is missing or no path");
  }
  const Json* const linux = Member(&json, "linux");
  RINGFENCE_TRY(ReadDevices(linux, majors, config.asked));
  RINGFENCE_TRY(ReadRules(linux, majors, config.asked));
  RINGFENCE_TRY(ReadLeases(Member(&json, "hooks"), hook, config.leases));
  return config;
}

std::set<std::uint32_t> GpuMajors(std::string_view proc_devices) {
  constexpr std::array<std::string_view, 4> kStarts = {"nvidia", "drm", "kfd", "amdgpu"};
  std::set<std::uint32_t> majors = {kNvidiaMajor, kDrmMajor};
  std::istringstream lines{std::string(proc_devices)};
  for (std::string line; std::getline(lines, line) && !line.starts_with("Block");) {
    std::istringstream words(line);
    std::uint32_t major = 0;
    std::string driver;
    if (words >> major >> driver && std::any_of(kStarts.begin(), kStarts.end(), [&](auto start) {
          return driver.starts_with(start);
        })) {
      majors.insert(major);
    }
  }
  return majors;
}

Status CheckCovered(const std::vector<AskedDevice>& asked, const std::vector<HeldLease>& leases) {
  const auto covered = [&leases](const AskedDevice& device) {
    return !device.everything && device.minor.has_value() &&
           std::any_of(leases.begin(), leases.end(), [&](const HeldLease& lease) {
             return std::any_of(lease.nodes.begin(), lease.nodes.end(), [&](const auto& node) {
               return node.major == device.major && node.minor == *device.minor;
             });
           });
  };
  for (const AskedDevice& device : asked) {
    if (covered(device)) {
      continue;
    }
    const std::string what = device.everything ? "every device of the machine, its GPUs too"
                                               : "GPU device " + Numbers(device);
    return Error{Code::kPermissionDenied,
                 "the container asks for " + what + " (" + device.where + "), and no lease that " +
                     "it was started with has it",
                 device.everything
                     ? "start it without --privileged and without rules for all devices"
                     : "start it with --device ringfence.dev/lease=LEASE, and no other GPU; "
                       "`ringfence lease hold` gets a lease"};
  }
  return {};
}

std::vector<std::string> OwnCgroups(std::string_view proc_cgroup, std::string_view container) {
  std::set<std::string> own;
  std::istringstream lines{std::string(proc_cgroup)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.find("/../") != std::string::npos ||
        line.ends_with("/..")) {
      continue;
    }
    const std::string path = line.substr(second + 1);
    // The group named after the container holds all of it; there may be more beneath.
    for (std::size_t at = 0; at != std::string::npos && at < path.size();) {
      const std::size_t end = std::min(path.find('/', at + 1), path.size());
      std::string_view name = std::string_view(path).substr(at + 1, end - at - 1);
      if (name.ends_with(".scope")) {
        name.remove_suffix(6);
      }
      if (name == container || name.ends_with("-" + std::string(container))) {
        own.insert(path.substr(0, end));
        break;
      }
      at = end == path.size() ? std::string::npos : end;
    }
  }
  return {own.begin(), own.end()};
}

Result<std::vector<ContainerMount>> MountsBeneath(std::string_view mountinfo,
                                                  std::string_view root) {
  std::vector<ContainerMount> mounts;
  const std::string inside = root == "/" ? "/" : std::string(root) + "/";
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    std::istringstream words(line.substr(0, dash));
    std::string ignored;
    std::string path;
    std::string options;
    if (dash == std::string::npos ||
        !(words >> ignored >> ignored >> ignored >> ignored >> path >> options)) {
      return Error{Code::kCorrupt, "a line of mountinfo cannot be read"};
    }
    path = Unescaped(path);
    if (HasWord(options, "nodev") || (path != root && !path.starts_with(inside))) {
      continue;
    }
    if (mounts.size() >= kMountsMax) {
      return Error{Code::kExhausted, "the container has too many mounts"};
    }
    const bool devices = line.compare(dash + 3, 9, "devtmpfs ") == 0;
    mounts.push_back({path == root ? "." : path.substr(inside.size()), devices});
  }
  return mounts;
}

}  // namespace ringfence::isolate

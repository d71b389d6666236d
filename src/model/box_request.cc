#include "model/box_request.h"

#include <algorithm>
#include <set>

namespace ringfence::model {
namespace {

Error Wrong(std::string field, std::string message, std::string hint) {
  return Error{Code::kInvalidArgument, std::move(message), std::move(hint), std::move(field)};
}

bool IsSmall(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// What a box is made of: a mount there would take it away, or lie about it.
constexpr std::string_view kOwnFolders[] = {"/dev",   "/proc",   "/sys",  "/run",     "/etc",
                                            "/usr",   "/bin",    "/sbin", "/lib",     "/lib32",
                                            "/lib64", "/libx32", "/tmp",  "/home/job"};

bool IsOwn(std::string_view path) {
  return std::any_of(std::begin(kOwnFolders), std::end(kOwnFolders), [&](std::string_view own) {
    const auto beneath = [](std::string_view inner, std::string_view outer) {
      return inner == outer || (inner.starts_with(outer) && inner[outer.size()] == '/');
    };
    return beneath(path, own) || beneath(own, path);
  });
}

}  // namespace

Status CheckMount(const MountRequest& mount) {
  if (mount.name.empty() || mount.name.size() > kMountNameBytesMax || !IsSmall(mount.name[0]) ||
      !std::all_of(mount.name.begin(), mount.name.end(),
                   [](char c) { return IsSmall(c) || c == '-'; })) {
    return Wrong("mounts", "\"" + mount.name.substr(0, 100) + "\" is no mount's name",
                 "a mount has a name of small letters, digits and '-', which the node's settings "
                 "declare (node.mounts); a path of the host cannot be mounted");
  }
  const std::string& path = mount.path;
  bool plain = path.size() >= 2 && path.size() <= kMountPathBytesMax && path[0] == '/' &&
               path.back() != '/' && path.find("//") == std::string::npos &&
               path.find('\0') == std::string::npos && path.find(':') == std::string::npos;
  for (std::size_t at = 1; plain && at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = std::string_view(path).substr(at, end - at);
    plain = part != "." && part != "..";
    at = end + 1;
  }
  if (!plain) {
    return Wrong("mounts",
                 "mount " + mount.name + ": \"" + path.substr(0, 300) +
                     "\" is no absolute path without . and ..",
                 "write it as --mount " + mount.name + ":/data");
  }
  if (IsOwn(path)) {
    return Wrong("mounts", "mount " + mount.name + ": " + path + " is one of the box's own folders",
                 "choose another place, such as /data or /mnt/" + mount.name);
  }
  return {};
}

bool IsFabricDevice(std::string_view name) {
  return std::find(std::begin(kFabricDevices), std::end(kFabricDevices), name) !=
         std::end(kFabricDevices);
}

Status BoxRequest::Validate() const {
  if (exception.size() > kExceptionBytesMax ||
      !std::all_of(exception.begin(), exception.end(),
                   [](char c) { return IsSmall(c) || c == '-' || c == '.'; })) {
    return Wrong("exception", "that is no exception's name",
                 "a name of small letters, digits, '.' and '-'");
  }
  std::set<std::string_view> seen;
  for (const std::string& device : devices) {
    if (!IsFabricDevice(device) || !seen.insert(device).second) {
      return Wrong("devices",
                   "\"" + device.substr(0, 100) +
                       "\" is no device that a box may ask for, or is "
                       "there twice",
                   "rdma and imex are; GPUs are asked for with --gpus");
    }
  }
  if (image.size() > kImageBytesMax || image.find('\0') != std::string::npos) {
    return Wrong("image", "image is longer than " + std::to_string(kImageBytesMax) + " bytes",
                 "name it as NAME, NAME:TAG or sha256:HEX");
  }
  if (mounts.size() > kMountsMax) {
    return Wrong("mounts", "more than " + std::to_string(kMountsMax) + " mounts", "ask for fewer");
  }
  std::set<std::string> paths;
  for (const MountRequest& mount : mounts) {
    RINGFENCE_TRY(CheckMount(mount));
    if (!paths.insert(mount.path).second) {
      return Wrong("mounts", "two mounts at " + mount.path, "give each a place of its own");
    }
  }
  struct Bytes {
    const char* field;
    std::uint64_t value;
  };
  for (const Bytes& one : {Bytes{"shm_bytes", shm_bytes_max},
                           {"tmp_bytes", tmp_bytes_max},
                           {"huge_bytes", huge_bytes_max}}) {
    if (one.value != 0 && (one.value < kBoxBytesMin || one.value > kBoxBytesMax)) {
      return Wrong(one.field,
                   std::string(one.field) + " must be from " + std::to_string(kBoxBytesMin) +
                       " to " + std::to_string(kBoxBytesMax) + " bytes",
                   "write it as 64M or 8G");
    }
  }
  return {};
}

}  // namespace ringfence::model

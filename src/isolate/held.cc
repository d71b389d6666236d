#include "isolate/held.h"

#include <algorithm>

#include "base/json.h"
#include "isolate/cdi_spec.h"
#include "isolate/names.h"
#include "os/beneath.h"

namespace ringfence::isolate {
namespace {

constexpr const char* kNodeFile = "node.json";
constexpr const char* kLeaseFile = "lease.json";
constexpr const char* kEndedFile = "ended.json";
constexpr const char* kSpecFile = "spec.json";
constexpr const char* kContainers = "containers";
constexpr std::size_t kFileBytesMax = 64 * 1024;
constexpr std::size_t kLeasesMax = 4096;
constexpr std::size_t kContainersMax = 4096;
constexpr std::size_t kContainerIdBytesMax = 128;
constexpr std::size_t kCgroupsMax = 32;
constexpr std::size_t kNodesMax = 1024;
constexpr std::size_t kHoldersMax = 512;
constexpr std::int64_t kMajorMost = 0xfff;
constexpr std::int64_t kMinorMost = 0xfffff;
constexpr std::int64_t kPidMost = 0x7fffffff;
constexpr std::int64_t kCountMost = std::int64_t{1} << 53U;

Status CheckLease(const std::string& lease) {
  return IsName(lease) ? Status()
                       : Status(Error{Code::kInvalidArgument, "not a lease's id", {}, "lease"});
}

Result<HeldLease> ParseLease(std::string_view text) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kFileBytesMax));
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json));
  RINGFENCE_TRY(reader.Int("v", 1, 1));
  HeldLease lease;
  RINGFENCE_ASSIGN(lease.lease, reader.String("lease", kNameBytesMax));
  RINGFENCE_ASSIGN(lease.boot, reader.String("boot", kNameBytesMax));
  RINGFENCE_ASSIGN(const auto nodes, reader.Array("nodes", kNodesMax));
  for (const Json* entry : nodes) {
    RINGFENCE_ASSIGN(JsonReader node, JsonReader::Open(*entry, "nodes"));
    gpu::DeviceNode one;
    RINGFENCE_ASSIGN(one.path, node.String("path"));
    RINGFENCE_ASSIGN(const auto major, node.Int("major", 0, kMajorMost));
    RINGFENCE_ASSIGN(const auto minor, node.Int("minor", 0, kMinorMost));
    RINGFENCE_TRY(node.Finish());
    one.major = static_cast<std::uint32_t>(major);
    one.minor = static_cast<std::uint32_t>(minor);
    lease.nodes.push_back(std::move(one));
  }
  RINGFENCE_ASSIGN(const auto before, reader.Array("before", kHoldersMax));
  for (const Json* entry : before) {
    RINGFENCE_ASSIGN(JsonReader holder, JsonReader::Open(*entry, "before"));
    RINGFENCE_ASSIGN(const auto pid, holder.Int("pid", 1, kPidMost));
    RINGFENCE_ASSIGN(const auto started, holder.Int("started", 0, kCountMost));
    RINGFENCE_TRY(holder.Finish());
    lease.before.push_back({static_cast<int>(pid), static_cast<std::uint64_t>(started), ""});
  }
  RINGFENCE_TRY(reader.Finish());
  return lease;
}

Result<HeldContainer> ParseContainer(std::string_view text) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kFileBytesMax));
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json));
  RINGFENCE_TRY(reader.Int("v", 1, 1));
  HeldContainer container;
  RINGFENCE_ASSIGN(container.id, reader.String("id", kContainerIdBytesMax));
  RINGFENCE_ASSIGN(const auto pid, reader.Int("pid", 2, kPidMost));
  RINGFENCE_ASSIGN(const auto started, reader.Int("started", 0, kCountMost));
  RINGFENCE_ASSIGN(container.cgroups, reader.Strings("cgroups", kCgroupsMax));
  RINGFENCE_TRY(reader.Finish());
  container.pid = static_cast<int>(pid);
  container.started = static_cast<std::uint64_t>(started);
  return container;
}

JsonArray Texts(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

}  // namespace

bool IsContainerId(std::string_view text) {
  return !text.empty() && text.size() <= kContainerIdBytesMax && text.front() != '.' &&
         text.front() != '-' && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

Result<HeldFolder> HeldFolder::Open(const std::string& path) {
  RINGFENCE_ASSIGN(os::UniqueFd folder, os::OpenFolderOfRoot(path));
  return HeldFolder(std::move(folder));
}

Result<std::vector<std::string>> HeldFolder::Names() const {
  RINGFENCE_ASSIGN(auto names, os::NamesIn(folder_.get(), kLeasesMax));
  std::erase_if(names, [](const std::string& name) {
    return name == kNodeFile || os::IsStagedName(name) || !IsName(name);
  });
  return names;
}

Result<HeldLease> HeldFolder::Find(const std::string& lease) const {
  return Read(lease, kLeaseFile);
}

Result<HeldLease> HeldFolder::FindEnded(const std::string& lease) const {
  return Read(lease, kEndedFile);
}

Result<HeldLease> HeldFolder::Read(const std::string& lease, const char* file) const {
  RINGFENCE_TRY(CheckLease(lease));
  RINGFENCE_ASSIGN(const std::string text,
                   os::ReadBeneath(folder_.get(), lease + "/" + file, kFileBytesMax));
  RINGFENCE_ASSIGN(HeldLease found, ParseLease(text));
  if (found.lease != lease) {
    return Error{Code::kCorrupt, "the folder of lease " + lease + " is of another one"};
  }
  return found;
}

Result<std::string> HeldFolder::Spec(const std::string& lease) const {
  RINGFENCE_TRY(CheckLease(lease));
  return os::ReadBeneath(folder_.get(), lease + "/" + kSpecFile, kCdiBytesMax);
}

Result<std::vector<HeldContainer>> HeldFolder::Containers(const std::string& lease) const {
  RINGFENCE_TRY(CheckLease(lease));
  const std::string path = lease + "/" + kContainers;
  const auto folder = os::OpenBeneath(folder_.get(), path);
  if (!folder.has_value()) {
    return folder.error().code == Code::kNotFound
               ? Result<std::vector<HeldContainer>>(std::vector<HeldContainer>())
               : folder.error();
  }
  RINGFENCE_ASSIGN(const auto names, os::NamesIn(folder->get(), kContainersMax));
  std::vector<HeldContainer> containers;
  for (const std::string& name : names) {
    if (os::IsStagedName(name)) {
      continue;  // its hook has not finished, and will find the lease gone or still held
    }
    const auto text = os::ReadBeneath(folder->get(), name, kFileBytesMax);
    if (!text.has_value() && text.error().code == Code::kNotFound) {
      continue;
    }
    RINGFENCE_ASSIGN(const std::string known, text);
    RINGFENCE_ASSIGN(HeldContainer container, ParseContainer(known));
    containers.push_back(std::move(container));
  }
  return containers;
}

Result<std::set<std::uint32_t>> HeldFolder::Majors() const {
  RINGFENCE_ASSIGN(const std::string text,
                   os::ReadBeneath(folder_.get(), kNodeFile, kFileBytesMax));
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kFileBytesMax));
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json));
  RINGFENCE_TRY(reader.Int("v", 1, 1));
  RINGFENCE_ASSIGN(const auto entries, reader.Array("majors", kNodesMax));
  RINGFENCE_TRY(reader.Finish());
  std::set<std::uint32_t> majors;
  for (const Json* entry : entries) {
    const std::int64_t* const number = entry->if_int64();
    if (number == nullptr || *number < 0 || *number > kMajorMost) {
      return Error{Code::kCorrupt, "node.json: majors has what is none"};
    }
    majors.insert(static_cast<std::uint32_t>(*number));
  }
  return majors;
}

Status HeldFolder::SetMajors(const std::set<std::uint32_t>& majors) {
  JsonArray array;
  for (const std::uint32_t major : majors) {
    array.push_back(static_cast<std::int64_t>(major));
  }
  return os::ReplaceBeneath(folder_.get(), kNodeFile,
                            CanonicalJson(JsonObject{{"v", 1}, {"majors", std::move(array)}}),
                            0600);
}

Status HeldFolder::Add(const HeldLease& lease, const std::string& spec) {
  RINGFENCE_TRY(CheckLease(lease.lease));
  JsonArray nodes;
  for (const gpu::DeviceNode& node : lease.nodes) {
    nodes.push_back(JsonObject{{"path", node.path},
                               {"major", static_cast<std::int64_t>(node.major)},
                               {"minor", static_cast<std::int64_t>(node.minor)}});
  }
  JsonArray before;
  for (const os::Holder& holder : lease.before) {
    before.push_back(
        JsonObject{{"pid", holder.pid}, {"started", static_cast<std::int64_t>(holder.started)}});
  }
  if (before.size() > kHoldersMax) {
    return Error{Code::kExhausted, "too many processes have the lease's GPUs open already"};
  }
  const JsonObject json{{"v", 1},
                        {"lease", lease.lease},
                        {"boot", lease.boot},
                        {"nodes", std::move(nodes)},
                        {"before", std::move(before)}};
  RINGFENCE_TRY(os::MakeFolderBeneath(folder_.get(), lease.lease, 0700));
  RINGFENCE_ASSIGN(const os::UniqueFd folder, os::OpenBeneath(folder_.get(), lease.lease));
  RINGFENCE_TRY(os::MakeFolderBeneath(folder.get(), kContainers, 0700));
  RINGFENCE_TRY(os::ReplaceBeneath(folder.get(), kSpecFile, spec, 0600));
  return os::ReplaceBeneath(folder.get(), kLeaseFile, CanonicalJson(json), 0600);
}

Status HeldFolder::Close(const std::string& lease) {
  RINGFENCE_TRY(CheckLease(lease));
  const auto folder = os::OpenBeneath(folder_.get(), lease);
  if (!folder.has_value()) {
    return folder.error().code == Code::kNotFound ? Status() : Status(folder.error());
  }
  const Status ended = os::RenameBeneath(folder->get(), kLeaseFile, kEndedFile);
  return ended.has_value() || ended.error().code != Code::kNotFound ? ended : Status();
}

Status HeldFolder::Drop(const std::string& lease, const std::string& container) {
  RINGFENCE_TRY(CheckLease(lease));
  const auto folder = os::OpenBeneath(folder_.get(), lease + "/" + kContainers);
  if (!folder.has_value() || !IsContainerId(container)) {
    return folder.has_value() || folder.error().code == Code::kNotFound ? Status()
                                                                        : Status(folder.error());
  }
  return os::RemoveBeneath(folder->get(), container);
}

Status HeldFolder::Remove(const std::string& lease) {
  RINGFENCE_TRY(Close(lease));
  const auto folder = os::OpenBeneath(folder_.get(), lease);
  if (!folder.has_value()) {
    return folder.error().code == Code::kNotFound ? Status() : Status(folder.error());
  }
  if (const auto containers = os::OpenBeneath(folder->get(), kContainers); containers.has_value()) {
    RINGFENCE_ASSIGN(const auto names, os::NamesIn(containers->get(), kContainersMax));
    for (const std::string& name : names) {
      RINGFENCE_TRY(os::RemoveBeneath(containers->get(), name));
    }
    RINGFENCE_TRY(os::RemoveFolderBeneath(folder->get(), kContainers));
  }
  RINGFENCE_ASSIGN(const auto names, os::NamesIn(folder->get(), kContainersMax));
  for (const std::string& name : names) {
    RINGFENCE_TRY(os::RemoveBeneath(folder->get(), name));
  }
  return os::RemoveFolderBeneath(folder_.get(), lease);
}

Status HeldFolder::Join(const std::string& lease, const HeldContainer& container) {
  if (!IsContainerId(container.id)) {
    return Error{Code::kInvalidArgument,
                 "the container's id is not of letters, digits, '.', '_' "
                 "and '-'"};
  }
  const Error gone{Code::kFailedPrecondition, "lease " + lease + " is not held on this node",
                   "it has ended, or is another node's: `ringfence lease show " + lease + "`"};
  const auto held = Find(lease);
  if (!held.has_value()) {
    return held.error().code == Code::kNotFound ? gone : held.error();
  }
  const JsonObject json{{"v", 1},
                        {"id", container.id},
                        {"pid", container.pid},
                        {"started", static_cast<std::int64_t>(container.started)},
                        {"cgroups", Texts(container.cgroups)}};
  RINGFENCE_ASSIGN(const os::UniqueFd folder,
                   os::OpenBeneath(folder_.get(), lease + "/" + kContainers));
  RINGFENCE_TRY(os::ReplaceBeneath(folder.get(), container.id, CanonicalJson(json), 0600));
  return Find(lease).has_value() ? Status() : Status(gone);
}

}  // namespace ringfence::isolate

#include "isolate/cdi_spec.h"

#include <algorithm>
#include <array>
#include <set>

namespace ringfence::isolate {
namespace {

constexpr std::size_t kDevicesMax = 4096;
constexpr std::size_t kEditsMax = 4096;
constexpr std::size_t kTextBytesMax = 32 * 1024;
constexpr std::int64_t kNumberMost = 0xffffffffLL;
constexpr std::array<std::string_view, 10> kVersions = {
    "0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"};
constexpr const char* kUsualLibraries =
    "/usr/local/nvidia/lib:/usr/local/nvidia/lib64:/usr/local/cuda/lib64";
constexpr std::array<std::string_view, 6> kHooks = {
    "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"};

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return IsLetter(c) || IsDigit(c); }

Error Bad(std::string field, std::string_view what) {
  return Error{Code::kInvalidArgument, field + " " + std::string(what), {}, field};
}

// Begins with a letter, ends with a letter or digit, and has only these between.
bool IsVendorOrClass(std::string_view text) {
  return !text.empty() && IsLetter(text.front()) && IsWord(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsWord(c) || c == '_' || c == '-' || c == '.'; });
}

bool IsDeviceName(std::string_view text) {
  return !text.empty() && IsWord(text.front()) && IsWord(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return IsWord(c) || c == '_' || c == '-' || c == '.' || c == ':';
         });
}

Status CheckKind(std::string_view kind, const std::string& field) {
  const std::size_t slash = kind.find('/');
  if (slash == std::string_view::npos || !IsVendorOrClass(kind.substr(0, slash)) ||
      !IsVendorOrClass(kind.substr(slash + 1))) {
    return Bad(field, "is not VENDOR/CLASS, such as vendor.com/gpu");
  }
  return {};
}

Status CheckEnvironment(const std::vector<std::string>& entries, const std::string& field) {
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Bad(field, "has an entry that is not NAME=VALUE");
    }
  }
  return {};
}

Result<std::vector<std::string>> ReadEnvironment(JsonReader& reader) {
  std::vector<std::string> entries;
  if (reader.Has("env")) {
    RINGFENCE_ASSIGN(entries, reader.Strings("env", kEditsMax, kTextBytesMax));
  }
  RINGFENCE_TRY(CheckEnvironment(entries, reader.Path("env")));
  return entries;
}

Result<CdiNode> ReadNode(const Json& json, const std::string& path) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json, path));
  CdiNode node;
  RINGFENCE_ASSIGN(node.path, reader.StringOr("path", {}));
  RINGFENCE_ASSIGN(node.host_path, reader.StringOr("hostPath", {}));
  RINGFENCE_ASSIGN(node.type, reader.StringOr("type", {}));
  RINGFENCE_ASSIGN(node.permissions, reader.StringOr("permissions", {}));
  RINGFENCE_ASSIGN(node.major, reader.IntOr("major", 0, 0, kNumberMost));
  RINGFENCE_ASSIGN(node.minor, reader.IntOr("minor", 0, 0, kNumberMost));
  for (const char* name : {"fileMode", "uid", "gid"}) {
    RINGFENCE_TRY(reader.IntOr(name, 0, 0, kNumberMost));
  }
  RINGFENCE_TRY(reader.Finish());
  if (node.path.empty()) {
    return Bad(reader.Path("path"), "is empty");
  }
  if (!node.type.empty() && (node.type.size() != 1 || std::string_view("bcup").find(node.type[0]) ==
                                                          std::string_view::npos)) {
    return Bad(reader.Path("type"), "is none of b, c, u and p");
  }
  if (node.permissions.find_first_not_of("rwm") != std::string::npos) {
    return Bad(reader.Path("permissions"), "has a letter that is none of r, w and m");
  }
  return node;
}

Status ReadMount(const Json& json, const std::string& path, CdiEdits& edits) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json, path));
  RINGFENCE_ASSIGN(const std::string from, reader.StringOr("hostPath", {}));
  RINGFENCE_ASSIGN(const std::string to, reader.StringOr("containerPath", {}));
  RINGFENCE_ASSIGN(const std::string type, reader.StringOr("type", {}));
  if (reader.Has("options")) {
    RINGFENCE_TRY(reader.Strings("options", kEditsMax));
  }
  RINGFENCE_TRY(reader.Finish());
  if (from.empty() || to.empty()) {
    return Bad(reader.Path(from.empty() ? "hostPath" : "containerPath"), "is empty");
  }
  ++edits.mounts;
  edits.typed_mounts = edits.typed_mounts || !type.empty();
  return {};
}

Status ReadHook(const Json& json, const std::string& path, CdiEdits& edits) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json, path));
  RINGFENCE_ASSIGN(const std::string name, reader.StringOr("hookName", {}));
  RINGFENCE_ASSIGN(const std::string program, reader.StringOr("path", {}));
  if (reader.Has("args")) {
    RINGFENCE_TRY(reader.Strings("args", kEditsMax, kTextBytesMax));
  }
  RINGFENCE_TRY(ReadEnvironment(reader));
  RINGFENCE_TRY(reader.IntOr("timeout", 0, 0, kNumberMost));
  RINGFENCE_TRY(reader.Finish());
  if (std::find(kHooks.begin(), kHooks.end(), name) == kHooks.end()) {
    return Bad(reader.Path("hookName"), "is the name of no hook");
  }
  if (program.empty()) {
    return Bad(reader.Path("path"), "is empty");
  }
  edits.hook_paths.push_back(program);
  return {};
}

Status ReadRdt(JsonReader& reader, CdiEdits& edits) {
  if (!reader.Has("intelRdt")) {
    return {};
  }
  edits.rdt = true;
  RINGFENCE_ASSIGN(const Json* const json, reader.Any("intelRdt"));
  RINGFENCE_ASSIGN(JsonReader rdt, JsonReader::Open(*json, reader.Path("intelRdt")));
  RINGFENCE_ASSIGN(const std::string id, rdt.StringOr("closID", {}));
  for (const char* name : {"l3CacheSchema", "memBwSchema"}) {
    RINGFENCE_TRY(rdt.StringOr(name, {}));
  }
  for (const char* name : {"enableCMT", "enableMBM"}) {
    RINGFENCE_TRY(rdt.BoolOr(name, false));
  }
  if (rdt.Has("schemata")) {
    edits.newest = true;
    RINGFENCE_TRY(rdt.Strings("schemata", kEditsMax));
  }
  if (rdt.Has("enableMonitoring")) {
    edits.newest = true;
    RINGFENCE_TRY(rdt.Bool("enableMonitoring"));
  }
  RINGFENCE_TRY(rdt.Finish());
  if (id == "." || id == ".." || id.find_first_of("/\n") != std::string::npos) {
    return Bad(rdt.Path("closID"), "cannot be a folder's name");
  }
  return {};
}

Status ReadNetDevices(JsonReader& reader, CdiEdits& edits) {
  if (!reader.Has("netDevices")) {
    return {};
  }
  edits.newest = true;
  RINGFENCE_ASSIGN(const auto devices, reader.Array("netDevices", kEditsMax));
  for (const Json* device : devices) {
    RINGFENCE_ASSIGN(JsonReader one, JsonReader::Open(*device, reader.Path("netDevices")));
    RINGFENCE_ASSIGN(const std::string host, one.StringOr("hostInterfaceName", {}));
    RINGFENCE_ASSIGN(const std::string name, one.StringOr("name", {}));
    RINGFENCE_TRY(one.Finish());
    if (host.empty() || name.empty()) {
      return Bad(one.Path(host.empty() ? "hostInterfaceName" : "name"), "is empty");
    }
  }
  return {};
}

Result<CdiEdits> ReadEdits(const Json& json, const std::string& path) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json, path));
  CdiEdits edits;
  RINGFENCE_ASSIGN(edits.env, ReadEnvironment(reader));
  const auto each = [&](std::string_view name, auto&& read) -> Status {
    if (!reader.Has(name)) {
      return {};
    }
    RINGFENCE_ASSIGN(const auto entries, reader.Array(name, kEditsMax));
    std::size_t index = 0;
    for (const Json* entry : entries) {
      RINGFENCE_TRY(read(*entry, reader.Path(name) + "[" + std::to_string(index++) + "]"));
    }
    return {};
  };
  RINGFENCE_TRY(each("deviceNodes", [&](const Json& entry, const std::string& where) -> Status {
    RINGFENCE_ASSIGN(CdiNode node, ReadNode(entry, where));
    edits.nodes.push_back(std::move(node));
    return {};
  }));
  RINGFENCE_TRY(each("mounts", [&](const Json& entry, const std::string& where) {
    return ReadMount(entry, where, edits);
  }));
  RINGFENCE_TRY(each("hooks", [&](const Json& entry, const std::string& where) {
    return ReadHook(entry, where, edits);
  }));
  RINGFENCE_TRY(each("additionalGids", [&](const Json& entry, const std::string& where) -> Status {
    edits.groups = true;
    const std::int64_t* const number = entry.if_int64();
    return number != nullptr && *number >= 0 && *number <= kNumberMost
               ? Status()
               : Status(Bad(where, "is no group id"));
  }));
  RINGFENCE_TRY(ReadRdt(reader, edits));
  RINGFENCE_TRY(ReadNetDevices(reader, edits));
  RINGFENCE_TRY(reader.Finish());
  return edits;
}

Result<bool> ReadAnnotations(JsonReader& reader) {
  if (!reader.Has("annotations")) {
    return false;
  }
  RINGFENCE_ASSIGN(const Json* const json, reader.Any("annotations"));
  const JsonObject* const object = json->if_object();
  if (object == nullptr || !std::all_of(object->begin(), object->end(), [](const auto& member) {
        return member.value().is_string();
      })) {
    return Bad(reader.Path("annotations"), "is not an object of names and texts");
  }
  return !object->empty();
}

Result<CdiDevice> ReadDevice(const Json& json, const std::string& path) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json, path));
  CdiDevice device;
  RINGFENCE_ASSIGN(device.name, reader.String("name"));
  if (!IsDeviceName(device.name)) {
    return Bad(reader.Path("name"), "is no name of a device");
  }
  RINGFENCE_ASSIGN(device.annotated, ReadAnnotations(reader));
  RINGFENCE_ASSIGN(const Json* const edits, reader.Any("containerEdits"));
  RINGFENCE_ASSIGN(device.edits, ReadEdits(*edits, reader.Path("containerEdits")));
  RINGFENCE_TRY(reader.Finish());
  if (device.edits.empty()) {
    return Bad(reader.Path("containerEdits"), "is empty: such a device does nothing");
  }
  return device;
}

JsonObject Bind(const gpu::DriverMount& mount) {
  return JsonObject{
      {"hostPath", mount.host_path},
      {"containerPath", mount.box_path},
      {"options", JsonArray{"bind", mount.writable ? "rw" : "ro", "nosuid", "nodev"}}};
}

}  // namespace

bool CdiEdits::empty() const {
  return env.empty() && nodes.empty() && mounts == 0 && hook_paths.empty() && !groups && !rdt &&
         !newest;
}

Result<CdiName> ParseCdiName(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::size_t equals = text.find('=');
  CdiName name;
  if (slash != std::string_view::npos && equals != std::string_view::npos && slash < equals) {
    name = {std::string(text.substr(0, slash)),
            std::string(text.substr(slash + 1, equals - slash - 1)),
            std::string(text.substr(equals + 1))};
  }
  if (!IsVendorOrClass(name.vendor) || !IsVendorOrClass(name.device_class) ||
      !IsDeviceName(name.device)) {
    return Error{Code::kInvalidArgument, "not VENDOR/CLASS=DEVICE",
                 "such as " + CdiDeviceName("lease-7k3m9q2x4abc"), "device"};
  }
  return name;
}

std::string CdiDeviceName(std::string_view lease) {
  return std::string(kCdiKind) + "=" + std::string(lease);
}

Result<CdiDocument> ReadCdi(const Json& json) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json));
  CdiDocument document;
  RINGFENCE_ASSIGN(document.version, reader.String("cdiVersion", 64));
  if (std::find(kVersions.begin(), kVersions.end(), document.version) == kVersions.end()) {
    return Bad("cdiVersion", "is no version of the specification");
  }
  RINGFENCE_ASSIGN(document.kind, reader.String("kind", 512));
  RINGFENCE_TRY(CheckKind(document.kind, "kind"));
  RINGFENCE_ASSIGN(document.annotated, ReadAnnotations(reader));
  RINGFENCE_ASSIGN(const auto devices, reader.Array("devices", kDevicesMax));
  std::set<std::string> seen;
  for (const Json* entry : devices) {
    RINGFENCE_ASSIGN(CdiDevice device,
                     ReadDevice(*entry, "devices[" + std::to_string(seen.size()) + "]"));
    if (!seen.insert(device.name).second) {
      return Bad("devices", "has the name " + device.name + " twice");
    }
    document.devices.push_back(std::move(device));
  }
  if (document.devices.empty()) {
    return Bad("devices", "is empty");
  }
  if (reader.Has("containerEdits")) {
    RINGFENCE_ASSIGN(const Json* const edits, reader.Any("containerEdits"));
    RINGFENCE_ASSIGN(document.edits, ReadEdits(*edits, "containerEdits"));
  }
  RINGFENCE_TRY(reader.Finish());
  return document;
}

std::string LeastCdiVersion(const CdiDocument& document) {
  std::size_t least = 2;  // 0.3.0, the first that anything in use reads
  const auto needs = [&least](std::string_view version, bool it_does) {
    if (it_does) {
      const auto place = std::find(kVersions.begin(), kVersions.end(), version);
      least = std::max(least, static_cast<std::size_t>(place - kVersions.begin()));
    }
  };
  const auto look = [&](const CdiEdits& edits) {
    needs("0.4.0", edits.typed_mounts);
    needs("0.5.0", std::any_of(edits.nodes.begin(), edits.nodes.end(),
                               [](const CdiNode& node) { return !node.host_path.empty(); }));
    needs("0.7.0", edits.rdt || edits.groups);
    needs("1.1.0", edits.newest);
  };
  look(document.edits);
  needs("0.6.0", document.annotated);
  needs("0.6.0", document.kind.find('.', std::min(document.kind.find('/'), document.kind.size())) !=
                     std::string::npos);
  for (const CdiDevice& device : document.devices) {
    look(device.edits);
    needs("0.5.0", !device.name.empty() && IsDigit(device.name.front()));
    needs("0.6.0", device.annotated);
  }
  return std::string(kVersions[least]);
}

std::string WriteCdi(const LeaseSpec& spec) {
  JsonArray nodes;
  for (const gpu::DeviceNode& node : spec.files.nodes) {
    nodes.push_back(JsonObject{{"path", node.path},
                               {"type", "c"},
                               {"major", static_cast<std::int64_t>(node.major)},
                               {"minor", static_cast<std::int64_t>(node.minor)},
                               {"fileMode", 0666},
                               {"permissions", "rw"}});
  }
  JsonArray mounts;
  for (const gpu::DriverMount& mount : spec.files.mounts) {
    mounts.push_back(Bind(mount));
  }
  JsonArray env{"RINGFENCE_LEASE=" + spec.lease, "NVIDIA_VISIBLE_DEVICES=void"};
  if (!spec.slices.empty()) {
    env.push_back(Json("CUDA_VISIBLE_DEVICES=" + spec.slices));
  }
  std::string libraries;
  for (const std::string& folder : spec.files.library_folders) {
    libraries += (libraries.empty() ? "" : ":") + folder;
  }
  if (!libraries.empty()) {  // it takes the place of the image's own, so the usual places follow
    env.push_back(Json("LD_LIBRARY_PATH=" + libraries + ":" + kUsualLibraries));
  }
  // Runs in the runtime's namespaces, before anything of the container does.
  JsonArray hooks{JsonObject{
      {"hookName", "createRuntime"},
      {"path", spec.hook},
      {"args", JsonArray{"ringfence-hook", "--held", spec.held_folder, "--lease", spec.lease}}}};
  const JsonObject edits{{"deviceNodes", std::move(nodes)},
                         {"mounts", std::move(mounts)},
                         {"env", std::move(env)},
                         {"hooks", std::move(hooks)}};
  const JsonObject document{
      {"cdiVersion", kCdiVersion},
      {"kind", kCdiKind},
      {"devices", JsonArray{JsonObject{{"name", spec.lease}, {"containerEdits", edits}}}}};
  return CanonicalJson(document) + "\n";
}

}  // namespace ringfence::isolate

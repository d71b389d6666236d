#pragma once

// Container Device Interface documents: reading anybody's, strictly, and writing ours.
// https://github.com/cncf-tags/container-device-interface; docs/cdi.md has what ours look like.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "gpu/device_files.h"

namespace ringfence::isolate {

inline constexpr std::size_t kCdiBytesMax = 1024 * 1024;
inline constexpr std::string_view kCdiVersion = "0.5.0";  // what Debian's podman 4.3 resolves
inline constexpr std::string_view kCdiKind = "ringfence.dev/lease";

// "vendor.com/class=device"
struct CdiName {
  std::string vendor;
  std::string device_class;
  std::string device;
};
Result<CdiName> ParseCdiName(std::string_view text);
// "ringfence.dev/lease=lease-7k3m9q2x4abc"
std::string CdiDeviceName(std::string_view lease);

struct CdiNode {
  std::string path;
  std::string host_path;
  std::string type;
  std::string permissions;
  std::int64_t major = 0;
  std::int64_t minor = 0;
};
struct CdiEdits {
  std::vector<std::string> env;
  std::vector<CdiNode> nodes;
  std::size_t mounts = 0;
  bool typed_mounts = false;
  std::vector<std::string> hook_paths;
  bool groups = false;  // additional group ids
  bool rdt = false;     // Intel resource director settings
  bool newest = false;  // what only the newest version has
  bool empty() const;
};
struct CdiDevice {
  std::string name;
  bool annotated = false;
  CdiEdits edits;
};
struct CdiDocument {
  std::string version;
  std::string kind;
  bool annotated = false;
  std::vector<CdiDevice> devices;
  CdiEdits edits;
};

// Everything the specification says of a document is checked; an error names the field. Members
// that it does not know are refused, as container runtimes do.
Result<CdiDocument> ReadCdi(const Json& json);
// The least version that knows everything the document uses.
std::string LeastCdiVersion(const CdiDocument& document);

// What a lease's document is made of.
struct LeaseSpec {
  std::string lease;
  gpu::DriverFiles files;
  std::string hook;         // the program that looks at every container which takes the lease
  std::string held_folder;  // where it finds the leases that are held
  std::string slices = {};  // SlicesOf its GPUs
};
// The bytes of the document. Equal input, equal bytes.
std::string WriteCdi(const LeaseSpec& spec);

}  // namespace ringfence::isolate

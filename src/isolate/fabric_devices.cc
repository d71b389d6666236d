#include "isolate/fabric_devices.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "os/file.h"

namespace ringfence::isolate {
namespace {

constexpr std::size_t kDevBytesMax = 64;
constexpr std::size_t kDevicesBytesMax = 65536;
constexpr std::string_view kVerbs = "uverbs";
constexpr std::uint32_t kNumberMost = 1U << 20U;

std::string Beneath(const std::string& root, const std::string& path) {
  return (root == "/" ? "" : root) + path;
}

std::optional<std::uint32_t> Number(std::string_view text) {
  std::uint32_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() ||
      number >= kNumberMost) {
    return std::nullopt;
  }
  return number;
}

// From a file of sysfs: "231:192\n".
Result<gpu::DeviceNode> NodeAt(const std::string& file, std::string path) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(file, kDevBytesMax));
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  const std::size_t colon = std::min(line.find(':'), line.size());
  const auto major = Number(line.substr(0, colon));
  const auto minor = Number(line.substr(std::min(colon + 1, line.size())));
  if (!major.has_value() || !minor.has_value() || *major == 0) {
    return Error{Code::kCorrupt, file + " does not name a device"};
  }
  return gpu::DeviceNode{std::move(path), *major, *minor};
}

Result<std::vector<gpu::DeviceNode>> RdmaNodes(const std::string& root) {
  const std::string folder = Beneath(root, "/sys/class/infiniband_verbs");
  const auto names = os::ListDir(folder);
  std::vector<gpu::DeviceNode> nodes;
  for (const std::string& name : names.has_value() ? *names : std::vector<std::string>()) {
    if (!name.starts_with(kVerbs) || !Number(name.substr(kVerbs.size())).has_value()) {
      continue;
    }
    if (nodes.size() >= kFabricNodesMax) {
      return Error{Code::kExhausted, folder + " holds more adapters than a box may have"};
    }
    RINGFENCE_ASSIGN(gpu::DeviceNode node,
                     NodeAt(folder + "/" + name + "/dev", "/dev/infiniband/" + name));
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) {
    return Error{Code::kFailedPrecondition, "this node has no RDMA adapter",
                 "load its driver and ib_uverbs; `ls " + folder + "` shows them"};
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  const std::string manager = Beneath(root, "/sys/class/misc/rdma_cm/dev");
  if (os::Exists(manager)) {
    RINGFENCE_ASSIGN(gpu::DeviceNode node, NodeAt(manager, "/dev/infiniband/rdma_cm"));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// The major that the kernel gave the driver's channels: "235 nvidia-caps-imex-channels".
Result<gpu::DeviceNode> ImexNode(const std::string& root) {
  const std::string own = Beneath(root, "/proc/devices");
  RINGFENCE_ASSIGN(const std::string text,
                   os::ReadText(os::Exists(own) ? own : "/proc/devices", kDevicesBytesMax));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::size_t blank = std::min(line.find(' '), line.size());
    const auto major = Number(line.substr(0, blank));
    if (major.has_value() && line.substr(blank) == " nvidia-caps-imex-channels") {
      return gpu::DeviceNode{"/dev/nvidia-caps-imex-channels/channel0", *major, 0};
    }
  }
  return Error{Code::kFailedPrecondition, "this node has no IMEX channels",
               "its driver makes them where GPUs are connected by NVLink across nodes"};
}

}  // namespace

Result<std::vector<gpu::DeviceNode>> FabricNodes(const std::string& root,
                                                 const std::vector<std::string>& kinds) {
  std::vector<gpu::DeviceNode> nodes;
  for (const std::string& kind : kinds) {
    if (kind == "rdma") {
      RINGFENCE_ASSIGN(const auto verbs, RdmaNodes(root));
      nodes.insert(nodes.end(), verbs.begin(), verbs.end());
    } else if (kind == "imex") {
      RINGFENCE_ASSIGN(gpu::DeviceNode channel, ImexNode(root));
      nodes.push_back(std::move(channel));
    } else {
      return Error{Code::kInvalidArgument, "\"" + kind + "\" is no device of a fabric"};
    }
  }
  return nodes;
}

}  // namespace ringfence::isolate

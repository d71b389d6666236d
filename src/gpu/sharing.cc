#include "gpu/sharing.h"

#include <algorithm>
#include <cctype>

#include "gpu/library.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

constexpr std::size_t kParamsBytesMax = 65536;

// The value of "KEY: value"; none where there is no such line.
std::optional<std::string> ValueOf(std::string_view params, std::string_view key) {
  std::size_t at = 0;
  while (at < params.size()) {
    const std::size_t end = std::min(params.find('\n', at), params.size());
    const std::string_view line = params.substr(at, end - at);
    if (line.starts_with(key) && line.substr(key.size()).starts_with(":")) {
      return std::string(line.substr(key.size() + 1));
    }
    at = end + 1;
  }
  return std::nullopt;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

std::optional<bool> ScrubsOnFree(std::string_view params) {
  // Whatever value is given to it: who sets it means something by it, and we ask for none.
  const auto dwords = ValueOf(params, "RegistryDwords");
  const auto per_device = ValueOf(params, "RegistryDwordsPerDevice");
  if (!dwords.has_value()) {
    return std::nullopt;
  }
  return Lower(*dwords + per_device.value_or("")).find("rmdisablescrubonfree") == std::string::npos;
}

std::optional<bool> ReadScrubOnFree(const std::string& driver_root) {
  std::string path = Beneath(driver_root, "proc/driver/nvidia/params");
  if (!os::Exists(path)) {  // a driver in its own root still runs in this kernel
    path = "/proc/driver/nvidia/params";
  }
  const auto params = os::ReadText(path, kParamsBytesMax);
  return params.has_value() ? ScrubsOnFree(*params) : std::optional<bool>();
}

Status CheckScrubOnFree(const std::string& driver_root) {
  const std::optional<bool> scrubs = ReadScrubOnFree(driver_root);
  if (!scrubs.has_value()) {
    return Error{Code::kFailedPrecondition,
                 "this node's driver does not tell whether it scrubs freed memory, so its GPUs are "
                 "not shared",
                 "see /proc/driver/nvidia/params, or ask for a whole GPU"};
  }
  if (!*scrubs) {
    return Error{Code::kFailedPrecondition,
                 "this node's driver does not scrub freed memory (RMDisableScrubOnFree), so its "
                 "GPUs are not shared",
                 "take the key out of NVreg_RegistryDwords in /etc/modprobe.d and reload the "
                 "module, or ask for a whole GPU"};
  }
  return {};
}

}  // namespace ringfence::gpu

#include "model/node.h"

#include <algorithm>
#include <utility>

namespace ringfence::model {
namespace {

constexpr std::pair<GpuState, std::string_view> kGpuStates[] = {
    {GpuState::kFree, "free"},     {GpuState::kLeased, "leased"},
    {GpuState::kDirty, "dirty"},   {GpuState::kQuarantined, "quarantined"},
    {GpuState::kLost, "lost"},     {GpuState::kCut, "cut"},
    {GpuState::kShared, "shared"},
};

}  // namespace

Status CheckNodeName(std::string_view name) {
  const bool good =
      !name.empty() && name.size() <= 63 && name.front() != '-' && name.front() != '.' &&
      std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
      });
  if (!good) {
    return Error{Code::kInvalidArgument,
                 "node name \"" + std::string(name.substr(0, 80)) + "\" is not a host name",
                 "use at most 63 of a-z, 0-9, '-' and '.'", "node"};
  }
  return {};
}

std::string_view Name(GpuState state) {
  for (const auto& [value, name] : kGpuStates) {
    if (value == state) {
      return name;
    }
  }
  return "?";
}

Result<GpuState> ParseGpuState(std::string_view text) {
  for (const auto& [value, name] : kGpuStates) {
    if (name == text) {
      return value;
    }
  }
  return Error{Code::kInvalidArgument, "unknown GPU state \"" + std::string(text) + "\""};
}

}  // namespace ringfence::model

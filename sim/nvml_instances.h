#pragma once

// What the functions for GPU instances and for compute instances have in common.

#include <algorithm>
#include <functional>

#include "mig_state.h"
#include "nvml_state.h"

namespace ringfence::sim {

using Card = nvml::DeviceOpaque;

inline const std::string& Root() { return State().driver->root; }

// Whether a process has a context on it.
bool Busy(const gpu::SimulatedGpu& gpu);
// kNoPermission without the capability mig/config.
nvml::Return Changed(const Card& card, const std::function<int(MigState&)>& change);
nvml::GpuInstance HandleOf(Card& card, unsigned int id);
// Makes or removes a capability's node, as nvidia-modprobe and udev do, where that is allowed.
void PutCapNode(std::uint32_t minor, bool there);

// Whether a handle is one that was given out.
template <typename Handles, typename Handle>
bool Known(const Handles& handles, const Handle* handle) {
  const std::lock_guard lock(State().mutex);
  return std::any_of(handles.begin(), handles.end(),
                     [&](const auto& one) { return &one == handle; });
}

// Runs `answer` with a whole card that is in MIG mode.
template <typename Answer>
nvml::Return OnCut(const char* function, nvml::Device device, Answer answer) {
  return OnDevice(function, device, [&](const Card& card) {
    if (BoardOf(card.gpu) == nullptr || !ReadMigState(Root(), card.gpu).enabled) {
      return nvml::kNotSupported;
    }
    return answer(const_cast<Card&>(card), *BoardOf(card.gpu));
  });
}

// The same with an instance that is there.
template <typename Answer>
nvml::Return OnInstance(const char* function, nvml::GpuInstance handle, Answer answer) {
  if (!Known(State().instances, handle)) {
    return nvml::kInvalidArgument;
  }
  return OnCut(function, handle->device, [&](Card& card, const gpu::MigBoard& board) {
    MigState mig = ReadMigState(Root(), card.gpu);
    MigInstance* instance = mig.Find(handle->id);
    return instance == nullptr ? nvml::kNotFound : answer(card, board, *instance);
  });
}

}  // namespace ringfence::sim

// NVML stand-in: compute instances, and the MIG devices that they are.

#include <algorithm>

#include "nvml_instances.h"

using ringfence::gpu::nvml::Return;
namespace nvml = ringfence::gpu::nvml;
namespace sim = ringfence::sim;
namespace gpu = ringfence::gpu;

using sim::Card;

namespace ringfence::sim {

std::vector<Card*> ListSlices(NvmlState& state, const Card* card) {
  std::vector<Card*> slices;
  const Driver& driver = *state.driver;
  const bool all = OpenNode(CapPath(driver.devices, gpu::kMigMonitorMinor), Use::kRead) == 0;
  for (Card& slice : state.devices) {
    slice.live = slice.live && slice.parent == nullptr;
  }
  const std::size_t whole = state.devices.size();
  for (std::size_t i = 0; i < whole; ++i) {
    Card& parent = state.devices[i];
    if (parent.parent != nullptr || !parent.live || BoardOf(parent.gpu) == nullptr) {
      continue;
    }
    const MigState mig = ReadMigState(driver.root, parent.gpu);
    for (const MigInstance& instance : mig.enabled ? mig.instances : std::vector<MigInstance>()) {
      for (const MigCompute& compute : instance.computes) {
        if (!all && !MayUse(driver.devices, parent.gpu, instance, compute)) {
          continue;
        }
        gpu::SimulatedGpu described = SliceOf(parent.gpu, instance, compute);
        const auto known = std::find_if(state.devices.begin(), state.devices.end(), [&](auto& one) {
          return one.parent == &parent && one.gpu.uuid == described.uuid;
        });
        Card& slice = known == state.devices.end() ? state.devices.emplace_back() : *known;
        slice.gpu = std::move(described);
        slice.index = parent.index;
        slice.parent = &parent;
        slice.live = true;
        if (card == nullptr || card == &parent) {
          slices.push_back(&slice);
        }
      }
    }
  }
  return slices;
}

namespace {

nvml::ComputeInstance ComputeHandle(nvml::GpuInstance instance, unsigned int id) {
  for (nvml::ComputeInstanceOpaque& known : State().computes) {
    if (known.instance == instance && known.id == id) {
      return &known;
    }
  }
  return &State().computes.emplace_back(nvml::ComputeInstanceOpaque{instance, id});
}

// Compute instances: so many of the instance's compute slices; `profile` is looked up by.
constexpr unsigned int kComputeSlices[] = {1, 2, 3, 4, 7, 8, 6, 1};
constexpr unsigned int kComputeRevised = 7;  // 1 slice with the media engines, which no one has

unsigned int UsedSlices(const MigInstance& instance) {
  unsigned int used = 0;
  for (const MigCompute& one : instance.computes) {
    used += kComputeSlices[one.profile];
  }
  return used;
}

// Whether an instance of so many compute slices can have such compute instances at all.
bool HasComputeProfile(const gpu::MigProfile& whole, unsigned int profile) {
  return profile < kComputeRevised && kComputeSlices[profile] <= whole.compute_slices;
}

}  // namespace
}  // namespace ringfence::sim

RINGFENCE_EXPORT Return nvmlGpuInstanceGetComputeInstanceProfileInfo(
    nvml::GpuInstance handle, unsigned int profile, unsigned int engines,
    nvml::ComputeInstanceProfile* info) {
  return sim::OnInstance("nvmlGpuInstanceGetComputeInstanceProfileInfo", handle,
                         [&](Card&, const auto& board, const sim::MigInstance& one) {
                           if (profile >= nvml::kComputeInstanceProfiles || engines != 0) {
                             return nvml::kInvalidArgument;
                           }
                           const gpu::MigProfile& whole = *sim::ProfileOf(board, one.profile);
                           if (!sim::HasComputeProfile(whole, profile)) {
                             return nvml::kNotSupported;
                           }
                           const unsigned int slices = sim::kComputeSlices[profile];
                           return sim::Put(info, {profile, slices, whole.compute_slices / slices,
                                                  whole.processors / whole.compute_slices * slices,
                                                  whole.compute_slices, whole.compute_slices, 0,
                                                  whole.compute_slices, whole.media ? 1U : 0U});
                         });
}

RINGFENCE_EXPORT Return nvmlGpuInstanceCreateComputeInstance(nvml::GpuInstance handle,
                                                             unsigned int profile,
                                                             nvml::ComputeInstance* compute) {
  return sim::OnInstance(
      "nvmlGpuInstanceCreateComputeInstance", handle,
      [&](Card& card, const auto& board, const sim::MigInstance& instance) {
        const gpu::MigProfile& whole = *sim::ProfileOf(board, instance.profile);
        if (compute == nullptr || !sim::HasComputeProfile(whole, profile)) {
          return nvml::kInvalidArgument;
        }
        unsigned int id = 0;
        const Return made = sim::Changed(card, [&](sim::MigState& mig) -> int {
          sim::MigInstance* one = mig.Find(instance.id);
          if (one == nullptr ||
              sim::UsedSlices(*one) + sim::kComputeSlices[profile] > whole.compute_slices) {
            return nvml::kInsufficientResources;
          }
          while (std::any_of(one->computes.begin(), one->computes.end(),
                             [&](const auto& there) { return there.id == id; })) {
            ++id;
          }
          one->computes.push_back({id, profile});
          return nvml::kSuccess;
        });
        if (made == nvml::kSuccess) {
          *compute = sim::ComputeHandle(handle, id);
          sim::PutCapNode(gpu::SimulatedCapMinor(card.gpu.minor, instance.id, id), true);
        }
        return made;
      });
}

RINGFENCE_EXPORT Return nvmlComputeInstanceDestroy(nvml::ComputeInstance compute) {
  if (!sim::Known(sim::State().computes, compute)) {
    return nvml::kInvalidArgument;
  }
  return sim::OnInstance(
      "nvmlComputeInstanceDestroy", compute->instance,
      [&](Card& card, const auto&, const sim::MigInstance& instance) {
        const auto found = std::find_if(instance.computes.begin(), instance.computes.end(),
                                        [&](const auto& one) { return one.id == compute->id; });
        if (found == instance.computes.end()) {
          return nvml::kNotFound;
        }
        if (sim::Busy(sim::SliceOf(card.gpu, instance, *found))) {
          return nvml::kInUse;
        }
        const Return gone = sim::Changed(card, [&](sim::MigState& mig) -> int {
          sim::MigInstance* one = mig.Find(instance.id);
          if (one != nullptr) {
            std::erase_if(one->computes, [&](const auto& ci) { return ci.id == compute->id; });
          }
          return nvml::kSuccess;
        });
        if (gone == nvml::kSuccess) {
          sim::PutCapNode(gpu::SimulatedCapMinor(card.gpu.minor, instance.id, compute->id), false);
        }
        return gone;
      });
}

RINGFENCE_EXPORT Return nvmlGpuInstanceGetComputeInstances(nvml::GpuInstance handle,
                                                           unsigned int profile,
                                                           nvml::ComputeInstance* computes,
                                                           unsigned int* count) {
  return sim::OnInstance("nvmlGpuInstanceGetComputeInstances", handle,
                         [&](Card&, const auto&, const sim::MigInstance& instance) {
                           if (count == nullptr || computes == nullptr) {
                             return nvml::kInvalidArgument;
                           }
                           *count = 0;
                           for (const sim::MigCompute& one : instance.computes) {
                             if (one.profile == profile) {
                               computes[(*count)++] = sim::ComputeHandle(handle, one.id);
                             }
                           }
                           return nvml::kSuccess;
                         });
}

RINGFENCE_EXPORT Return nvmlComputeInstanceGetInfo_v2(nvml::ComputeInstance compute,
                                                      nvml::ComputeInstanceInfo* info) {
  if (!sim::Known(sim::State().computes, compute)) {
    return nvml::kInvalidArgument;
  }
  return sim::OnInstance("nvmlComputeInstanceGetInfo_v2", compute->instance,
                         [&](Card& card, const auto&, const sim::MigInstance& instance) {
                           for (const sim::MigCompute& one : instance.computes) {
                             if (one.id == compute->id) {
                               return sim::Put(info, {&card,
                                                      compute->instance,
                                                      one.id,
                                                      one.profile,
                                                      {0, sim::kComputeSlices[one.profile]}});
                             }
                           }
                           return nvml::kNotFound;
                         });
}

RINGFENCE_EXPORT Return nvmlDeviceGetMigDeviceHandleByIndex(nvml::Device device, unsigned int index,
                                                            nvml::Device* slice) {
  return sim::OnDevice("nvmlDeviceGetMigDeviceHandleByIndex", device, [&](const Card& card) {
    const gpu::MigBoard* board = sim::BoardOf(card.gpu);
    if (board == nullptr) {
      return nvml::kNotSupported;
    }
    if (slice == nullptr || index >= board->compute_slices) {
      return nvml::kInvalidArgument;
    }
    const auto slices = sim::ListSlices(sim::State(), &card);
    return index < slices.size() ? sim::Put(slice, nvml::Device{slices[index]}) : nvml::kNotFound;
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml::Device slice,
                                                                     nvml::Device* device) {
  return sim::OnDevice(
      "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", slice, [&](const Card& card) {
        return card.parent == nullptr ? nvml::kInvalidArgument : sim::Put(device, card.parent);
      });
}

RINGFENCE_EXPORT Return nvmlDeviceIsMigDeviceHandle(nvml::Device device, unsigned int* is) {
  return sim::OnDevice("nvmlDeviceIsMigDeviceHandle", device, [&](const Card& card) {
    return sim::Put(is, card.parent == nullptr ? 0U : 1U);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetGpuInstanceId(nvml::Device slice, unsigned int* id) {
  return sim::OnDevice("nvmlDeviceGetGpuInstanceId", slice, [&](const Card& card) {
    return card.parent == nullptr ? nvml::kInvalidArgument
                                  : sim::Put(id, card.gpu.slice->gpu_instance);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetComputeInstanceId(nvml::Device slice, unsigned int* id) {
  return sim::OnDevice("nvmlDeviceGetComputeInstanceId", slice, [&](const Card& card) {
    return card.parent == nullptr ? nvml::kInvalidArgument
                                  : sim::Put(id, card.gpu.slice->compute_instance);
  });
}

// NVML stand-in: MIG mode and GPU instances. What may be made and where is the board's rule; who
// may make it, the node nvidia-caps/nvidia-cap1 (mig/config).

#include "nvml_instances.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "memory.h"

using ringfence::gpu::nvml::Return;
namespace nvml = ringfence::gpu::nvml;
namespace sim = ringfence::sim;
namespace gpu = ringfence::gpu;

using sim::Card;

namespace ringfence::sim {

bool Busy(const gpu::SimulatedGpu& gpu) {
  const int fd = InformationFd(Root(), gpu);
  return fd >= 0 && !ListHeld(fd, kContextBase, kContextBase + kContextsMax, Whose::kAll).empty();
}

nvml::GpuInstance HandleOf(Card& card, unsigned int id) {
  for (nvml::GpuInstanceOpaque& known : State().instances) {
    if (known.device == &card && known.id == id) {
      return &known;
    }
  }
  return &State().instances.emplace_back(nvml::GpuInstanceOpaque{&card, id});
}

static bool MayConfigure() {
  return OpenNode(CapPath(State().driver->devices, gpu::kMigConfigMinor), Use::kRead) == 0;
}

Return Changed(const Card& card, const std::function<int(MigState&)>& change) {
  if (!MayConfigure()) {
    return nvml::kNoPermission;
  }
  return static_cast<Return>(ChangeMigState(Root(), card.gpu, change));
}

void PutCapNode(std::uint32_t minor, bool there) {
  if (State().driver->devices == "/dev") {
    return;  // a box, where nodes are the jailer's to make
  }
  const std::string path = CapPath(State().driver->devices, minor);
  if (!there) {
    (void)unlink(path.c_str());
    return;
  }
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0444);
  if (fd >= 0) {
    (void)close(fd);
  }
}

namespace {

Return Create(Card& card, const gpu::MigBoard& board, unsigned int profile_id,
              const nvml::GpuInstancePlacement* placement, nvml::GpuInstance* into) {
  const gpu::MigProfile* profile = ProfileOf(board, profile_id);
  if (into == nullptr || profile == nullptr) {
    return nvml::kInvalidArgument;
  }
  const auto& starts = profile->starts;
  if (placement != nullptr &&
      (placement->size != profile->slices ||
       std::find(starts.begin(), starts.end(), placement->start) == starts.end())) {
    return nvml::kInvalidArgument;
  }
  unsigned int id = 0;
  const Return made = Changed(card, [&](MigState& mig) -> int {
    for (const std::uint32_t start : starts) {
      if ((placement != nullptr && placement->start != start) ||
          !MayPlace(board, mig, *profile, start)) {
        continue;
      }
      id = gpu::SimulatedInstanceId(board, *profile, start);
      mig.instances.push_back({id, profile->id, start, {}});
      return MakeInstanceFiles(Root(), card.gpu, mig.instances.back()) ? nvml::kSuccess
                                                                       : nvml::kUnknown;
    }
    return nvml::kInsufficientResources;
  });
  if (made == nvml::kSuccess) {
    *into = HandleOf(card, id);
    PutCapNode(gpu::SimulatedCapMinor(card.gpu.minor, id, std::nullopt), true);
  }
  return made;
}

}  // namespace
}  // namespace ringfence::sim

RINGFENCE_EXPORT Return nvmlDeviceSetMigMode(nvml::Device device, unsigned int mode,
                                             Return* activation) {
  return sim::OnDevice("nvmlDeviceSetMigMode", device, [&](const Card& card) {
    if (activation == nullptr || mode > 1) {
      return nvml::kInvalidArgument;
    }
    if (sim::BoardOf(card.gpu) == nullptr) {
      return nvml::kNotSupported;
    }
    *activation = sim::Changed(card, [&](sim::MigState& mig) -> int {
      if (mig.enabled == (mode == 1)) {
        return nvml::kSuccess;
      }
      if (!mig.instances.empty() || sim::Busy(card.gpu)) {
        return nvml::kInUse;
      }
      mig.enabled = mode == 1;
      return nvml::kSuccess;
    });
    return *activation == nvml::kNoPermission ? nvml::kNoPermission : nvml::kSuccess;
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetGpuInstanceRemainingCapacity(nvml::Device device,
                                                                  unsigned int profile_id,
                                                                  unsigned int* count) {
  return sim::OnCut("nvmlDeviceGetGpuInstanceRemainingCapacity", device,
                    [&](Card& card, const gpu::MigBoard& board) {
                      const gpu::MigProfile* profile = sim::ProfileOf(board, profile_id);
                      if (count == nullptr || profile == nullptr) {
                        return nvml::kInvalidArgument;
                      }
                      sim::MigState mig = sim::ReadMigState(sim::Root(), card.gpu);
                      *count = 0;
                      for (const std::uint32_t start : profile->starts) {
                        if (sim::MayPlace(board, mig, *profile, start)) {
                          mig.instances.push_back({*count, profile->id, start, {}});
                          ++*count;
                        }
                      }
                      return nvml::kSuccess;
                    });
}

RINGFENCE_EXPORT Return nvmlDeviceCreateGpuInstance(nvml::Device device, unsigned int profile_id,
                                                    nvml::GpuInstance* instance) {
  return sim::OnCut("nvmlDeviceCreateGpuInstance", device, [&](Card& card, const auto& board) {
    return sim::Create(card, board, profile_id, nullptr, instance);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceCreateGpuInstanceWithPlacement(
    nvml::Device device, unsigned int profile_id, const nvml::GpuInstancePlacement* placement,
    nvml::GpuInstance* instance) {
  return sim::OnCut(
      "nvmlDeviceCreateGpuInstanceWithPlacement", device, [&](Card& card, const auto& board) {
        return placement == nullptr ? nvml::kInvalidArgument
                                    : sim::Create(card, board, profile_id, placement, instance);
      });
}

RINGFENCE_EXPORT Return nvmlGpuInstanceDestroy(nvml::GpuInstance handle) {
  return sim::OnInstance(
      "nvmlGpuInstanceDestroy", handle, [&](Card& card, const auto&, sim::MigInstance& instance) {
        if (!instance.computes.empty()) {
          return nvml::kInUse;
        }
        const Return gone = sim::Changed(card, [&](sim::MigState& mig) -> int {
          std::erase_if(mig.instances, [&](const auto& one) { return one.id == instance.id; });
          return nvml::kSuccess;
        });
        if (gone == nvml::kSuccess) {
          sim::PutCapNode(gpu::SimulatedCapMinor(card.gpu.minor, instance.id, std::nullopt), false);
        }
        return gone;
      });
}

RINGFENCE_EXPORT Return nvmlDeviceGetGpuInstances(nvml::Device device, unsigned int profile_id,
                                                  nvml::GpuInstance* instances,
                                                  unsigned int* count) {
  return sim::OnCut("nvmlDeviceGetGpuInstances", device,
                    [&](Card& card, const gpu::MigBoard& board) {
                      if (count == nullptr || instances == nullptr ||
                          sim::ProfileOf(board, profile_id) == nullptr) {
                        return nvml::kInvalidArgument;
                      }
                      *count = 0;
                      for (const auto& one : sim::ReadMigState(sim::Root(), card.gpu).instances) {
                        if (one.profile == profile_id) {
                          instances[(*count)++] = sim::HandleOf(card, one.id);
                        }
                      }
                      return nvml::kSuccess;
                    });
}

RINGFENCE_EXPORT Return nvmlDeviceGetGpuInstanceById(nvml::Device device, unsigned int id,
                                                     nvml::GpuInstance* instance) {
  return sim::OnCut("nvmlDeviceGetGpuInstanceById", device, [&](Card& card, const auto&) {
    sim::MigState mig = sim::ReadMigState(sim::Root(), card.gpu);
    if (instance == nullptr) {
      return nvml::kInvalidArgument;
    }
    if (mig.Find(id) == nullptr) {
      return nvml::kNotFound;
    }
    *instance = sim::HandleOf(card, id);
    return nvml::kSuccess;
  });
}

RINGFENCE_EXPORT Return nvmlGpuInstanceGetInfo(nvml::GpuInstance handle,
                                               nvml::GpuInstanceInfo* info) {
  return sim::OnInstance("nvmlGpuInstanceGetInfo", handle,
                         [&](Card& card, const auto& board, const sim::MigInstance& one) {
                           const auto* profile = sim::ProfileOf(board, one.profile);
                           return sim::Put(
                               info, {&card, one.id, one.profile, {one.start, profile->slices}});
                         });
}

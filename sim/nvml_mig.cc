// NVML stand-in: the shapes that a GPU can be cut into. The H200's are those a real one reported
// (tests/vectors/h200/nvml.txt); no other model's are known here.

#include <array>
#include <cstring>
#include <span>

#include "nvml_state.h"

using ringfence::gpu::nvml::Return;
namespace nvml = ringfence::gpu::nvml;
namespace sim = ringfence::sim;

namespace ringfence::sim {
namespace {

constexpr unsigned int kLookupsMax = 17;

struct Profile {
  unsigned int lookup;  // the number that profiles are asked for by; `id` is another
  unsigned int id;
  unsigned int slices;
  unsigned int instances;
  unsigned int multiprocessors;
  unsigned int copy_engines;
  unsigned int decoders;
  unsigned int jpegs;
  unsigned int ofas;
  unsigned long long memory_mb;
  const char* name;
  unsigned int placement_size;
  unsigned int starts[7];
  unsigned int start_count;
};

constexpr std::array kH200 = {
    Profile{0, 19, 1, 7, 16, 1, 1, 1, 0, 16384, "MIG 1g.18gb", 1, {0, 1, 2, 3, 4, 5, 6}, 7},
    Profile{1, 14, 2, 3, 32, 2, 2, 2, 0, 33280, "MIG 2g.35gb", 2, {0, 2, 4}, 3},
    Profile{2, 9, 3, 2, 60, 3, 3, 3, 0, 71424, "MIG 3g.71gb", 4, {0, 4}, 2},
    Profile{3, 5, 4, 1, 64, 4, 4, 4, 0, 71424, "MIG 4g.71gb", 4, {0}, 1},
    Profile{4, 0, 7, 1, 132, 8, 7, 7, 1, 143360, "MIG 7g.141gb", 8, {0}, 1},
    Profile{7, 20, 1, 1, 16, 1, 1, 1, 1, 16384, "MIG 1g.18gb+me", 1, {0, 1, 2, 3, 4, 5, 6}, 7},
    Profile{9, 15, 1, 4, 26, 1, 1, 1, 0, 33280, "MIG 1g.35gb", 2, {0, 2, 4, 6}, 4},
};

std::span<const Profile> ProfilesOf(const gpu::SimulatedGpu& gpu) {
  return gpu.model == "NVIDIA H200" && gpu.mig.has_value() ? std::span<const Profile>(kH200)
                                                           : std::span<const Profile>();
}

// Runs `put` with the profile that `lookup` asks for.
template <typename PutProfile>
Return OnProfile(const gpu::SimulatedGpu& gpu, unsigned int lookup, PutProfile put) {
  if (lookup >= kLookupsMax) {
    return nvml::kInvalidArgument;
  }
  for (const Profile& profile : ProfilesOf(gpu)) {
    if (profile.lookup == lookup) {
      return put(profile);
    }
  }
  return nvml::kNotSupported;
}

template <typename Info>
void Describe(const Profile& profile, Info& info) {
  info.id = profile.id;
  info.slices = profile.slices;
  info.instances = profile.instances;
  info.multiprocessors = profile.multiprocessors;
  info.copy_engines = profile.copy_engines;
  info.decoders = profile.decoders;
  info.encoders = 0;
  info.jpegs = profile.jpegs;
  info.ofas = profile.ofas;
  info.memory_mb = profile.memory_mb;
}

}  // namespace
}  // namespace ringfence::sim

using Card = nvml::DeviceOpaque;

RINGFENCE_EXPORT Return nvmlDeviceGetMaxMigDeviceCount(nvml::Device device, unsigned int* count) {
  return sim::OnDevice("nvmlDeviceGetMaxMigDeviceCount", device, [&](const Card& card) {
    return sim::Put(count, sim::ProfilesOf(card.gpu).empty() ? 0U : 7U);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetGpuInstanceProfileInfo(nvml::Device device,
                                                            unsigned int profile,
                                                            nvml::GpuInstanceProfile* info) {
  return sim::OnDevice("nvmlDeviceGetGpuInstanceProfileInfo", device, [&](const Card& card) {
    if (info == nullptr) {
      return nvml::kInvalidArgument;
    }
    return sim::OnProfile(card.gpu, profile, [&](const sim::Profile& found) {
      *info = {};
      sim::Describe(found, *info);
      return nvml::kSuccess;
    });
  });
}

// The caller's struct says by its version which of two it is.
RINGFENCE_EXPORT Return nvmlDeviceGetGpuInstanceProfileInfoV(nvml::Device device,
                                                             unsigned int profile,
                                                             nvml::GpuInstanceProfileV2* info) {
  return sim::OnDevice("nvmlDeviceGetGpuInstanceProfileInfoV", device, [&](const Card& card) {
    if (info == nullptr) {
      return nvml::kInvalidArgument;
    }
    const unsigned int version = info->version;
    if (version != nvml::StructVersion<nvml::GpuInstanceProfileV2>(2) &&
        version != nvml::StructVersion<nvml::GpuInstanceProfileV3>(3)) {
      return nvml::kInvalidArgument;  // as the real one answers (driver 580)
    }
    return sim::OnProfile(card.gpu, profile, [&](const sim::Profile& found) {
      if (version == nvml::StructVersion<nvml::GpuInstanceProfileV2>(2)) {
        sim::Describe(found, *info);
        info->p2p = 0;
        (void)std::snprintf(info->name, sizeof info->name, "%s", found.name);
      } else {
        nvml::GpuInstanceProfileV3 third{};
        third.version = version;
        sim::Describe(found, third);
        (void)std::snprintf(third.name, sizeof third.name, "%s", found.name);
        std::memcpy(static_cast<void*>(info), &third, sizeof third);
      }
      return nvml::kSuccess;
    });
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    nvml::Device device, unsigned int profile_id, nvml::GpuInstancePlacement* placements,
    unsigned int* count) {
  return sim::OnDevice("nvmlDeviceGetGpuInstancePossiblePlacements_v2", device,
                       [&](const Card& card) {
                         if (count == nullptr) {
                           return nvml::kInvalidArgument;
                         }
                         for (const sim::Profile& profile : sim::ProfilesOf(card.gpu)) {
                           if (profile.id != profile_id) {
                             continue;
                           }
                           if (placements != nullptr) {
                             if (*count < profile.start_count) {
                               return nvml::kInsufficientSize;
                             }
                             for (unsigned int i = 0; i < profile.start_count; ++i) {
                               placements[i] = {profile.starts[i], profile.placement_size};
                             }
                           }
                           *count = profile.start_count;
                           return nvml::kSuccess;
                         }
                         return nvml::kInvalidArgument;
                       });
}

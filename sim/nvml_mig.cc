// NVML stand-in: the shapes that a GPU can be cut into, by the boards of gpu/mig_board.h. The
// H200's are held against what a real one reported (tests/vectors/h200/nvml.txt).

#include <cstring>

#include "mig_state.h"
#include "nvml_state.h"

using ringfence::gpu::nvml::Return;
namespace nvml = ringfence::gpu::nvml;
namespace sim = ringfence::sim;

namespace ringfence::sim {
namespace {

// The number that a profile is looked up by; its `id` is another.
unsigned int LookupOf(const gpu::MigProfile& profile) {
  constexpr unsigned int kBySlices[] = {99, 0, 1, 2, 3, 99, 6, 4, 5};
  if (profile.media) {
    return profile.compute_slices == 1 ? 7 : 8;
  }
  return profile.compute_slices == 1 && profile.slices == 2 ? 9 : kBySlices[profile.compute_slices];
}

// Runs `put` with the board and the profile that `lookup` asks for.
template <typename PutProfile>
Return OnProfile(const gpu::SimulatedGpu& gpu, unsigned int lookup, PutProfile put) {
  if (lookup >= nvml::kGpuInstanceProfiles) {
    return nvml::kInvalidArgument;
  }
  if (const gpu::MigBoard* board = BoardOf(gpu)) {
    for (const gpu::MigProfile& profile : board->profiles) {
      if (LookupOf(profile) == lookup) {
        return put(*board, profile);
      }
    }
  }
  return nvml::kNotSupported;
}

template <typename Info>
void Describe(const gpu::MigBoard& board, const gpu::MigProfile& profile, Info& info) {
  const bool whole = profile.slices == board.slices;
  info.id = profile.id;
  info.slices = profile.compute_slices;
  info.instances = profile.count_max;
  info.multiprocessors = profile.processors;
  info.copy_engines = whole ? board.slices : profile.compute_slices;
  info.decoders = profile.compute_slices;
  info.encoders = 0;
  info.jpegs = profile.compute_slices;
  info.ofas = whole || profile.media ? 1 : 0;
  info.memory_mb = profile.memory_mib;
}

std::string NameOf(const gpu::MigProfile& profile) { return "MIG " + profile.name; }

}  // namespace
}  // namespace ringfence::sim

using Card = nvml::DeviceOpaque;

RINGFENCE_EXPORT Return nvmlDeviceGetMaxMigDeviceCount(nvml::Device device, unsigned int* count) {
  return sim::OnDevice("nvmlDeviceGetMaxMigDeviceCount", device, [&](const Card& card) {
    return sim::Put(
        count, sim::BoardOf(card.gpu) == nullptr ? 0U : sim::BoardOf(card.gpu)->compute_slices);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetGpuInstanceProfileInfo(nvml::Device device,
                                                            unsigned int profile,
                                                            nvml::GpuInstanceProfile* info) {
  return sim::OnDevice("nvmlDeviceGetGpuInstanceProfileInfo", device, [&](const Card& card) {
    if (info == nullptr) {
      return nvml::kInvalidArgument;
    }
    return sim::OnProfile(card.gpu, profile, [&](const auto& board, const auto& found) {
      *info = {};
      sim::Describe(board, found, *info);
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
    return sim::OnProfile(card.gpu, profile, [&](const auto& board, const auto& found) {
      if (version == nvml::StructVersion<nvml::GpuInstanceProfileV2>(2)) {
        sim::Describe(board, found, *info);
        info->p2p = 0;
        (void)std::snprintf(info->name, sizeof info->name, "%s", sim::NameOf(found).c_str());
      } else {
        nvml::GpuInstanceProfileV3 third{};
        third.version = version;
        sim::Describe(board, found, third);
        (void)std::snprintf(third.name, sizeof third.name, "%s", sim::NameOf(found).c_str());
        std::memcpy(static_cast<void*>(info), &third, sizeof third);
      }
      return nvml::kSuccess;
    });
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    nvml::Device device, unsigned int profile_id, nvml::GpuInstancePlacement* placements,
    unsigned int* count) {
  constexpr const char* kName = "nvmlDeviceGetGpuInstancePossiblePlacements_v2";
  return sim::OnDevice(kName, device, [&](const Card& card) {
    const ringfence::gpu::MigBoard* board = sim::BoardOf(card.gpu);
    const auto* profile = board == nullptr ? nullptr : sim::ProfileOf(*board, profile_id);
    if (count == nullptr || profile == nullptr) {
      return nvml::kInvalidArgument;
    }
    const auto places = static_cast<unsigned int>(profile->starts.size());
    if (placements != nullptr) {
      if (*count < places) {
        return nvml::kInsufficientSize;
      }
      for (unsigned int i = 0; i < places; ++i) {
        const unsigned int off = card.gpu.mig_lies && profile->slices < board->slices ? 1 : 0;
        placements[i] = {profile->starts[i] + off, profile->slices};
      }
    }
    *count = places;
    return nvml::kSuccess;
  });
}

#include "gpu/mig_live.h"

#include <algorithm>
#include <array>
#include <memory>

#include "gpu/library.h"
#include "gpu/nvml_session.h"
#include "os/failpoint.h"

namespace ringfence::gpu {
namespace {

using nvml::Return;

constexpr std::size_t kPlacementsMax = 32;
constexpr std::size_t kInstancesMax = 32;

struct Held {
  nvml::GpuInstance handle = nullptr;
  nvml::GpuInstanceInfo info{};
  std::vector<nvml::ComputeInstance> computes;
};

// One card, its driver's library and its board. One thread.
class MigCard {
 public:
  static Result<MigCard> Open(const std::string& driver_root, const std::string& uuid);

  Result<LiveMig> Read() const;
  Status Reach(const MigTarget& target) const;

 private:
  MigCard(std::unique_ptr<Library> library, std::unique_ptr<nvml::Api> api, NvmlSession session,
          std::string uuid)
      : library_(std::move(library)),
        api_(std::move(api)),
        session_(std::move(session)),
        uuid_(std::move(uuid)) {}

  Status Must(const char* function, Return code) const {
    if (code == nvml::kSuccess) {
      return {};
    }
    return Error{NvmlCode(code), uuid_ + ": " + function + ": " + NvmlWords(*api_, code)};
  }
  Status RequireFunctions() const;
  Status FindBoard();
  // The driver must offer exactly what the board's table says: places that are wrong here would put
  // one tenant's slice over another's.
  Status CheckGeometry() const;
  Result<bool> Enabled() const;
  Status SetMode(bool enabled) const;
  Result<std::vector<Held>> Instances() const;
  Result<MigSlice> Describe(const Held& held) const;
  Status Remove(const Held& held) const;
  Status Make(const MigWish& wish) const;
  Status MakeCompute(nvml::GpuInstance instance, const MigProfile& profile) const;
  const MigProfile* ProfileOf(std::uint32_t id) const;
  Result<nvml::Device> DeviceOf(std::uint32_t gpu_instance) const;

  // In the order in which they must go: the session before its library.
  std::unique_ptr<Library> library_;
  std::unique_ptr<nvml::Api> api_;
  NvmlSession session_;
  std::string uuid_;
  nvml::Device device_ = nullptr;
  const MigBoard* board_ = nullptr;
};

Status MigCard::RequireFunctions() const {
  const std::pair<const void*, const char*> needed[] = {
#define RINGFENCE_NEED(name) {reinterpret_cast<const void*>(api_->name), #name}
      RINGFENCE_NEED(nvmlDeviceGetHandleByUUID),
      RINGFENCE_NEED(nvmlDeviceGetPciInfo_v3),
      RINGFENCE_NEED(nvmlDeviceGetMigMode),
      RINGFENCE_NEED(nvmlDeviceSetMigMode),
      RINGFENCE_NEED(nvmlDeviceGetGpuInstanceProfileInfo),
      RINGFENCE_NEED(nvmlDeviceGetGpuInstancePossiblePlacements_v2),
      RINGFENCE_NEED(nvmlDeviceCreateGpuInstanceWithPlacement),
      RINGFENCE_NEED(nvmlGpuInstanceDestroy),
      RINGFENCE_NEED(nvmlDeviceGetGpuInstances),
      RINGFENCE_NEED(nvmlGpuInstanceGetInfo),
      RINGFENCE_NEED(nvmlGpuInstanceGetComputeInstanceProfileInfo),
      RINGFENCE_NEED(nvmlGpuInstanceCreateComputeInstance),
      RINGFENCE_NEED(nvmlComputeInstanceDestroy),
      RINGFENCE_NEED(nvmlGpuInstanceGetComputeInstances),
      RINGFENCE_NEED(nvmlComputeInstanceGetInfo_v2),
      RINGFENCE_NEED(nvmlDeviceGetMigDeviceHandleByIndex),
      RINGFENCE_NEED(nvmlDeviceGetMaxMigDeviceCount),
      RINGFENCE_NEED(nvmlDeviceGetGpuInstanceId),
      RINGFENCE_NEED(nvmlDeviceGetUUID),
      RINGFENCE_NEED(nvmlDeviceGetMemoryInfo),
#undef RINGFENCE_NEED
  };
  for (const auto& [function, name] : needed) {
    if (function == nullptr) {
      return Error{Code::kFailedPrecondition, library_->path() + " has no function " + name,
                   "use a driver of branch 525 or later"};
    }
  }
  return {};
}

Result<MigCard> MigCard::Open(const std::string& driver_root, const std::string& uuid) {
  RINGFENCE_ASSIGN(Library opened, Library::Open(driver_root, kNvmlName));
  auto library = std::make_unique<Library>(std::move(opened));
  auto api = std::make_unique<nvml::Api>(LoadNvml(*library));
  if (api->nvmlInit_v2 == nullptr || api->nvmlShutdown == nullptr) {
    return Error{Code::kFailedPrecondition, library->path() + " is no NVML"};
  }
  RINGFENCE_ASSIGN(NvmlSession session, NvmlSession::Start(*api));
  MigCard card(std::move(library), std::move(api), std::move(session), uuid);
  RINGFENCE_TRY(card.RequireFunctions());
  RINGFENCE_TRY(card.Must("nvmlDeviceGetHandleByUUID",
                          card.api_->nvmlDeviceGetHandleByUUID(uuid.c_str(), &card.device_)));
  RINGFENCE_TRY(card.FindBoard());
  RINGFENCE_TRY(card.CheckGeometry());
  return card;
}

Status MigCard::FindBoard() {
  nvml::PciInfo pci{};
  RINGFENCE_TRY(Must("nvmlDeviceGetPciInfo_v3", api_->nvmlDeviceGetPciInfo_v3(device_, &pci)));
  std::array<char, 16> id{};
  (void)std::snprintf(id.data(), id.size(), "0x%08X", pci.pci_device_id);
  board_ = MigBoardOfPci(id.data());
  if (board_ == nullptr) {
    return Error{Code::kFailedPrecondition,
                 uuid_ + ": no board with MIG is known that has the PCI id " + id.data(),
                 "`ringfence mig boards` lists those that are"};
  }
  return {};
}

Status MigCard::CheckGeometry() const {
  const auto lies = [&](const std::string& what) {
    return Error{Code::kCorrupt,
                 uuid_ + ": the driver does not describe a " + board_->name + ": " + what,
                 "nothing is cut on a GPU that is not what it says; check driver and firmware"};
  };
  std::size_t found = 0;
  for (unsigned int lookup = 0; lookup < nvml::kGpuInstanceProfiles; ++lookup) {
    nvml::GpuInstanceProfile info{};
    const Return code = api_->nvmlDeviceGetGpuInstanceProfileInfo(device_, lookup, &info);
    if (code == nvml::kNotSupported || code == nvml::kInvalidArgument) {
      continue;
    }
    RINGFENCE_TRY(Must("nvmlDeviceGetGpuInstanceProfileInfo", code));
    const MigProfile* profile = ProfileOf(info.id);
    if (profile == nullptr) {
      continue;  // newer drivers have shapes that Ringfence does not make
    }
    ++found;
    if (info.slices != profile->compute_slices || info.instances != profile->count_max) {
      return lies(profile->name + " has " + std::to_string(info.slices) +
                  " compute slices and there can be " + std::to_string(info.instances));
    }
    std::array<nvml::GpuInstancePlacement, kPlacementsMax> places{};
    unsigned int count = kPlacementsMax;
    RINGFENCE_TRY(Must("nvmlDeviceGetGpuInstancePossiblePlacements_v2",
                       api_->nvmlDeviceGetGpuInstancePossiblePlacements_v2(device_, info.id,
                                                                           places.data(), &count)));
    std::vector<std::uint32_t> starts;
    for (const auto& place : std::span(places).first(std::min<std::size_t>(count, places.size()))) {
      starts.push_back(place.start);
      if (place.size != profile->slices) {
        return lies(profile->name + " would take " + std::to_string(place.size) + " memory slices");
      }
    }
    std::sort(starts.begin(), starts.end());
    if (starts != profile->starts) {
      return lies("other places for " + profile->name + " than the board has");
    }
  }
  if (found != board_->profiles.size()) {
    return lies(std::to_string(found) + " of its " + std::to_string(board_->profiles.size()) +
                " profiles are there");
  }
  return {};
}

const MigProfile* MigCard::ProfileOf(std::uint32_t id) const {
  const auto found = std::find_if(board_->profiles.begin(), board_->profiles.end(),
                                  [&](const MigProfile& one) { return one.id == id; });
  return found == board_->profiles.end() ? nullptr : &*found;
}

Result<bool> MigCard::Enabled() const {
  unsigned int current = 0;
  unsigned int pending = 0;
  RINGFENCE_TRY(
      Must("nvmlDeviceGetMigMode", api_->nvmlDeviceGetMigMode(device_, &current, &pending)));
  if (current != pending) {
    return Error{Code::kUnavailable, uuid_ + ": a change of its MIG mode waits for a reset",
                 "reset the GPU: `nvidia-smi --gpu-reset`, with nothing running on it"};
  }
  return current != 0;
}

Status MigCard::SetMode(bool enabled) const {
  Return activation = nvml::kSuccess;
  RINGFENCE_TRY(Must("nvmlDeviceSetMigMode",
                     api_->nvmlDeviceSetMigMode(device_, enabled ? 1 : 0, &activation)));
  return Must("nvmlDeviceSetMigMode: activation", activation);
}

Result<std::vector<Held>> MigCard::Instances() const {
  std::vector<Held> all;
  for (const MigProfile& profile : board_->profiles) {
    std::array<nvml::GpuInstance, kInstancesMax> handles{};
    unsigned int count = kInstancesMax;
    RINGFENCE_TRY(
        Must("nvmlDeviceGetGpuInstances",
             api_->nvmlDeviceGetGpuInstances(device_, profile.id, handles.data(), &count)));
    for (nvml::GpuInstance handle :
         std::span(handles).first(std::min<std::size_t>(count, handles.size()))) {
      Held held;
      held.handle = handle;
      RINGFENCE_TRY(
          Must("nvmlGpuInstanceGetInfo", api_->nvmlGpuInstanceGetInfo(handle, &held.info)));
      for (unsigned int kind = 0; kind < nvml::kComputeInstanceProfiles; ++kind) {
        nvml::ComputeInstanceProfile shape{};
        if (api_->nvmlGpuInstanceGetComputeInstanceProfileInfo(handle, kind, 0, &shape) !=
            nvml::kSuccess) {
          continue;
        }
        std::array<nvml::ComputeInstance, kInstancesMax> computes{};
        unsigned int there = kInstancesMax;
        RINGFENCE_TRY(Must(
            "nvmlGpuInstanceGetComputeInstances",
            api_->nvmlGpuInstanceGetComputeInstances(handle, shape.id, computes.data(), &there)));
        held.computes.insert(held.computes.end(), computes.begin(),
                             computes.begin() + std::min<std::size_t>(there, computes.size()));
      }
      all.push_back(std::move(held));
    }
  }
  std::sort(all.begin(), all.end(), [](const Held& a, const Held& b) {
    return a.info.placement.start < b.info.placement.start;
  });
  return all;
}

Result<nvml::Device> MigCard::DeviceOf(std::uint32_t gpu_instance) const {
  unsigned int count = 0;
  RINGFENCE_TRY(Must("nvmlDeviceGetMaxMigDeviceCount",
                     api_->nvmlDeviceGetMaxMigDeviceCount(device_, &count)));
  for (unsigned int i = 0; i < count; ++i) {
    nvml::Device slice = nullptr;
    if (api_->nvmlDeviceGetMigDeviceHandleByIndex(device_, i, &slice) != nvml::kSuccess) {
      continue;
    }
    unsigned int id = 0;
    RINGFENCE_TRY(Must("nvmlDeviceGetGpuInstanceId", api_->nvmlDeviceGetGpuInstanceId(slice, &id)));
    if (id == gpu_instance) {
      return slice;
    }
  }
  return Error{Code::kUnavailable,
               uuid_ + ": no MIG device for GPU instance " + std::to_string(gpu_instance)};
}

Result<MigSlice> MigCard::Describe(const Held& held) const {
  const MigProfile& profile = *ProfileOf(held.info.profile_id);
  MigSlice slice;
  slice.profile = profile.name;
  slice.start = held.info.placement.start;
  slice.slices = profile.slices;
  slice.gpu_instance = held.info.id;
  if (held.computes.empty()) {
    return slice;
  }
  nvml::ComputeInstanceInfo info{};
  RINGFENCE_TRY(Must("nvmlComputeInstanceGetInfo_v2",
                     api_->nvmlComputeInstanceGetInfo_v2(held.computes[0], &info)));
  if (held.computes.size() != 1 || info.placement.size != profile.compute_slices) {
    return Error{Code::kCorrupt,
                 uuid_ + ": GPU instance " + std::to_string(held.info.id) +
                     " is divided into compute instances, which share memory and faults",
                 "remove them: `nvidia-smi mig -dci`"};
  }
  slice.compute_instance = info.id;
  RINGFENCE_ASSIGN(nvml::Device device, DeviceOf(held.info.id));
  std::array<char, nvml::kUuidBytes + 1> text{};
  RINGFENCE_TRY(
      Must("nvmlDeviceGetUUID", api_->nvmlDeviceGetUUID(device, text.data(), nvml::kUuidBytes)));
  slice.uuid = text.data();
  nvml::Memory memory{};
  RINGFENCE_TRY(Must("nvmlDeviceGetMemoryInfo", api_->nvmlDeviceGetMemoryInfo(device, &memory)));
  slice.memory_bytes = memory.total;
  return slice;
}

Result<LiveMig> MigCard::Read() const {
  LiveMig live;
  live.gpu = uuid_;
  live.board = board_->name;
  RINGFENCE_ASSIGN(live.enabled, Enabled());
  if (!live.enabled) {
    return live;
  }
  RINGFENCE_ASSIGN(const std::vector<Held> instances, Instances());
  for (const Held& held : instances) {
    RINGFENCE_ASSIGN(MigSlice slice, Describe(held));
    live.slices.push_back(std::move(slice));
  }
  return live;
}

Status MigCard::Remove(const Held& held) const {
  for (nvml::ComputeInstance compute : held.computes) {
    RINGFENCE_TRY(Must("nvmlComputeInstanceDestroy", api_->nvmlComputeInstanceDestroy(compute)));
  }
  RINGFENCE_FAILPOINT("mig.unmade");
  return Must("nvmlGpuInstanceDestroy", api_->nvmlGpuInstanceDestroy(held.handle));
}

Status MigCard::MakeCompute(nvml::GpuInstance instance, const MigProfile& profile) const {
  for (unsigned int kind = 0; kind < nvml::kComputeInstanceProfiles; ++kind) {
    nvml::ComputeInstanceProfile shape{};
    if (api_->nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, kind, 0, &shape) !=
            nvml::kSuccess ||
        shape.slices != profile.compute_slices) {
      continue;
    }
    nvml::ComputeInstance compute = nullptr;
    return Must("nvmlGpuInstanceCreateComputeInstance",
                api_->nvmlGpuInstanceCreateComputeInstance(instance, shape.id, &compute));
  }
  return Error{Code::kCorrupt, uuid_ + ": " + profile.name + " can have no compute instance"};
}

Status MigCard::Make(const MigWish& wish) const {
  const MigProfile& profile = board_->profiles[board_->Find(wish.profile)];
  const nvml::GpuInstancePlacement place{*wish.start, profile.slices};
  nvml::GpuInstance made = nullptr;
  RINGFENCE_TRY(
      Must("nvmlDeviceCreateGpuInstanceWithPlacement",
           api_->nvmlDeviceCreateGpuInstanceWithPlacement(device_, profile.id, &place, &made)));
  RINGFENCE_FAILPOINT("mig.made");
  return MakeCompute(made, profile);
}

Status MigCard::Reach(const MigTarget& target) const {
  std::vector<MigInstance> wanted;
  for (const MigWish& wish : target.instances) {
    const std::size_t profile = board_->Find(wish.profile);
    if (profile == MigBoard::npos || !wish.start.has_value() || wish.count != 1) {
      return Error{Code::kInvalidArgument, "the target names no place for " + wish.profile};
    }
    wanted.push_back({profile, *wish.start});
  }
  RINGFENCE_TRY(CheckMigInstances(*board_, wanted));
  RINGFENCE_ASSIGN(const bool enabled, Enabled());
  std::vector<MigWish> missing = target.instances;
  if (enabled) {
    RINGFENCE_ASSIGN(const std::vector<Held> instances, Instances());
    for (const Held& held : instances) {
      const MigProfile& profile = *ProfileOf(held.info.profile_id);
      const auto same = std::find(missing.begin(), missing.end(),
                                  MigWish{profile.name, 1, held.info.placement.start});
      if (!target.enabled || same == missing.end()) {
        RINGFENCE_TRY(Remove(held));
        continue;
      }
      missing.erase(same);
      if (held.computes.empty()) {  // somebody died between two steps
        RINGFENCE_TRY(MakeCompute(held.handle, profile));
      }
    }
  }
  if (enabled != target.enabled) {
    RINGFENCE_TRY(SetMode(target.enabled));
    RINGFENCE_FAILPOINT("mig.mode");
  }
  for (const MigWish& wish : missing) {
    RINGFENCE_TRY(Make(wish));
  }
  return {};
}

}  // namespace

MigTarget TargetOf(const LiveMig& live) {
  MigTarget target;
  target.enabled = live.enabled;
  for (const MigSlice& slice : live.slices) {
    target.instances.push_back({slice.profile, 1, slice.start});
  }
  return target;
}

Result<LiveMig> ReadMig(const std::string& driver_root, const std::string& uuid) {
  RINGFENCE_ASSIGN(const MigCard card, MigCard::Open(driver_root, uuid));
  return card.Read();
}

Result<LiveMig> ApplyMig(const std::string& driver_root, const std::string& uuid,
                         const MigTarget& target, const std::optional<MigTarget>& before) {
  RINGFENCE_ASSIGN(const MigCard card, MigCard::Open(driver_root, uuid));
  RINGFENCE_ASSIGN(const LiveMig found, card.Read());
  if (const Status reached = card.Reach(target); !reached.has_value()) {
    Error error = reached.error();
    const Status back = card.Reach(before.value_or(TargetOf(found)));
    error.message += back.has_value()
                         ? "; what was there before is there again"
                         : "; and putting back what was there failed: " + back.error().message;
    if (!back.has_value()) {
      error.code = Code::kCorrupt;
    }
    return error;
  }
  RINGFENCE_ASSIGN(LiveMig after, card.Read());
  MigTarget there = TargetOf(after);
  MigTarget sorted = target;
  const auto by_start = [](const MigWish& a, const MigWish& b) { return *a.start < *b.start; };
  std::sort(sorted.instances.begin(), sorted.instances.end(), by_start);
  std::sort(there.instances.begin(), there.instances.end(), by_start);
  if (there != sorted) {
    return Error{Code::kCorrupt, uuid + ": every call succeeded, and now it is \"" +
                                     FormatMigTarget(there) + "\" instead of \"" +
                                     FormatMigTarget(sorted) + "\""};
  }
  return after;
}

MigOutcome TryMig(const std::string& driver_root, const std::string& uuid, const MigTarget& target,
                  const MigTarget& before) {
  MigOutcome outcome;
  auto applied = ApplyMig(driver_root, uuid, target, before);
  if (applied.has_value()) {
    outcome.live = std::move(*applied);
    return outcome;
  }
  outcome.reason = applied.error().message;
  if (auto live = ReadMig(driver_root, uuid); live.has_value()) {
    outcome.live = std::move(*live);
  }
  return outcome;
}

}  // namespace ringfence::gpu

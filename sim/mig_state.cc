#include "mig_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/json.h"
#include "driver.h"

namespace ringfence::sim {
namespace {

constexpr std::size_t kStateBytesMax = 65536;
constexpr int kUnknown = 999;

// The same GPU, instance and compute instance have the same UUID each time, as on real boards.
std::string SliceUuid(const std::string& gpu, std::uint32_t instance, std::uint32_t compute) {
  std::array<std::uint64_t, 2> halves = {0xcbf29ce484222325ULL, 0x84222325cbf29ce4ULL};
  const std::string name = gpu + "/" + std::to_string(instance) + "/" + std::to_string(compute);
  for (std::uint64_t& half : halves) {
    for (const char c : name) {
      half = (half ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    }
    half ^= half >> 29U;
  }
  std::array<char, 64> text{};
  (void)std::snprintf(
      text.data(), text.size(), "MIG-%08x-%04x-5%03x-8%03x-%012llx",
      static_cast<unsigned>(halves[0] >> 32U), static_cast<unsigned>(halves[0] >> 16U & 0xffffU),
      static_cast<unsigned>(halves[0] & 0xfffU), static_cast<unsigned>(halves[1] >> 48U & 0xfffU),
      static_cast<unsigned long long>(halves[1] & 0xffffffffffffULL));
  return text.data();
}

Result<std::uint32_t> Number(JsonReader& reader, const char* name) {
  RINGFENCE_ASSIGN(const std::int64_t number, reader.Int(name, 0, 255));
  return static_cast<std::uint32_t>(number);
}

Result<MigInstance> ReadInstance(const Json& json) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json));
  MigInstance instance;
  RINGFENCE_ASSIGN(instance.id, Number(reader, "id"));
  RINGFENCE_ASSIGN(instance.profile, Number(reader, "profile"));
  RINGFENCE_ASSIGN(instance.start, Number(reader, "start"));
  RINGFENCE_ASSIGN(const auto computes, reader.Array("computes", gpu::kMigComputeInstancesMax));
  for (const Json* one : computes) {
    RINGFENCE_ASSIGN(JsonReader inner, JsonReader::Open(*one));
    MigCompute compute;
    RINGFENCE_ASSIGN(compute.id, Number(inner, "id"));
    RINGFENCE_ASSIGN(compute.profile, Number(inner, "profile"));
    instance.computes.push_back(compute);
  }
  return instance;
}

Result<MigState> Parse(const std::string& text) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kStateBytesMax));
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json));
  MigState state;
  RINGFENCE_ASSIGN(state.enabled, reader.Bool("enabled"));
  RINGFENCE_ASSIGN(const auto instances, reader.Array("instances", gpu::kMigGpuInstancesMax));
  for (const Json* one : instances) {
    RINGFENCE_ASSIGN(MigInstance instance, ReadInstance(*one));
    state.instances.push_back(std::move(instance));
  }
  return state;
}

std::string Text(const MigState& state) {
  JsonArray instances;
  for (const MigInstance& one : state.instances) {
    JsonArray computes;
    for (const MigCompute& compute : one.computes) {
      computes.push_back(JsonObject{{"id", compute.id}, {"profile", compute.profile}});
    }
    instances.push_back(JsonObject{{"id", one.id},
                                   {"profile", one.profile},
                                   {"start", one.start},
                                   {"computes", std::move(computes)}});
  }
  return CanonicalJson(JsonObject{{"enabled", state.enabled}, {"instances", std::move(instances)}});
}

bool WriteState(const std::string& folder, const MigState& state) {
  const std::string text = Text(state);
  const std::string part = folder + "/state.part";
  const int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) {
    return false;
  }
  (void)fchmod(fd, 0644);
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  (void)close(fd);
  return written && rename(part.c_str(), (folder + "/state").c_str()) == 0;
}

}  // namespace

MigInstance* MigState::Find(std::uint32_t id) {
  const auto found = std::find_if(instances.begin(), instances.end(),
                                  [&](const MigInstance& one) { return one.id == id; });
  return found == instances.end() ? nullptr : &*found;
}

const gpu::MigBoard* BoardOf(const gpu::SimulatedGpu& gpu) {
  if (!gpu.mig.has_value() || gpu.slice.has_value()) {
    return nullptr;
  }
  std::array<char, 16> id{};
  (void)std::snprintf(id.data(), id.size(), "0x%08X", gpu.pci_device_id);
  return gpu::MigBoardOfPci(id.data());
}

const gpu::MigProfile* ProfileOf(const gpu::MigBoard& board, std::uint32_t id) {
  const auto found = std::find_if(board.profiles.begin(), board.profiles.end(),
                                  [&](const gpu::MigProfile& one) { return one.id == id; });
  return found == board.profiles.end() ? nullptr : &*found;
}

bool MayPlace(const gpu::MigBoard& board, const MigState& state, const gpu::MigProfile& profile,
              std::uint32_t start) {
  if (std::find(profile.starts.begin(), profile.starts.end(), start) == profile.starts.end()) {
    return false;
  }
  std::uint32_t same = 0;
  std::uint32_t compute_slices = profile.compute_slices;
  for (const MigInstance& one : state.instances) {
    const gpu::MigProfile* there = ProfileOf(board, one.profile);
    if (there == nullptr ||
        (start < one.start + there->slices && one.start < start + profile.slices) ||
        (there->media && profile.media)) {
      return false;
    }
    same += there->id == profile.id ? 1 : 0;
    compute_slices += there->compute_slices;
  }
  return same < profile.count_max && compute_slices <= board.compute_slices;
}

MigState ReadMigState(const std::string& root, const gpu::SimulatedGpu& gpu) {
  MigState state;
  state.enabled = gpu.mig.value_or(false);
  const std::string path = gpu::MigFolder(root, gpu.uuid) + "/state";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return state;
  }
  std::string text(kStateBytesMax, '\0');
  const ssize_t got = read(fd, text.data(), text.size());
  (void)close(fd);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  Result<MigState> parsed = Parse(text);
  return parsed.has_value() ? std::move(*parsed) : state;
}

int ChangeMigState(const std::string& root, const gpu::SimulatedGpu& gpu,
                   const std::function<int(MigState&)>& change) {
  const std::string folder = gpu::MigFolder(root, gpu.uuid);
  (void)mkdir((root + "/mig").c_str(), 0755);
  (void)mkdir(folder.c_str(), 0755);
  const int lock = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) {
    return kUnknown;
  }
  int answer = flock(lock, LOCK_EX) == 0 ? 0 : kUnknown;
  if (answer == 0) {
    MigState state = ReadMigState(root, gpu);
    answer = change(state);
    if (answer == 0) {
      std::sort(state.instances.begin(), state.instances.end(),
                [](const MigInstance& a, const MigInstance& b) { return a.id < b.id; });
      answer = WriteState(folder, state) ? 0 : kUnknown;
    }
  }
  (void)close(lock);
  return answer;
}

bool MakeInstanceFiles(const std::string& root, const gpu::SimulatedGpu& gpu,
                       const MigInstance& instance) {
  const gpu::MigBoard* board = BoardOf(gpu);
  const gpu::MigProfile* profile = ProfileOf(*board, instance.profile);
  const std::string folder = gpu::MigInstanceFolder(root, gpu.uuid, instance.id);
  (void)mkdir(folder.c_str(), 0755);
  const int information =
      open((folder + "/information").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  const int memory =
      open((folder + "/memory").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  const auto bytes = static_cast<off_t>(gpu::SimulatedSliceMib(gpu, *board, *profile) << 20U);
  const bool made = information >= 0 && fchmod(information, 0644) == 0 && memory >= 0 &&
                    ftruncate(memory, bytes) == 0;
  for (const int fd : {information, memory}) {
    if (fd >= 0) {
      (void)close(fd);
    }
  }
  return made;
}

gpu::SimulatedGpu SliceOf(const gpu::SimulatedGpu& gpu, const MigInstance& instance,
                          const MigCompute& compute) {
  const gpu::MigBoard* board = BoardOf(gpu);
  const gpu::MigProfile* profile = ProfileOf(*board, instance.profile);
  gpu::SimulatedGpu slice = gpu;
  slice.slice = {gpu.uuid, instance.id, compute.id,
                 profile->processors == 0 ? 16 : profile->processors};
  slice.uuid = SliceUuid(gpu.uuid, instance.id, compute.id);
  slice.model = gpu.model + " MIG " + profile->name;
  slice.memory_mib = gpu::SimulatedSliceMib(gpu, *board, *profile);
  slice.reserved_mib = 0;
  slice.mig.reset();
  // Its part of the card's memory, with what is broken there.
  const std::uint64_t from = gpu.usable_bytes() / board->slices * instance.start;
  slice.bad_memory.clear();
  for (gpu::BadByte bad : gpu.bad_memory) {
    if (bad.offset >= from && bad.offset - from < slice.memory_bytes()) {
      bad.offset -= from;
      slice.bad_memory.push_back(bad);
    }
  }
  return slice;
}

std::string CapPath(const std::string& devices, std::uint32_t minor) {
  return devices + "/nvidia-caps/nvidia-cap" + std::to_string(minor);
}

bool MayUse(const std::string& devices, const gpu::SimulatedGpu& gpu, const MigInstance& instance,
            const MigCompute& compute) {
  const auto minor = [&](std::optional<std::uint32_t> id) {
    return gpu::SimulatedCapMinor(gpu.minor, instance.id, id);
  };
  return OpenNode(CapPath(devices, minor(std::nullopt)), Use::kRead) == 0 &&
         OpenNode(CapPath(devices, minor(compute.id)), Use::kRead) == 0;
}

}  // namespace ringfence::sim

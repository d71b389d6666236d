#include "gpu/scrub.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/bytes.h"
#include "base/encoding.h"
#include "crypto/random.h"
#include "gpu/card.h"
#include "gpu/cuda_driver.h"
#include "gpu/hip_scrub.h"
#include "gpu/inventory.h"
#include "gpu/kernel_image.h"
#include "gpu/library.h"
#include "gpu/limits.h"
#include "os/failpoint.h"

namespace ringfence::gpu {
namespace {

// The driver keeps some of a card for itself and some for our context: 1.5% of an H200. More than
// this share out of reach means that something else holds it, and then nothing is proven.
constexpr std::uint64_t kUnreachedShareMax = 32;  // one part in so many
// So many times its size must have gone through a cache before we say that nothing older is in it.
constexpr std::uint64_t kDisplacedTimes = 16;

Result<std::vector<Gpu>> FindWanted(const Inventory& inventory,
                                    const std::vector<std::string>& uuids) {
  if (uuids.empty() || uuids.size() > kGpusMax) {
    return Error{Code::kInvalidArgument,
                 "name from 1 to " + std::to_string(kGpusMax) + " GPUs to scrub"};
  }
  std::vector<Gpu> wanted;
  std::set<std::string> seen;
  for (const std::string& uuid : uuids) {
    const auto found = std::find_if(inventory.gpus.begin(), inventory.gpus.end(),
                                    [&](const Gpu& gpu) { return gpu.uuid == uuid; });
    if (found == inventory.gpus.end()) {
      return Error{Code::kNotFound, "no GPU " + uuid + " is visible here",
                   "check its device file and that the card is not lost"};
    }
    if (!seen.insert(uuid).second) {
      return Error{Code::kInvalidArgument, "GPU " + uuid + " is named twice"};
    }
    if (!found->processes.empty()) {
      return Error{Code::kFailedPrecondition,
                   uuid + " is in use by process " + std::to_string(found->processes[0].pid),
                   "end every process on the card first"};
    }
    if (found->mig_enabled.value_or(false)) {
      return Error{Code::kFailedPrecondition, uuid +
                                                  " is in MIG mode: a scrub of the whole card "
                                                  "cannot reach its instances"};
    }
    if (!found->compute_partition.empty() && found->compute_partition != "SPX") {
      return Error{Code::kFailedPrecondition,
                   uuid + " is divided (" + found->compute_partition +
                       "): a scrub of the whole card cannot reach its partitions",
                   "amd-smi set --compute-partition SPX"};
    }
    if (!wanted.empty() && wanted.front().vendor != found->vendor) {
      return Error{Code::kInvalidArgument, uuid + " and " + wanted.front().uuid +
                                               " are of two vendors: scrub them one by one"};
    }
    wanted.push_back(*found);
  }
  return wanted;
}

// Without what says whether it is a GPU or a slice of one: CUDA does not.
std::string UuidText(const cuda::Uuid& uuid) {
  const std::string hex = Hex(std::as_bytes(std::span(uuid.bytes)));
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

Result<cuda::Device> FindDevice(const cuda::Api& api, const std::string& uuid) {
  constexpr std::size_t kPrefix = 4;  // "GPU-", "MIG-"
  const auto failed = [&](const char* function, cuda::CuResult code) {
    return Error{Code::kUnavailable,
                 uuid + ": " + std::string(function) + ": " + CudaWords(api, code)};
  };
  int count = 0;
  if (const auto code = api.cuDeviceGetCount(&count); code != cuda::kSuccess) {
    return failed("cuDeviceGetCount", code);
  }
  for (int i = 0; i < count; ++i) {
    cuda::Device device = 0;
    cuda::Uuid found{};
    if (const auto code = api.cuDeviceGet(&device, i); code != cuda::kSuccess) {
      return failed("cuDeviceGet", code);
    }
    if (const auto code = api.cuDeviceGetUuid_v2(&found, device); code != cuda::kSuccess) {
      return failed("cuDeviceGetUuid_v2", code);
    }
    if (uuid.size() > kPrefix && UuidText(found) == uuid.substr(kPrefix)) {
      return device;
    }
  }
  return Error{Code::kNotFound, uuid + ": NVML shows this GPU and CUDA does not",
               "check /dev/nvidia-uvm and CUDA_VISIBLE_DEVICES"};
}

std::uint64_t MicrosecondsSince(std::chrono::steady_clock::time_point start) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::steady_clock::now() - start)
                                        .count());
}

Status CheckReach(const Gpu& gpu, std::uint64_t taken_bytes) {
  if (taken_bytes > gpu.memory_bytes) {
    return Error{Code::kCorrupt, gpu.uuid + ": more memory was given out than the card has"};
  }
  if (gpu.memory_bytes - taken_bytes > gpu.memory_bytes / kUnreachedShareMax) {
    return Error{Code::kFailedPrecondition,
                 gpu.uuid + ": only " + std::to_string(taken_bytes) + " of " +
                     std::to_string(gpu.memory_bytes) +
                     " bytes can be reached: something else holds the rest",
                 "end every process on the card first"};
  }
  return {};
}

// The passes over all of a card's memory.
Status ScrubMemory(Card& card, ScrubResult& result) {
  const auto timed = [&](const char* name, const auto& pass) {
    const auto start = std::chrono::steady_clock::now();
    auto done = pass();
    result.passes.push_back({name, MicrosecondsSince(start)});
    return done;
  };
  RINGFENCE_ASSIGN(const std::uint64_t residue,
                   timed("count residue", [&] { return card.Count(Content::kZeros); }));
  RINGFENCE_TRY(timed("write pattern", [&] { return card.Fill(Content::kPattern); }));
  RINGFENCE_FAILPOINT("worker.overwritten");
  RINGFENCE_ASSIGN(const std::uint64_t bad_pattern,
                   timed("read pattern", [&] { return card.Count(Content::kPattern); }));
  RINGFENCE_TRY(timed("write zeros", [&] { return card.Fill(Content::kZeros); }));
  RINGFENCE_ASSIGN(const std::uint64_t bad_zeros,
                   timed("read zeros", [&] { return card.Count(Content::kZeros); }));
  result.residue_bytes += residue;
  result.mismatch_bytes += bad_pattern + bad_zeros;
  return {};
}

Result<ScrubResult> ScrubCard(CardDriver& driver, const Gpu& gpu, std::uint64_t seed) {
  const auto start = std::chrono::steady_clock::now();
  ScrubResult result;
  result.uuid = gpu.uuid;
  result.memory_bytes = gpu.memory_bytes;
  if (gpu.slice.has_value()) {
    result.parent = gpu.slice->parent;
    result.profile = gpu.slice->profile;
  }
  Card card(driver, gpu.uuid, seed);
  RINGFENCE_TRY(card.Open());
  // First, while shared memory is as it was found; and last, since reading memory leaves some of it
  // in the caches that shared memory is cut from.
  RINGFENCE_ASSIGN(result.mismatch_bytes, card.ClearOnChip(result.on_chip));
  RINGFENCE_ASSIGN(result.residue_bytes, card.Warm());
  RINGFENCE_TRY(card.TakeAll());
  RINGFENCE_TRY(CheckReach(gpu, card.taken_bytes()));
  result.reached_bytes = card.taken_bytes();
  RINGFENCE_TRY(ScrubMemory(card, result));
  OnChipScrub last;
  RINGFENCE_ASSIGN(const std::uint64_t bad_last, card.ClearOnChip(last));
  result.mismatch_bytes += bad_last;
  last.shared_residue_bytes = result.on_chip.shared_residue_bytes;
  if (last.multiprocessors_reached < result.on_chip.multiprocessors_reached) {
    result.on_chip = last;
  }
  RINGFENCE_TRY(card.Release());
  result.duration_us = MicrosecondsSince(start);
  return result;
}

// What one card's scrub reached and what it did not, for people.
void Account(const ScrubResult& result, ScrubReport& report) {
  const OnChipScrub& chip = result.on_chip;
  const auto bytes = [](std::uint64_t count) { return std::to_string(count) + " bytes of "; };
  report.covered.push_back(result.uuid + ": " + bytes(result.reached_bytes) +
                           "memory, overwritten and read back");
  report.not_covered.push_back(result.uuid + ": " +
                               bytes(result.memory_bytes - result.reached_bytes) +
                               "memory that the driver holds back");
  const auto on_chip = [&](const char* what, std::uint64_t reached, std::uint64_t all) {
    if (reached > 0) {
      report.covered.push_back(result.uuid + ": " + bytes(reached) + what + " on " +
                               std::to_string(chip.multiprocessors_reached) +
                               " multiprocessors, overwritten and read back");
    }
    if (reached < all) {
      report.not_covered.push_back(result.uuid + ": " + bytes(all - reached) + what +
                                   " that no kernel reaches");
    }
  };
  on_chip("shared memory", chip.shared_reached_bytes, chip.shared_bytes);
  on_chip("registers", chip.register_reached_bytes, chip.register_bytes);
  if (chip.multiprocessors_reached < chip.multiprocessors) {
    report.not_covered.push_back(
        result.uuid + ": " + std::to_string(chip.multiprocessors - chip.multiprocessors_reached) +
        " of " + std::to_string(chip.multiprocessors) + " multiprocessors, which ran no kernel");
  }
  // Each pass streams all of the memory through it, in one direction.
  if (chip.l2_bytes == 0) {
    return;
  }
  if (result.reached_bytes / kDisplacedTimes >= chip.l2_bytes) {
    report.covered.push_back(result.uuid + ": " + bytes(chip.l2_bytes) +
                             "L2 cache, displaced by the passes and not read back by itself");
  } else {
    report.not_covered.push_back(result.uuid + ": " + bytes(chip.l2_bytes) +
                                 "L2 cache: too little memory went through it");
  }
}

Status ScrubThroughCuda(const std::string& driver_root, const std::vector<Gpu>& gpus,
                        const ScrubOne& scrub, ScrubReport& report) {
  RINGFENCE_ASSIGN(const Library library, Library::Open(driver_root, kCudaName));
  const cuda::Api api = LoadCuda(library);
  RINGFENCE_TRY(CheckCuda(api, library.path()));
  report.simulated = report.simulated || library.simulated();
  RINGFENCE_ASSIGN(report.library_digest, library.FileDigest());
  if (const auto code = api.cuInit(0); code != cuda::kSuccess) {
    return Error{Code::kUnavailable, "cuInit: " + CudaWords(api, code)};
  }
  int version = 0;
  if (const auto code = api.cuDriverGetVersion(&version); code != cuda::kSuccess) {
    return Error{Code::kUnavailable, "cuDriverGetVersion: " + CudaWords(api, code)};
  }
  report.driver_version = CudaVersionText(version);
  report.kernels_digest = KernelDigest();
  for (const Gpu& gpu : gpus) {
    RINGFENCE_ASSIGN(const cuda::Device device, FindDevice(api, gpu.uuid));
    CudaDriver driver(api, gpu.uuid, device);
    RINGFENCE_TRY(scrub(driver, gpu));
  }
  report.not_covered.emplace_back(
      "constant, instruction and texture caches, the rest of L1, uniform registers, and memory of "
      "firmware, copy and video engines, of every card");
  return {};
}

}  // namespace

Result<ScrubReport> Scrub(const std::string& driver_root, const std::vector<std::string>& uuids) {
  RINGFENCE_ASSIGN(const Inventory inventory, ReadInventory(driver_root));
  RINGFENCE_ASSIGN(const std::vector<Gpu> wanted, FindWanted(inventory, uuids));
  const bool amd = wanted.front().vendor == kAmd;
  ScrubReport report;
  report.simulated = inventory.simulated;
  report.kernel_driver = amd ? "amdgpu " + inventory.amd->version : inventory.kernel_driver;
  report.kernels_digest = "none: done by the host";
  const Bytes seed = crypto::RandomBytes(sizeof(std::uint64_t));
  report.pattern = "16-byte vectors by place and seed " + Hex(seed) + ", then zeros";
  const auto scrub = [&](CardDriver& driver, const Gpu& gpu) -> Status {
    RINGFENCE_ASSIGN(ScrubResult result, ScrubCard(driver, gpu, GetBigEndian<std::uint64_t>(seed)));
    Account(result, report);
    report.gpus.push_back(std::move(result));
    return {};
  };
  RINGFENCE_TRY(amd ? ScrubThroughHip(driver_root, wanted, scrub, report)
                    : ScrubThroughCuda(driver_root, wanted, scrub, report));
  return report;
}

}  // namespace ringfence::gpu

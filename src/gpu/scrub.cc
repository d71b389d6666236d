#include "gpu/scrub.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/encoding.h"
#include "gpu/count.h"
#include "gpu/cuda_card.h"
#include "gpu/inventory.h"
#include "gpu/library.h"
#include "gpu/limits.h"
#include "os/failpoint.h"

namespace ringfence::gpu {
namespace {

// The driver keeps some of a card for itself and some for our context: 1.5% of an H200. More than
// this share out of reach means that something else holds it, and then nothing is proven.
constexpr std::uint64_t kUnreachedShareMax = 32;  // one part in so many

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
    wanted.push_back(*found);
  }
  return wanted;
}

std::string UuidText(const cuda::Uuid& uuid) {
  const std::string hex = Hex(std::as_bytes(std::span(uuid.bytes)));
  return "GPU-" + hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

Result<cuda::Device> FindDevice(const cuda::Api& api, const std::string& uuid) {
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
    if (UuidText(found) == uuid) {
      return device;
    }
  }
  return Error{Code::kNotFound, uuid + ": NVML shows this GPU and CUDA does not",
               "check /dev/nvidia-uvm and CUDA_VISIBLE_DEVICES"};
}

Result<ScrubResult> ScrubCard(const cuda::Api& api, const Gpu& gpu) {
  const auto start = std::chrono::steady_clock::now();
  RINGFENCE_ASSIGN(const cuda::Device device, FindDevice(api, gpu.uuid));
  CudaCard card(api, gpu.uuid);
  RINGFENCE_TRY(card.Open(device));
  RINGFENCE_ASSIGN(const std::uint64_t warm_residue, card.Warm());
  RINGFENCE_TRY(card.TakeAll());
  if (card.taken_bytes() > gpu.memory_bytes) {
    return Error{Code::kCorrupt, gpu.uuid + ": more memory was given out than the card has"};
  }
  const std::uint64_t unreached = gpu.memory_bytes - card.taken_bytes();
  if (unreached > gpu.memory_bytes / kUnreachedShareMax) {
    return Error{Code::kFailedPrecondition,
                 gpu.uuid + ": only " + std::to_string(card.taken_bytes()) + " of " +
                     std::to_string(gpu.memory_bytes) +
                     " bytes can be reached: something else holds the rest",
                 "end every process on the card first"};
  }
  const auto not_zero = [](const Slice&, auto bytes) { return CountNonZero(bytes); };
  const auto not_pattern = [](const Slice& slice, auto bytes) {
    return CountDifferent(bytes, slice.pattern);
  };
  RINGFENCE_ASSIGN(const std::uint64_t residue, card.Count(not_zero));
  RINGFENCE_TRY(card.FillPatterns());
  RINGFENCE_FAILPOINT("worker.overwritten");
  RINGFENCE_ASSIGN(const std::uint64_t bad_pattern, card.Count(not_pattern));
  RINGFENCE_TRY(card.FillZeros());
  RINGFENCE_ASSIGN(const std::uint64_t bad_zeros, card.Count(not_zero));
  ScrubResult result;
  result.uuid = gpu.uuid;
  result.memory_bytes = gpu.memory_bytes;
  result.reached_bytes = card.taken_bytes();
  result.residue_bytes = warm_residue + residue;
  result.mismatch_bytes = bad_pattern + bad_zeros;
  RINGFENCE_TRY(card.Release());
  result.duration_us =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                     std::chrono::steady_clock::now() - start)
                                     .count());
  return result;
}

}  // namespace

Result<ScrubReport> Scrub(const std::string& driver_root, const std::vector<std::string>& uuids) {
  RINGFENCE_ASSIGN(const Inventory inventory, ReadInventory(driver_root));
  RINGFENCE_ASSIGN(const std::vector<Gpu> wanted, FindWanted(inventory, uuids));
  RINGFENCE_ASSIGN(const Library library, Library::Open(driver_root, kCudaName));
  const cuda::Api api = LoadCuda(library);
  RINGFENCE_TRY(CheckCuda(api, library.path()));
  ScrubReport report;
  report.simulated = library.simulated() || inventory.simulated;
  report.kernel_driver = inventory.kernel_driver;
  RINGFENCE_ASSIGN(report.library_digest, library.FileDigest());
  if (const auto code = api.cuInit(0); code != cuda::kSuccess) {
    return Error{Code::kUnavailable, "cuInit: " + CudaWords(api, code)};
  }
  int version = 0;
  if (const auto code = api.cuDriverGetVersion(&version); code != cuda::kSuccess) {
    return Error{Code::kUnavailable, "cuDriverGetVersion: " + CudaWords(api, code)};
  }
  report.driver_version = CudaVersionText(version);
  for (const Gpu& gpu : wanted) {
    RINGFENCE_ASSIGN(ScrubResult result, ScrubCard(api, gpu));
    report.not_covered.push_back(gpu.uuid + ": " +
                                 std::to_string(result.memory_bytes - result.reached_bytes) +
                                 " bytes of memory that the driver holds back");
    report.gpus.push_back(std::move(result));
  }
  report.not_covered.emplace_back("on-chip shared memory, registers and caches of every card");
  return report;
}

}  // namespace ringfence::gpu

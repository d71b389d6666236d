#include "gpu/cuda_card.h"

#include <algorithm>
#include <system_error>
#include <thread>

#include "gpu/count.h"

namespace ringfence::gpu {
namespace {

constexpr std::size_t kChunkBytesMax = std::size_t{1} << 30U;
constexpr std::size_t kChunkBytesMin = std::size_t{64} << 10U;
constexpr std::size_t kAllocationsMax = 16384;
constexpr std::size_t kSliceBytes = std::size_t{16} << 20U;
// The copy engine serves one at a time; the others compare meanwhile.
constexpr std::size_t kPassThreads = 4;
constexpr unsigned int kBlockingSync = 4;  // CU_CTX_SCHED_BLOCKING_SYNC: wait without spinning

// Never zero, and no two alike among the first 2^32 (an odd factor is a permutation).
std::uint32_t PatternOf(std::size_t index) {
  const auto word = static_cast<std::uint32_t>(index + 1) * 0x9e3779b1U;
  return word == 0 ? 0x5aa5c33cU : word;
}

}  // namespace

struct CudaCard::Pass {
  const Counter* count = nullptr;
  std::atomic<std::size_t> next = 0;
  std::atomic<std::uint64_t> total = 0;
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::optional<Error> error;  // the first

  void Fail(const Error& why) {
    const std::lock_guard lock(mutex);
    if (!error.has_value()) {
      error = why;
    }
    stop = true;
  }
};

std::string CudaWords(const cuda::Api& api, cuda::CuResult code) {
  const char* name = nullptr;
  const char* words = nullptr;
  (void)api.cuGetErrorName(code, &name);
  (void)api.cuGetErrorString(code, &words);
  return std::string(name == nullptr ? "unnamed error" : name) + ": " +
         (words == nullptr ? "no words" : words) + " (" + std::to_string(static_cast<int>(code)) +
         ")";
}

Status CheckCuda(const cuda::Api& api, const std::string& path) {
  const std::pair<const void*, const char*> needed[] = {
#define RINGFENCE_NEED(name) {reinterpret_cast<const void*>(api.name), #name}
      RINGFENCE_NEED(cuInit),
      RINGFENCE_NEED(cuDriverGetVersion),
      RINGFENCE_NEED(cuGetErrorName),
      RINGFENCE_NEED(cuGetErrorString),
      RINGFENCE_NEED(cuDeviceGetCount),
      RINGFENCE_NEED(cuDeviceGet),
      RINGFENCE_NEED(cuDeviceGetUuid_v2),
      RINGFENCE_NEED(cuCtxCreate_v2),
      RINGFENCE_NEED(cuCtxDestroy_v2),
      RINGFENCE_NEED(cuCtxSetCurrent),
      RINGFENCE_NEED(cuCtxSynchronize),
      RINGFENCE_NEED(cuMemGetInfo_v2),
      RINGFENCE_NEED(cuMemAlloc_v2),
      RINGFENCE_NEED(cuMemFree_v2),
      RINGFENCE_NEED(cuMemcpyDtoH_v2),
      RINGFENCE_NEED(cuMemsetD32_v2),
      RINGFENCE_NEED(cuMemHostAlloc),
      RINGFENCE_NEED(cuMemFreeHost),
#undef RINGFENCE_NEED
  };
  for (const auto& [function, name] : needed) {
    if (function == nullptr) {
      return Error{Code::kFailedPrecondition, path + " has no function " + name,
                   "use a driver of branch 525 or later"};
    }
  }
  return {};
}

Status CudaCard::Check(const char* function, cuda::CuResult code) const {
  if (code == cuda::kSuccess) {
    return {};
  }
  return Error{Code::kUnavailable, uuid_ + ": " + function + ": " + CudaWords(api_, code)};
}

Status CudaCard::Open(cuda::Device device) {
  RINGFENCE_TRY(Check("cuCtxCreate_v2", api_.cuCtxCreate_v2(&context_, kBlockingSync, device)));
  for (std::size_t i = 0; i < kPassThreads; ++i) {
    void* memory = nullptr;
    RINGFENCE_TRY(Check("cuMemHostAlloc", api_.cuMemHostAlloc(&memory, kSliceBytes, 0)));
    staging_.push_back(memory);
  }
  return {};
}

void CudaCard::Keep(cuda::DevicePointer pointer, std::size_t bytes) {
  allocations_.push_back(pointer);
  taken_bytes_ += bytes;
  for (std::size_t at = 0; at < bytes; at += kSliceBytes) {
    slices_.push_back({pointer + at, std::min(kSliceBytes, bytes - at), PatternOf(slices_.size())});
  }
}

Result<std::uint64_t> CudaCard::Warm() {
  cuda::DevicePointer pointer = 0;
  RINGFENCE_TRY(Check("cuMemAlloc_v2", api_.cuMemAlloc_v2(&pointer, kChunkBytesMin)));
  Keep(pointer, kChunkBytesMin);
  RINGFENCE_ASSIGN(const std::uint64_t residue,
                   Count([](const Slice&, auto bytes) { return CountNonZero(bytes); }));
  RINGFENCE_TRY(FillPatterns());
  RINGFENCE_TRY(FillZeros());
  allocations_.clear();
  slices_.clear();
  taken_bytes_ = 0;
  RINGFENCE_TRY(Check("cuMemFree_v2", api_.cuMemFree_v2(pointer)));
  return residue;
}

Status CudaCard::TakeAll() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  RINGFENCE_TRY(Check("cuMemGetInfo_v2", api_.cuMemGetInfo_v2(&free_bytes, &total_bytes)));
  std::size_t chunk = kChunkBytesMax;
  while (chunk >= kChunkBytesMin && allocations_.size() < kAllocationsMax) {
    cuda::DevicePointer pointer = 0;
    const cuda::CuResult code =
        chunk > free_bytes ? cuda::kOutOfMemory : api_.cuMemAlloc_v2(&pointer, chunk);
    if (code == cuda::kOutOfMemory) {
      chunk /= 2;
      continue;
    }
    RINGFENCE_TRY(Check("cuMemAlloc_v2", code));
    Keep(pointer, chunk);
  }
  if (allocations_.empty()) {
    return Error{Code::kUnavailable, uuid_ + ": no memory can be allocated, though CUDA counts " +
                                         std::to_string(free_bytes) + " bytes free"};
  }
  return {};
}

void CudaCard::Work(Pass& pass, std::byte* staging) const {
  if (const Status current = Check("cuCtxSetCurrent", api_.cuCtxSetCurrent(context_));
      !current.has_value()) {
    pass.Fail(current.error());
    return;
  }
  while (!pass.stop) {
    const std::size_t index = pass.next++;
    if (index >= slices_.size()) {
      return;
    }
    const Slice& slice = slices_[index];
    const Status copied =
        Check("cuMemcpyDtoH_v2", api_.cuMemcpyDtoH_v2(staging, slice.pointer, slice.bytes));
    if (!copied.has_value()) {
      pass.Fail(copied.error());
      return;
    }
    pass.total += (*pass.count)(slice, {staging, slice.bytes});
  }
}

Result<std::uint64_t> CudaCard::Count(const Counter& count) {
  Pass pass;
  pass.count = &count;
  std::vector<std::thread> helpers;
  const std::size_t wanted = std::min(slices_.size(), staging_.size());
  for (std::size_t i = 1; i < wanted; ++i) {
    try {
      helpers.emplace_back([&, i] { Work(pass, static_cast<std::byte*>(staging_[i])); });
    } catch (const std::system_error&) {
      break;  // no thread to be had: the others do it all, slower
    }
  }
  Work(pass, static_cast<std::byte*>(staging_[0]));
  for (std::thread& helper : helpers) {
    helper.join();
  }
  if (pass.error.has_value()) {
    return *pass.error;
  }
  return pass.total.load();
}

Status CudaCard::Fill(const std::function<std::uint32_t(const Slice&)>& pattern) {
  for (const Slice& slice : slices_) {
    RINGFENCE_TRY(Check(
        "cuMemsetD32_v2",
        api_.cuMemsetD32_v2(slice.pointer, pattern(slice), slice.bytes / sizeof(std::uint32_t))));
  }
  return Check("cuCtxSynchronize", api_.cuCtxSynchronize());
}

Status CudaCard::FillPatterns() {
  return Fill([](const Slice& slice) { return slice.pattern; });
}

Status CudaCard::FillZeros() {
  return Fill([](const Slice&) { return 0U; });
}

Status CudaCard::Release() {
  Status first;
  const auto note = [&](const char* function, cuda::CuResult code) {
    if (Status status = Check(function, code); !status.has_value() && first.has_value()) {
      first = std::move(status);
    }
  };
  for (const cuda::DevicePointer pointer : allocations_) {
    note("cuMemFree_v2", api_.cuMemFree_v2(pointer));
  }
  allocations_.clear();
  for (void* memory : staging_) {
    note("cuMemFreeHost", api_.cuMemFreeHost(memory));
  }
  staging_.clear();
  if (context_ != nullptr) {
    note("cuCtxDestroy_v2", api_.cuCtxDestroy_v2(context_));
    context_ = nullptr;
  }
  return first;
}

}  // namespace ringfence::gpu

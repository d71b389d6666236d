#include "gpu/cuda_driver.h"

#include <utility>

#include "gpu/kernel_image.h"
#include "gpu/scrub_kernels.h"

namespace ringfence::gpu {
namespace {

constexpr unsigned int kBlockingSync = 4;  // CU_CTX_SCHED_BLOCKING_SYNC: wait without spinning

}  // namespace

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
      RINGFENCE_NEED(cuDeviceGetAttribute),
      RINGFENCE_NEED(cuCtxCreate_v2),
      RINGFENCE_NEED(cuCtxDestroy_v2),
      RINGFENCE_NEED(cuCtxSynchronize),
      RINGFENCE_NEED(cuMemGetInfo_v2),
      RINGFENCE_NEED(cuMemAlloc_v2),
      RINGFENCE_NEED(cuMemFree_v2),
      RINGFENCE_NEED(cuMemsetD32_v2),
      RINGFENCE_NEED(cuMemHostAlloc),
      RINGFENCE_NEED(cuMemFreeHost),
      RINGFENCE_NEED(cuModuleLoadData),
      RINGFENCE_NEED(cuModuleUnload),
      RINGFENCE_NEED(cuModuleGetFunction),
      RINGFENCE_NEED(cuFuncGetAttribute),
      RINGFENCE_NEED(cuFuncSetAttribute),
      RINGFENCE_NEED(cuLaunchKernel),
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

Status CudaDriver::Check(const char* function, cuda::CuResult code) const {
  if (code == cuda::kSuccess) {
    return {};
  }
  return Error{Code::kUnavailable, uuid_ + ": " + function + ": " + CudaWords(api_, code)};
}

Status CudaDriver::Open() {
  RINGFENCE_TRY(Check("cuCtxCreate_v2", api_.cuCtxCreate_v2(&context_, kBlockingSync, device_)));
  RINGFENCE_TRY(ReadFacts());
  return LoadKernels();
}

Status CudaDriver::ReadFacts() {
  const auto read = [this](cuda::Attribute attribute, auto& into) -> Status {
    int value = 0;
    RINGFENCE_TRY(
        Check("cuDeviceGetAttribute", api_.cuDeviceGetAttribute(&value, attribute, device_)));
    if (value < 0) {
      return Error{Code::kCorrupt, uuid_ + ": attribute " + std::to_string(attribute) +
                                       " of the card is below zero"};
    }
    into = static_cast<std::remove_reference_t<decltype(into)>>(value);
    return {};
  };
  RINGFENCE_TRY(read(cuda::kMultiprocessors, facts_.multiprocessors));
  RINGFENCE_TRY(read(cuda::kL2Bytes, facts_.l2_bytes));
  RINGFENCE_TRY(read(cuda::kSharedBytesPerMultiprocessor, facts_.shared_bytes));
  RINGFENCE_TRY(read(cuda::kSharedBytesPerBlockOptIn, facts_.block_shared_bytes));
  RINGFENCE_TRY(read(cuda::kRegistersPerMultiprocessor, facts_.register_bytes));
  facts_.register_bytes *= sizeof(std::uint32_t);
  return {};
}

Status CudaDriver::LoadKernels() {
  if (const auto code = api_.cuModuleLoadData(&module_, KernelImage()); code != cuda::kSuccess) {
    module_ = nullptr;
    return Error{
        Code::kUnavailable, uuid_ + ": cuModuleLoadData: " + CudaWords(api_, code),
        "the scrub's kernels need a card of compute capability 8.0 (Ampere) or later and a "
        "driver of branch 450 or later with libnvidia-ptxjitcompiler"};
  }
  const std::pair<Kernel, const char*> wanted[] = {{Kernel::kFill, kernels::kFillName},
                                                   {Kernel::kCount, kernels::kCountName},
                                                   {Kernel::kRead, kernels::kReadName},
                                                   {Kernel::kOnChip, kernels::kOnChipName}};
  for (const auto& [kernel, name] : wanted) {
    RINGFENCE_TRY(
        Check("cuModuleGetFunction", api_.cuModuleGetFunction(&FunctionOf(kernel), module_, name)));
  }
  return Check("cuFuncSetAttribute",
               api_.cuFuncSetAttribute(FunctionOf(Kernel::kOnChip), cuda::kDynamicSharedBytesMax,
                                       static_cast<int>(facts_.block_shared_bytes)));
}

Result<bool> CudaDriver::HoldsRegisters() {
  int registers = 0;
  int local_bytes = 0;
  const cuda::Function function = FunctionOf(Kernel::kOnChip);
  RINGFENCE_TRY(
      Check("cuFuncGetAttribute", api_.cuFuncGetAttribute(&registers, cuda::kRegisters, function)));
  RINGFENCE_TRY(Check("cuFuncGetAttribute",
                      api_.cuFuncGetAttribute(&local_bytes, cuda::kLocalBytes, function)));
  return local_bytes == 0 && registers >= static_cast<int>(kernels::kHeldRegisters);
}

Result<std::size_t> CudaDriver::FreeBytes() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  RINGFENCE_TRY(Check("cuMemGetInfo_v2", api_.cuMemGetInfo_v2(&free_bytes, &total_bytes)));
  return free_bytes;
}

Result<std::optional<CardPointer>> CudaDriver::Allocate(std::size_t bytes) {
  CardPointer pointer = 0;
  const cuda::CuResult code = api_.cuMemAlloc_v2(&pointer, bytes);
  if (code == cuda::kOutOfMemory) {
    return std::optional<CardPointer>();
  }
  RINGFENCE_TRY(Check("cuMemAlloc_v2", code));
  return std::optional(pointer);
}

Status CudaDriver::Free(CardPointer pointer) {
  return Check("cuMemFree_v2", api_.cuMemFree_v2(pointer));
}

Result<void*> CudaDriver::AllocateHost(std::size_t bytes) {
  void* memory = nullptr;
  RINGFENCE_TRY(Check("cuMemHostAlloc", api_.cuMemHostAlloc(&memory, bytes, 0)));
  return memory;
}

Status CudaDriver::FreeHost(void* memory) {
  return Check("cuMemFreeHost", api_.cuMemFreeHost(memory));
}

Status CudaDriver::Start(const Launch& launch) {
  return Check("cuLaunchKernel", api_.cuLaunchKernel(FunctionOf(launch.kernel), launch.blocks, 1, 1,
                                                     kernels::kThreads, 1, 1, launch.shared_bytes,
                                                     nullptr, launch.arguments.data(), nullptr));
}

Status CudaDriver::Wait() { return Check("cuCtxSynchronize", api_.cuCtxSynchronize()); }

Status CudaDriver::Zero(CardPointer pointer, std::size_t bytes) {
  return Check("cuMemsetD32_v2", api_.cuMemsetD32_v2(pointer, 0, bytes / sizeof(std::uint32_t)));
}

Status CudaDriver::Close() {
  Status first;
  const auto note = [&](const char* function, cuda::CuResult code) {
    if (Status status = Check(function, code); !status.has_value() && first.has_value()) {
      first = std::move(status);
    }
  };
  if (module_ != nullptr) {
    note("cuModuleUnload", api_.cuModuleUnload(std::exchange(module_, nullptr)));
  }
  if (context_ != nullptr) {
    note("cuCtxDestroy_v2", api_.cuCtxDestroy_v2(std::exchange(context_, nullptr)));
  }
  return first;
}

}  // namespace ringfence::gpu

#pragma once

// A card through the CUDA driver.

#include <array>
#include <string>

#include "gpu/card_driver.h"
#include "gpu/cuda_abi.h"

namespace ringfence::gpu {

class CudaDriver final : public CardDriver {
 public:
  // `api` must outlive this and have every function (CheckCuda).
  CudaDriver(const cuda::Api& api, std::string uuid, cuda::Device device)
      : api_(api), uuid_(std::move(uuid)), device_(device) {}
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;
  ~CudaDriver() override { (void)CudaDriver::Close(); }

  Status Open() override;
  Status Close() override;
  const CardFacts& facts() const override { return facts_; }
  Result<bool> HoldsRegisters() override;
  Result<std::size_t> FreeBytes() override;
  Result<std::optional<CardPointer>> Allocate(std::size_t bytes) override;
  Status Free(CardPointer pointer) override;
  Result<void*> AllocateHost(std::size_t bytes) override;
  Status FreeHost(void* memory) override;
  Status Start(const Launch& launch) override;
  Status Wait() override;
  Status Zero(CardPointer pointer, std::size_t bytes) override;

 private:
  Status Check(const char* function, cuda::CuResult code) const;
  Status ReadFacts();
  Status LoadKernels();
  cuda::Function& FunctionOf(Kernel kernel) { return functions_[static_cast<std::size_t>(kernel)]; }

  const cuda::Api& api_;
  std::string uuid_;
  cuda::Device device_;
  cuda::Context context_ = nullptr;
  cuda::Module module_ = nullptr;
  std::array<cuda::Function, 4> functions_{};
  CardFacts facts_;
};

// "CUDA_ERROR_OUT_OF_MEMORY: out of memory (2)"
std::string CudaWords(const cuda::Api& api, cuda::CuResult code);
// kFailedPrecondition naming the first function that the library lacks.
Status CheckCuda(const cuda::Api& api, const std::string& path);

}  // namespace ringfence::gpu

#pragma once

// One card through the CUDA driver: a context, all of its memory, and passes over it.

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/cuda_abi.h"

namespace ringfence::gpu {

// A part of the card's memory that is copied and compared in one piece.
struct Slice {
  cuda::DevicePointer pointer = 0;
  std::size_t bytes = 0;
  std::uint32_t pattern = 0;  // another one for each slice: memory mapped twice is noticed
};

// Used by one thread; its passes use several. Release() must be asked for, and its failure is an
// error: a context that would not go away is no clean card. The destructor only tidies up.
class CudaCard {
 public:
  // `api` must outlive the card and have every function (CheckCuda).
  CudaCard(const cuda::Api& api, std::string uuid) : api_(api), uuid_(std::move(uuid)) {}
  CudaCard(const CudaCard&) = delete;
  CudaCard& operator=(const CudaCard&) = delete;
  ~CudaCard() { (void)Release(); }

  Status Open(cuda::Device device);
  // Runs every kind of operation once on a small piece, so that what the driver allocates for
  // itself at first use is there before TakeAll leaves nothing. Returns the residue found in the
  // piece, which is zero afterwards.
  Result<std::uint64_t> Warm();
  Status TakeAll();
  // Calls `count` with each slice and what it holds, from several threads; adds up the answers.
  using Counter = std::function<std::uint64_t(const Slice&, std::span<const std::byte>)>;
  Result<std::uint64_t> Count(const Counter& count);
  // Every slice with its own pattern, or all with zeros.
  Status FillPatterns();
  Status FillZeros();
  Status Release();

  std::uint64_t taken_bytes() const { return taken_bytes_; }

 private:
  struct Pass;
  Status Check(const char* function, cuda::CuResult code) const;
  Status Fill(const std::function<std::uint32_t(const Slice&)>& pattern);
  void Work(Pass& pass, std::byte* staging) const;
  void Keep(cuda::DevicePointer pointer, std::size_t bytes);

  const cuda::Api& api_;
  std::string uuid_;
  cuda::Context context_ = nullptr;
  std::vector<void*> staging_;
  std::vector<cuda::DevicePointer> allocations_;
  std::vector<Slice> slices_;
  std::uint64_t taken_bytes_ = 0;
};

// "CUDA_ERROR_OUT_OF_MEMORY: out of memory (2)"
std::string CudaWords(const cuda::Api& api, cuda::CuResult code);
// kFailedPrecondition naming the first function that the library lacks.
Status CheckCuda(const cuda::Api& api, const std::string& path);

}  // namespace ringfence::gpu

#pragma once

// What the CUDA stand-in can run: it compiles no PTX, but knows these kernels by name and does the
// same to its own memory.

#include <string_view>

#include "gpu/cuda_abi.h"

namespace ringfence::sim {

struct CudaState;
struct CudaGpu;

struct SimLaunch {
  CudaState* state = nullptr;
  CudaGpu* gpu = nullptr;
  unsigned int blocks = 0;
  unsigned int shared_bytes = 0;
  void** arguments = nullptr;
};

struct SimKernel {
  std::string_view name;
  unsigned int threads = 0;  // of a block: no other number is launched
  int registers = 0;         // of a thread, as a compiler would say
  // What a kernel runs into shows at the next synchronisation, as on a card.
  gpu::cuda::CuResult (*run)(const SimLaunch& launch) = nullptr;
};

const SimKernel* FindKernel(std::string_view name);  // nullptr: unknown

}  // namespace ringfence::sim

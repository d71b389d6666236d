// CUDA stand-in: contexts.

#include "cuda_state.h"

using ringfence::gpu::cuda::CuResult;
namespace cuda = ringfence::gpu::cuda;
namespace sim = ringfence::sim;

namespace ringfence::sim {
namespace {

CuResult MakeContext(CudaState& state, CudaGpu& gpu, cuda::Device device, cuda::Context* into) {
  if (gpu.gpu.lost) {
    return cuda::kDeviceUnavailable;
  }
  if (gpu.memory == nullptr) {
    gpu.memory = GpuMemory::Open(state.driver->root, gpu.gpu);
  }
  if (gpu.memory == nullptr || !gpu.memory->AddContext()) {
    return cuda::kOperatingSystem;
  }
  auto context = std::make_unique<cuda::ContextOpaque>();
  context->device = device;
  *into = context.get();
  state.contexts.emplace(*into, std::move(context));
  return cuda::kSuccess;
}

void EndContext(CudaState& state, cuda::Context context) {
  CudaGpu& gpu = state.gpus[static_cast<std::size_t>(context->device)];
  for (const cuda::DevicePointer pointer : context->allocations) {
    (void)gpu.memory->Free(pointer - PointerTo(gpu.gpu, 0));
  }
  gpu.memory->DropContext();
  UnloadModulesOf(state, context);
  state.contexts.erase(context);
}

CuResult Push(cuda::Context context) {
  ContextStack& stack = Stack();
  if (stack.depth == ContextStack::kDepthMax) {
    return cuda::kOutOfMemory;
  }
  stack.held[stack.depth++] = context;
  return cuda::kSuccess;
}

}  // namespace
}  // namespace ringfence::sim

RINGFENCE_EXPORT CuResult cuCtxCreate_v2(cuda::Context* context, unsigned int /*flags*/,
                                         cuda::Device device) {
  if (context == nullptr) {
    return cuda::kInvalidValue;
  }
  return sim::OnDevice("cuCtxCreate_v2", device, [&](sim::CudaState& state, sim::CudaGpu& gpu) {
    if (sim::Stack().depth == sim::ContextStack::kDepthMax) {
      return cuda::kOutOfMemory;
    }
    const CuResult code = sim::MakeContext(state, gpu, device, context);
    return code == cuda::kSuccess ? sim::Push(*context) : code;
  });
}

RINGFENCE_EXPORT CuResult cuCtxDestroy_v2(cuda::Context context) {
  return sim::OnDriver("cuCtxDestroy_v2", [&](sim::CudaState& state) {
    const auto found = state.contexts.find(context);
    if (found == state.contexts.end()) {
      return cuda::kInvalidContext;
    }
    sim::CudaGpu& gpu = state.gpus[static_cast<std::size_t>(context->device)];
    if (const CuResult code = sim::PlannedFailure(state, gpu, "cuCtxDestroy_v2");
        code != cuda::kSuccess) {
      return code;
    }
    if (gpu.primary == context) {
      return cuda::kInvalidContext;  // released, never destroyed
    }
    if (sim::Stack().top() == context) {
      --sim::Stack().depth;
    }
    sim::EndContext(state, context);
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuDevicePrimaryCtxRetain(cuda::Context* context, cuda::Device device) {
  if (context == nullptr) {
    return cuda::kInvalidValue;
  }
  return sim::OnDevice("cuDevicePrimaryCtxRetain", device,
                       [&](sim::CudaState& state, sim::CudaGpu& gpu) {
                         if (gpu.primary == nullptr) {
                           const CuResult code = sim::MakeContext(state, gpu, device, &gpu.primary);
                           if (code != cuda::kSuccess) {
                             return code;
                           }
                         }
                         ++gpu.primary_users;
                         *context = gpu.primary;
                         return cuda::kSuccess;
                       });
}

RINGFENCE_EXPORT CuResult cuDevicePrimaryCtxRelease_v2(cuda::Device device) {
  return sim::OnDevice("cuDevicePrimaryCtxRelease_v2", device,
                       [&](sim::CudaState& state, sim::CudaGpu& gpu) {
                         if (gpu.primary_users == 0) {
                           return cuda::kInvalidContext;
                         }
                         if (--gpu.primary_users == 0) {
                           sim::EndContext(state, gpu.primary);
                           gpu.primary = nullptr;
                         }
                         return cuda::kSuccess;
                       });
}

RINGFENCE_EXPORT CuResult cuCtxSetCurrent(cuda::Context context) {
  return sim::OnDriver("cuCtxSetCurrent", [&](sim::CudaState& state) {
    sim::ContextStack& stack = sim::Stack();
    if (context == nullptr) {
      stack.depth -= stack.depth > 0 ? 1 : 0;
      return cuda::kSuccess;
    }
    const auto found = state.contexts.find(context);
    if (found == state.contexts.end()) {
      return cuda::kInvalidContext;
    }
    const sim::CudaGpu& gpu = state.gpus[static_cast<std::size_t>(context->device)];
    if (const CuResult code = sim::PlannedFailure(state, gpu, "cuCtxSetCurrent");
        code != cuda::kSuccess) {
      return code;
    }
    if (stack.depth == 0) {
      return sim::Push(context);
    }
    stack.held[stack.depth - 1] = context;
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuCtxGetCurrent(cuda::Context* context) {
  return sim::OnDriver("cuCtxGetCurrent", [&](sim::CudaState&) {
    if (context == nullptr) {
      return cuda::kInvalidValue;
    }
    *context = sim::Stack().top();
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuCtxPushCurrent_v2(cuda::Context context) {
  return sim::OnDriver("cuCtxPushCurrent_v2", [&](sim::CudaState& state) {
    return state.contexts.contains(context) ? sim::Push(context) : cuda::kInvalidContext;
  });
}

RINGFENCE_EXPORT CuResult cuCtxPopCurrent_v2(cuda::Context* context) {
  return sim::OnDriver("cuCtxPopCurrent_v2", [&](sim::CudaState&) {
    sim::ContextStack& stack = sim::Stack();
    if (stack.depth == 0) {
      return cuda::kInvalidContext;
    }
    const cuda::Context top = stack.held[--stack.depth];
    if (context != nullptr) {
      *context = top;
    }
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuCtxGetDevice(cuda::Device* device) {
  return sim::OnContext("cuCtxGetDevice", [&](cuda::ContextOpaque& context, sim::CudaGpu&) {
    if (device == nullptr) {
      return cuda::kInvalidValue;
    }
    *device = context.device;
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuCtxSynchronize() {
  return sim::OnContext("cuCtxSynchronize",
                        [&](cuda::ContextOpaque&, sim::CudaGpu&) { return cuda::kSuccess; });
}

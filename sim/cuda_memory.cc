// CUDA stand-in: memory, of the card and pinned on the host.

#include <algorithm>
#include <array>
#include <cstdlib>

#include "cuda_state.h"

using ringfence::gpu::cuda::CuResult;
namespace cuda = ringfence::gpu::cuda;
namespace sim = ringfence::sim;

namespace ringfence::sim {

std::optional<Range> FindRange(CudaState& state, cuda::DevicePointer pointer, std::size_t bytes) {
  for (CudaGpu& gpu : state.gpus) {
    const cuda::DevicePointer base = PointerTo(gpu.gpu, 0);
    if (gpu.memory != nullptr && pointer >= base && pointer - base < gpu.gpu.memory_bytes() &&
        gpu.memory->Holds(pointer - base, bytes)) {
      return Range{gpu.memory.get(), pointer - base};
    }
  }
  return std::nullopt;
}

bool IsHostMemory(CudaState& state, const void* memory, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  for (const auto& [start, size] : state.host_memory) {
    const auto from = reinterpret_cast<std::uintptr_t>(start);
    if (address >= from && address - from <= size && bytes <= size - (address - from)) {
      return true;
    }
  }
  return false;
}

namespace {

// Finds the range under the lock and works on it without, so that threads copy side by side.
// As on a real card, freeing memory while another thread copies it is the caller's mistake.
template <typename Work>
CuResult OnRange(const char* function, cuda::DevicePointer pointer, std::size_t bytes, Work work) {
  std::optional<Range> range;
  const CuResult code = OnContext(function, [&](cuda::ContextOpaque&, CudaGpu&) {
    range = FindRange(Cuda(), pointer, bytes);
    return range.has_value() || bytes == 0 ? cuda::kSuccess : cuda::kInvalidValue;
  });
  if (code != cuda::kSuccess || bytes == 0) {
    return code;
  }
  return work(*range) ? cuda::kSuccess : cuda::kOperatingSystem;
}

}  // namespace
}  // namespace ringfence::sim

RINGFENCE_EXPORT CuResult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return sim::OnContext("cuMemGetInfo_v2", [&](cuda::ContextOpaque&, sim::CudaGpu& gpu) {
    if (free == nullptr || total == nullptr) {
      return cuda::kInvalidValue;
    }
    *free = gpu.memory->FreeBytes();
    *total = gpu.gpu.usable_bytes();
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuMemAlloc_v2(cuda::DevicePointer* pointer, std::size_t bytes) {
  return sim::OnContext("cuMemAlloc_v2", [&](cuda::ContextOpaque& context, sim::CudaGpu& gpu) {
    if (pointer == nullptr || bytes == 0) {
      return cuda::kInvalidValue;
    }
    const auto offset = gpu.memory->Allocate(bytes);
    if (!offset.has_value()) {
      return cuda::kOutOfMemory;
    }
    *pointer = sim::PointerTo(gpu.gpu, *offset);
    context.allocations.insert(*pointer);
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuMemFree_v2(cuda::DevicePointer pointer) {
  return sim::OnContext("cuMemFree_v2", [&](cuda::ContextOpaque&, sim::CudaGpu&) {
    if (pointer == 0) {
      return cuda::kSuccess;
    }
    sim::CudaState& state = sim::Cuda();
    for (auto& [handle, context] : state.contexts) {
      if (context->allocations.erase(pointer) != 0) {
        sim::CudaGpu& gpu = state.gpus[static_cast<std::size_t>(context->device)];
        return gpu.memory->Free(pointer - sim::PointerTo(gpu.gpu, 0)) ? cuda::kSuccess
                                                                      : cuda::kOperatingSystem;
      }
    }
    return cuda::kInvalidValue;
  });
}

RINGFENCE_EXPORT CuResult cuMemcpyHtoD_v2(cuda::DevicePointer to, const void* from,
                                          std::size_t bytes) {
  if (from == nullptr && bytes > 0) {
    return cuda::kInvalidValue;
  }
  return sim::OnRange("cuMemcpyHtoD_v2", to, bytes, [&](const sim::Range& range) {
    return range.memory->Write(range.offset, {static_cast<const std::byte*>(from), bytes});
  });
}

RINGFENCE_EXPORT CuResult cuMemcpyDtoH_v2(void* to, cuda::DevicePointer from, std::size_t bytes) {
  if (to == nullptr && bytes > 0) {
    return cuda::kInvalidValue;
  }
  return sim::OnRange("cuMemcpyDtoH_v2", from, bytes, [&](const sim::Range& range) {
    return range.memory->Read(range.offset, {static_cast<std::byte*>(to), bytes});
  });
}

RINGFENCE_EXPORT CuResult cuMemcpyDtoD_v2(cuda::DevicePointer to, cuda::DevicePointer from,
                                          std::size_t bytes) {
  std::optional<sim::Range> source;
  const CuResult code = sim::OnContext("cuMemcpyDtoD_v2", [&](cuda::ContextOpaque&, auto&) {
    source = sim::FindRange(sim::Cuda(), from, bytes);
    return source.has_value() || bytes == 0 ? cuda::kSuccess : cuda::kInvalidValue;
  });
  if (code != cuda::kSuccess) {
    return code;
  }
  return sim::OnRange("", to, bytes, [&](const sim::Range& range) {
    // In one piece where they overlap would need a direction; a copy through one buffer does not.
    std::vector<std::byte> all(bytes);
    return source->memory->Read(source->offset, all) && range.memory->Write(range.offset, all);
  });
}

RINGFENCE_EXPORT CuResult cuMemsetD8_v2(cuda::DevicePointer to, unsigned char value,
                                        std::size_t count) {
  return sim::OnRange("cuMemsetD8_v2", to, count, [&](const sim::Range& range) {
    return range.memory->Fill(range.offset, count, value * 0x01010101U);
  });
}

RINGFENCE_EXPORT CuResult cuMemsetD32_v2(cuda::DevicePointer to, unsigned int value,
                                         std::size_t count) {
  constexpr std::size_t kCountMax = std::size_t{1} << 48U;
  if (to % sizeof value != 0 || count > kCountMax) {
    return cuda::kInvalidValue;
  }
  const std::size_t bytes = count * sizeof value;
  return sim::OnRange("cuMemsetD32_v2", to, bytes, [&](const sim::Range& range) {
    return range.memory->Fill(range.offset, bytes, value);
  });
}

RINGFENCE_EXPORT CuResult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned int /*flags*/) {
  return sim::OnContext("cuMemHostAlloc", [&](cuda::ContextOpaque&, sim::CudaGpu&) {
    constexpr std::size_t kPage = 4096;
    constexpr std::size_t kBytesMax = std::size_t{1} << 40U;
    if (memory == nullptr || bytes > kBytesMax) {
      return cuda::kInvalidValue;
    }
    if (bytes == 0) {  // as the real one answers (driver 580)
      *memory = nullptr;
      return cuda::kSuccess;
    }
    void* made = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    if (made == nullptr) {
      return cuda::kOutOfMemory;
    }
    sim::Cuda().host_memory.emplace(made, bytes);
    *memory = made;
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuMemFreeHost(void* memory) {
  return sim::OnContext("cuMemFreeHost", [&](cuda::ContextOpaque&, sim::CudaGpu&) {
    if (sim::Cuda().host_memory.erase(memory) == 0) {
      return cuda::kInvalidValue;
    }
    std::free(memory);
    return cuda::kSuccess;
  });
}

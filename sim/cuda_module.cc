// CUDA stand-in: modules, their functions, and launches. A module's PTX is read as far as its head
// and the names of its entries; what an entry does is in cuda_kernels.cc.

#include <cstdio>
#include <cstring>
#include <string_view>

#include "cuda_state.h"

using ringfence::gpu::cuda::CuResult;
namespace cuda = ringfence::gpu::cuda;
namespace sim = ringfence::sim;

namespace ringfence::sim {
namespace {

constexpr int kLocalBytes = 16;  // of a thread that has too few registers
constexpr std::size_t kImageBytesMax = std::size_t{16} << 20U;
constexpr int kVersionsOf11 = 70;  // PTX 7.0 came with CUDA 11.0

// The text behind the first `word` at a line's start, to the end of its line.
std::string_view After(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') {
      const std::string_view rest = text.substr(at + word.size());
      return rest.substr(0, rest.find('\n'));
    }
  }
  return {};
}

// Whether a driver of that CUDA version would know this PTX version, on an H200.
CuResult CheckHead(std::string_view text, int cuda_version) {
  int major = 0;
  int minor = 0;
  const std::string version(After(text, ".version "));
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) {
    return cuda::kInvalidImage;
  }
  // Since CUDA 11.0 with PTX 7.0 they count together: 12.0 has 8.0 and 13.0 has 9.0. (From 12.6 on
  // PTX lags by one; no matter here.)
  const int newest = cuda_version / 1000 >= 11 ? kVersionsOf11 + (cuda_version / 1000 - 11) * 10 +
                                                     cuda_version % 1000 / 10
                                               : kVersionsOf11 - 1;
  if (major * 10 + minor > newest) {
    return cuda::kUnsupportedPtxVersion;
  }
  int target = 0;
  if (std::sscanf(std::string(After(text, ".target ")).c_str(), "sm_%d", &target) != 1) {
    return cuda::kInvalidPtx;
  }
  constexpr int kHopper = 90;
  return target > kHopper ? cuda::kInvalidPtx : cuda::kSuccess;
}

std::set<std::string, std::less<>> EntriesOf(std::string_view text) {
  constexpr std::string_view kWord = ".entry ";
  std::set<std::string, std::less<>> names;
  for (std::size_t at = text.find(kWord); at != std::string_view::npos;
       at = text.find(kWord, at + 1)) {
    const std::string_view rest = text.substr(at + kWord.size());
    names.emplace(rest.substr(0, rest.find_first_of("( \n")));
  }
  return names;
}

CuResult Launch(const SimLaunch& launch, cuda::Context context, const SimKernel& kernel) {
  const CuResult code = kernel.run(launch);
  const std::lock_guard lock(launch.state->mutex);
  if (const auto found = launch.state->contexts.find(context);
      code != cuda::kSuccess && found != launch.state->contexts.end()) {
    found->second->broken = code;
  }
  return cuda::kSuccess;
}

}  // namespace

void UnloadModulesOf(CudaState& state, cuda::Context context) {
  const auto of_context = [&](cuda::Module module) { return module->context == context; };
  std::erase_if(state.functions, [&](const auto& one) { return of_context(one.second->module); });
  std::erase_if(state.modules, [&](const auto& one) { return of_context(one.first); });
}

}  // namespace ringfence::sim

RINGFENCE_EXPORT CuResult cuModuleLoadData(cuda::Module* module, const void* image) {
  return sim::OnContext("cuModuleLoadData", [&](cuda::ContextOpaque& context, sim::CudaGpu&) {
    if (module == nullptr || image == nullptr) {
      return cuda::kInvalidValue;
    }
    sim::CudaState& state = sim::Cuda();
    const auto* start = static_cast<const char*>(image);
    const std::string_view text(start, strnlen(start, sim::kImageBytesMax));
    if (const CuResult code = sim::CheckHead(text, state.driver->scenario.cuda_version);
        code != cuda::kSuccess) {
      return code;
    }
    auto made = std::make_unique<cuda::ModuleOpaque>();
    made->context = &context;
    made->entries = sim::EntriesOf(text);
    *module = made.get();
    state.modules.emplace(*module, std::move(made));
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuModuleUnload(cuda::Module module) {
  return sim::OnContext("cuModuleUnload", [&](cuda::ContextOpaque&, sim::CudaGpu&) {
    sim::CudaState& state = sim::Cuda();
    const auto found = state.modules.find(module);
    if (found == state.modules.end()) {
      return cuda::kInvalidHandle;
    }
    std::erase_if(state.functions, [&](const auto& one) { return one.second->module == module; });
    state.modules.erase(found);
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuModuleGetFunction(cuda::Function* function, cuda::Module module,
                                              const char* name) {
  return sim::OnContext("cuModuleGetFunction", [&](cuda::ContextOpaque&, sim::CudaGpu&) {
    sim::CudaState& state = sim::Cuda();
    if (function == nullptr || name == nullptr) {
      return cuda::kInvalidValue;
    }
    if (!state.modules.contains(module)) {
      return cuda::kInvalidHandle;
    }
    const sim::SimKernel* kernel = sim::FindKernel(name);
    if (!module->entries.contains(std::string_view(name))) {
      return cuda::kNotFound;
    }
    if (kernel == nullptr) {
      return cuda::kNotSupported;
    }
    for (const auto& [handle, known] : state.functions) {
      if (known->module == module && known->kernel == kernel) {
        *function = handle;
        return cuda::kSuccess;
      }
    }
    auto made = std::make_unique<cuda::FunctionOpaque>();
    made->module = module;
    made->kernel = kernel;
    made->dynamic_shared_bytes_max = sim::kBlockSharedBytesDefault;
    *function = made.get();
    state.functions.emplace(*function, std::move(made));
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuFuncGetAttribute(int* value, int attribute, cuda::Function function) {
  return sim::OnContext("cuFuncGetAttribute", [&](cuda::ContextOpaque&, sim::CudaGpu& gpu) {
    if (value == nullptr) {
      return cuda::kInvalidValue;
    }
    if (!sim::Cuda().functions.contains(function)) {
      return cuda::kInvalidHandle;
    }
    switch (attribute) {
      case cuda::kLocalBytes:
        *value = gpu.gpu.kernels_spill ? sim::kLocalBytes : 0;
        return cuda::kSuccess;
      case cuda::kRegisters:
        *value = function->kernel->registers;
        return cuda::kSuccess;
      case cuda::kDynamicSharedBytesMax:
        *value = function->dynamic_shared_bytes_max;
        return cuda::kSuccess;
      default:
        return cuda::kInvalidValue;
    }
  });
}

RINGFENCE_EXPORT CuResult cuFuncSetAttribute(cuda::Function function, int attribute, int value) {
  return sim::OnContext("cuFuncSetAttribute", [&](cuda::ContextOpaque&, sim::CudaGpu&) {
    if (!sim::Cuda().functions.contains(function)) {
      return cuda::kInvalidHandle;
    }
    if (attribute != cuda::kDynamicSharedBytesMax || value < 0 ||
        value > sim::kBlockSharedBytesMax) {
      return cuda::kInvalidValue;
    }
    function->dynamic_shared_bytes_max = value;
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuLaunchKernel(cuda::Function function, unsigned int blocks_x,
                                         unsigned int blocks_y, unsigned int blocks_z,
                                         unsigned int threads_x, unsigned int threads_y,
                                         unsigned int threads_z, unsigned int shared_bytes,
                                         cuda::Stream stream, void** arguments, void** extra) {
  sim::SimLaunch launch;
  cuda::Context context = nullptr;
  const sim::SimKernel* kernel = nullptr;
  const CuResult code =
      sim::OnContext("cuLaunchKernel", [&](cuda::ContextOpaque& current, sim::CudaGpu& gpu) {
        sim::CudaState& state = sim::Cuda();
        if (!state.functions.contains(function)) {
          return cuda::kInvalidHandle;
        }
        // Grids of one dimension on the default stream are all that is known here.
        if (stream != nullptr || extra != nullptr) {
          return cuda::kNotSupported;
        }
        if (blocks_x == 0 || blocks_y != 1 || blocks_z != 1 || threads_y != 1 || threads_z != 1 ||
            threads_x != function->kernel->threads || arguments == nullptr ||
            shared_bytes > static_cast<unsigned int>(function->dynamic_shared_bytes_max)) {
          return cuda::kInvalidValue;
        }
        kernel = function->kernel;
        context = &current;
        launch = {&state, &gpu, blocks_x, shared_bytes, arguments};
        return cuda::kSuccess;
      });
  // Without the lock: other threads go on meanwhile.
  return code == cuda::kSuccess ? sim::Launch(launch, context, *kernel) : code;
}

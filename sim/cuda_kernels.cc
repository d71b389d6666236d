// CUDA stand-in: the kernels it knows. Patterns and counting are those of the real kernels, from
// the header that both read; injected faults are the scenario's.

#include "cuda_kernels.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "cuda_state.h"
#include "gpu/probe_kernels.h"
#include "gpu/scrub_kernels.h"

namespace ringfence::sim {
namespace {

namespace kernels = gpu::kernels;
using kernels::kVectorBytes;

constexpr std::uint64_t kChunkVectors = (std::uint64_t{1} << 20U) / kVectorBytes;

template <typename Value>
Value Argument(const SimLaunch& launch, std::size_t index) {
  Value value{};
  std::memcpy(&value, launch.arguments[index], sizeof value);
  return value;
}

kernels::Vector Expected(std::uint64_t place, std::uint64_t seed, std::uint32_t mask) {
  kernels::Vector vector = kernels::PatternAt(place, seed);
  for (std::uint32_t& word : vector.word) {
    word &= mask;
  }
  return vector;
}

// The arguments that kernels over memory share, looked up and checked.
struct MemoryTask {
  Range range;
  std::uint64_t vectors = 0;  // that are really come to
  std::uint64_t first = 0;
  std::uint64_t seed = 0;
  std::uint32_t mask = 0;
  kernels::Tally* tally = nullptr;  // of the first warp, which says all of it
};

std::optional<MemoryTask> ReadTask(const SimLaunch& launch, bool patterned) {
  MemoryTask task;
  const std::uint64_t vectors = Argument<std::uint64_t>(launch, 1);
  if (patterned) {
    task.first = Argument<std::uint64_t>(launch, 2);
    task.seed = Argument<std::uint64_t>(launch, 3);
    task.mask = Argument<std::uint32_t>(launch, 4);
  }
  task.tally = Argument<kernels::Tally*>(launch, patterned ? 5 : 2);
  const std::size_t tallies = std::size_t{launch.blocks} * kernels::kWarps;
  const std::lock_guard lock(launch.state->mutex);
  const auto range = vectors > UINT64_MAX / kVectorBytes
                         ? std::nullopt
                         : FindRange(*launch.state, Argument<cuda::DevicePointer>(launch, 0),
                                     vectors * kVectorBytes);
  if (!range.has_value() ||
      !IsHostMemory(*launch.state, task.tally, tallies * sizeof(kernels::Tally))) {
    return std::nullopt;
  }
  task.range = *range;
  task.vectors = vectors - std::min(vectors, launch.gpu->gpu.kernel_skip_bytes / kVectorBytes);
  return task;
}

// Calls `work` with an offset, how many vectors there are, and the first one's place.
template <typename Work>
CuResult ForChunks(const MemoryTask& task, Work work) {
  for (std::uint64_t at = 0; at < task.vectors; at += kChunkVectors) {
    const std::uint64_t count = std::min(kChunkVectors, task.vectors - at);
    if (!work(task.range.offset + at * kVectorBytes, count, task.first + at)) {
      return cuda::kLaunchFailed;
    }
  }
  task.tally->vectors += task.vectors;
  return cuda::kSuccess;
}

CuResult RunFill(const SimLaunch& launch) {
  const auto task = ReadTask(launch, true);
  if (!task.has_value()) {
    return cuda::kIllegalAddress;
  }
  GpuMemory& memory = *task->range.memory;
  std::vector<kernels::Vector> chunk(kChunkVectors);
  return ForChunks(*task, [&](std::uint64_t offset, std::uint64_t count, std::uint64_t place) {
    if (task->mask == 0) {
      return memory.Fill(offset, count * kVectorBytes, 0);
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      chunk[i] = Expected(place + i, task->seed, task->mask);
    }
    return memory.Write(offset, std::as_bytes(std::span(chunk).first(count)));
  });
}

std::uint64_t CountWrong(const kernels::Vector& got, const kernels::Vector& expected) {
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    wrong += kernels::NonZeroBytes(got.word[i] ^ expected.word[i]);
  }
  return wrong;
}

CuResult RunCount(const SimLaunch& launch) {
  const auto task = ReadTask(launch, true);
  if (!task.has_value()) {
    return cuda::kIllegalAddress;
  }
  std::vector<kernels::Vector> chunk(kChunkVectors);
  return ForChunks(*task, [&](std::uint64_t offset, std::uint64_t count, std::uint64_t place) {
    const auto got = std::span(chunk).first(count);
    if (!task->range.memory->Read(offset, std::as_writable_bytes(got))) {
      return false;
    }
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      wrong += CountWrong(got[i], Expected(place + i, task->seed, task->mask));
    }
    task->tally->wrong_bytes += wrong;
    return true;
  });
}

CuResult RunRead(const SimLaunch& launch) {
  const auto task = ReadTask(launch, false);
  if (!task.has_value()) {
    return cuda::kIllegalAddress;
  }
  std::vector<kernels::Vector> chunk(kChunkVectors);
  return ForChunks(*task, [&](std::uint64_t offset, std::uint64_t count, std::uint64_t) {
    return task->range.memory->Read(offset, std::as_writable_bytes(std::span(chunk).first(count)));
  });
}

// There is no memory on a chip here; its reports are the scenario's.
CuResult RunOnChip(const SimLaunch& launch) {
  const std::uint32_t shared_words = Argument<std::uint32_t>(launch, 0);
  auto* tallies = Argument<kernels::OnChipTally*>(launch, 2);
  const std::size_t warps = std::size_t{launch.blocks} * kernels::kWarps;
  const std::lock_guard lock(launch.state->mutex);
  if (!IsHostMemory(*launch.state, tallies, warps * sizeof(kernels::OnChipTally)) ||
      std::uint64_t{shared_words} * sizeof(std::uint32_t) > launch.shared_bytes) {
    return cuda::kIllegalAddress;
  }
  const std::uint32_t all = MultiprocessorsOf(launch.gpu->gpu);
  const std::uint32_t usable =
      all - std::min<std::uint32_t>(launch.gpu->gpu.hidden_multiprocessors, all - 1);
  for (unsigned int block = 0; block < launch.blocks; ++block) {
    for (unsigned int warp = 0; warp < kernels::kWarps; ++warp) {
      tallies[block * kernels::kWarps + warp] = {block % usable, 1, 0, 0, 0};
    }
    tallies[block * kernels::kWarps].shared_bytes =
        std::uint64_t{shared_words} * sizeof(std::uint32_t);
  }
  if (launch.blocks > 0) {
    tallies[0].residue_bytes = std::exchange(launch.gpu->shared_residue_bytes, 0);
    tallies[0].wrong_bytes = launch.gpu->gpu.shared_bad_bytes;
  }
  return cuda::kSuccess;
}

// As the driver decides it: where the pipe of a daemon is.
bool IsMpsClient() {
  const char* folder = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  return folder != nullptr && OpenNode(std::string(folder) + "/control") == 0;
}

// What a probe's kernel leaves in shared memory. Every multiprocessor has the same here.
CuResult RunPlant(const SimLaunch& launch) {
  std::vector<std::byte> secret(kernels::kSecretWords * sizeof(std::uint32_t));
  const std::size_t bytes = Argument<std::uint32_t>(launch, 1) * sizeof(std::uint32_t);
  const std::lock_guard lock(launch.state->mutex);
  const auto range =
      FindRange(*launch.state, Argument<cuda::DevicePointer>(launch, 0), secret.size());
  if (!range.has_value() || bytes > launch.shared_bytes ||
      !range->memory->Read(range->offset, secret)) {
    return cuda::kIllegalAddress;
  }
  std::vector<std::byte>& chip = launch.gpu->chip;
  chip.resize(kBlockSharedBytesMax);
  for (std::size_t at = 0; at < bytes; ++at) {
    chip[at] = secret[at % secret.size()];
  }
  return !IsMpsClient() || launch.gpu->memory->WriteChip(chip) ? cuda::kSuccess
                                                               : cuda::kLaunchFailed;
}

CuResult RunSpy(const SimLaunch& launch) {
  const std::size_t bytes = Argument<std::uint32_t>(launch, 1) * sizeof(std::uint32_t);
  const std::lock_guard lock(launch.state->mutex);
  const auto range =
      FindRange(*launch.state, Argument<cuda::DevicePointer>(launch, 0), bytes * launch.blocks);
  if (!range.has_value() || bytes > launch.shared_bytes) {
    return cuda::kIllegalAddress;
  }
  std::vector<std::byte> chip = launch.gpu->chip;
  chip.resize(kBlockSharedBytesMax);
  if (IsMpsClient()) {
    launch.gpu->memory->ReadChip(chip);
  }
  for (unsigned int block = 0; block < launch.blocks; ++block) {
    if (!range->memory->Write(range->offset + block * bytes, std::span(chip).first(bytes))) {
      return cuda::kLaunchFailed;
    }
  }
  return cuda::kSuccess;
}

constexpr int kRegistersSmall = 40;
constexpr int kRegistersAll = 249;
constexpr SimKernel kKernels[] = {
    {kernels::kFillName, kernels::kThreads, kRegistersSmall, RunFill},
    {kernels::kCountName, kernels::kThreads, kRegistersSmall, RunCount},
    {kernels::kReadName, kernels::kThreads, kRegistersSmall, RunRead},
    {kernels::kOnChipName, kernels::kThreads, kRegistersAll, RunOnChip},
    {kernels::kPlantName, kernels::kProbeThreads, kRegistersSmall, RunPlant},
    {kernels::kSpyName, kernels::kProbeThreads, kRegistersSmall, RunSpy},
};

}  // namespace

const SimKernel* FindKernel(std::string_view name) {
  const auto* found = std::find_if(std::begin(kKernels), std::end(kKernels),
                                   [&](const SimKernel& kernel) { return kernel.name == name; });
  return found == std::end(kKernels) ? nullptr : found;
}

}  // namespace ringfence::sim

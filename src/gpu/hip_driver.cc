#include "gpu/hip_driver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gpu/scrub_kernels.h"

namespace ringfence::gpu {
namespace {

using kernels::kVectorBytes;
using kernels::Tally;
using kernels::Vector;

constexpr std::size_t kPieceBytes = std::size_t{16} << 20U;

hip::Pointer At(CardPointer pointer) { return reinterpret_cast<hip::Pointer>(pointer); }

template <typename Value>
Value Argument(const Launch& launch, std::size_t index) {
  Value value{};
  std::memcpy(&value, launch.arguments[index], sizeof value);
  return value;
}

Vector Expected(std::uint64_t place, std::uint64_t seed, std::uint32_t mask) {
  Vector vector = kernels::PatternAt(place, seed);
  for (std::uint32_t& word : vector.word) {
    word &= mask;
  }
  return vector;
}

}  // namespace

// A launch over memory, with a kernel's arguments.
struct HipDriver::Work {
  CardPointer memory = 0;
  std::uint64_t vectors = 0;
  std::uint64_t first = 0;
  std::uint64_t seed = 0;
  std::uint32_t mask = 0;
  Tally* tally = nullptr;
};

hip::Api LoadHip(const Library& library) {
  hip::Api api;
#define RINGFENCE_LOAD(name, arguments) \
  api.name = reinterpret_cast<decltype(api.name)>(library.Find(#name));
  RINGFENCE_HIP_FUNCTIONS(RINGFENCE_LOAD)
  RINGFENCE_LOAD(hipGetErrorName, )
  RINGFENCE_LOAD(hipGetErrorString, )
#undef RINGFENCE_LOAD
  return api;
}

std::string HipWords(const hip::Api& api, hip::Error code) {
  const char* name = api.hipGetErrorName(code);
  const char* words = api.hipGetErrorString(code);
  return std::string(name == nullptr ? "unnamed error" : name) + ": " +
         (words == nullptr ? "no words" : words) + " (" + std::to_string(static_cast<int>(code)) +
         ")";
}

Status CheckHip(const hip::Api& api, const std::string& path) {
  const std::pair<const void*, const char*> needed[] = {
#define RINGFENCE_NEED(name, arguments) {reinterpret_cast<const void*>(api.name), #name},
      RINGFENCE_HIP_FUNCTIONS(RINGFENCE_NEED) RINGFENCE_NEED(hipGetErrorName, )
          RINGFENCE_NEED(hipGetErrorString, )
#undef RINGFENCE_NEED
  };
  for (const auto& [function, name] : needed) {
    if (function == nullptr) {
      return Error{Code::kFailedPrecondition, path + " has no function " + name,
                   "use HIP of ROCm 6.0 or later"};
    }
  }
  return {};
}

Status HipDriver::Check(const char* function, hip::Error code) const {
  if (code == hip::kSuccess) {
    return {};
  }
  return Error{Code::kUnavailable, uuid_ + ": " + function + ": " + HipWords(api_, code)};
}

Status HipDriver::Open() {
  RINGFENCE_TRY(Check("hipSetDevice", api_.hipSetDevice(device_)));
  open_ = true;
  return Check("hipHostMalloc", api_.hipHostMalloc(&piece_, kPieceBytes, 0));
}

Status HipDriver::Close() {
  Status first;
  const auto note = [&](const char* function, hip::Error code) {
    if (Status status = Check(function, code); !status.has_value() && first.has_value()) {
      first = std::move(status);
    }
  };
  if (piece_ != nullptr) {
    note("hipHostFree", api_.hipHostFree(std::exchange(piece_, nullptr)));
  }
  if (std::exchange(open_, false)) {
    note("hipDeviceReset", api_.hipDeviceReset());
  }
  return first;
}

Result<std::size_t> HipDriver::FreeBytes() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  RINGFENCE_TRY(Check("hipMemGetInfo", api_.hipMemGetInfo(&free_bytes, &total_bytes)));
  return free_bytes;
}

Result<std::optional<CardPointer>> HipDriver::Allocate(std::size_t bytes) {
  hip::Pointer pointer = nullptr;
  const hip::Error code = api_.hipMalloc(&pointer, bytes);
  if (code == hip::kOutOfMemory) {
    return std::optional<CardPointer>();
  }
  RINGFENCE_TRY(Check("hipMalloc", code));
  return std::optional<CardPointer>(reinterpret_cast<CardPointer>(pointer));
}

Status HipDriver::Free(CardPointer pointer) { return Check("hipFree", api_.hipFree(At(pointer))); }

Result<void*> HipDriver::AllocateHost(std::size_t bytes) {
  void* memory = nullptr;
  RINGFENCE_TRY(Check("hipHostMalloc", api_.hipHostMalloc(&memory, bytes, 0)));
  return memory;
}

Status HipDriver::FreeHost(void* memory) { return Check("hipHostFree", api_.hipHostFree(memory)); }

Status HipDriver::Fill(const Work& work) {
  if (work.mask == 0) {
    RINGFENCE_TRY(Zero(work.memory, work.vectors * kVectorBytes));
    work.tally->vectors += work.vectors;
    return {};
  }
  auto* const piece = static_cast<Vector*>(piece_);
  for (std::uint64_t at = 0; at < work.vectors; at += kPieceBytes / kVectorBytes) {
    const std::uint64_t count = std::min(kPieceBytes / kVectorBytes, work.vectors - at);
    for (std::uint64_t i = 0; i < count; ++i) {
      piece[i] = Expected(work.first + at + i, work.seed, work.mask);
    }
    RINGFENCE_TRY(Check("hipMemcpyHtoD", api_.hipMemcpyHtoD(At(work.memory + at * kVectorBytes),
                                                            piece, count * kVectorBytes)));
    work.tally->vectors += count;
  }
  return {};
}

Status HipDriver::Look(const Work& work, bool count_wrong) {
  const auto* const piece = static_cast<const Vector*>(piece_);
  for (std::uint64_t at = 0; at < work.vectors; at += kPieceBytes / kVectorBytes) {
    const std::uint64_t count = std::min(kPieceBytes / kVectorBytes, work.vectors - at);
    // So that a copy which did not come about is not taken for what was written before.
    std::memset(piece_, 0xa5, count * kVectorBytes);
    RINGFENCE_TRY(Check(
        "hipMemcpyDtoH",
        api_.hipMemcpyDtoH(piece_, At(work.memory + at * kVectorBytes), count * kVectorBytes)));
    for (std::uint64_t i = 0; count_wrong && i < count; ++i) {
      const Vector wanted = Expected(work.first + at + i, work.seed, work.mask);
      for (std::size_t word = 0; word < 4; ++word) {
        work.tally->wrong_bytes += kernels::NonZeroBytes(piece[i].word[word] ^ wanted.word[word]);
      }
    }
    work.tally->vectors += count;
  }
  return {};
}

Status HipDriver::Start(const Launch& launch) {
  if (launch.kernel == Kernel::kOnChip) {
    return Error{Code::kInternal, uuid_ + ": no kernel of ours runs on this card"};
  }
  const bool read_only = launch.kernel == Kernel::kRead;
  Work work;
  work.memory = Argument<CardPointer>(launch, 0);
  work.vectors = Argument<std::uint64_t>(launch, 1);
  if (!read_only) {
    work.first = Argument<std::uint64_t>(launch, 2);
    work.seed = Argument<std::uint64_t>(launch, 3);
    work.mask = Argument<std::uint32_t>(launch, 4);
  }
  work.tally = Argument<Tally*>(launch, read_only ? 2 : 5);
  return launch.kernel == Kernel::kFill ? Fill(work) : Look(work, !read_only);
}

Status HipDriver::Wait() { return Check("hipDeviceSynchronize", api_.hipDeviceSynchronize()); }

Status HipDriver::Zero(CardPointer pointer, std::size_t bytes) {
  return Check("hipMemsetD32", api_.hipMemsetD32(At(pointer), 0, bytes / sizeof(std::uint32_t)));
}

}  // namespace ringfence::gpu

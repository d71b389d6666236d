#include "gpu/card.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "gpu/scrub_kernels.h"

namespace ringfence::gpu {
namespace {

using kernels::kThreads;
using kernels::kVectorBytes;
using kernels::kWarps;
using kernels::OnChipTally;
using kernels::Tally;

constexpr std::size_t kPieceBytesMin = std::size_t{64} << 10U;
constexpr std::size_t kRangesMax = 16384;
// Measured on an H200: with four, filling and reading both run within 1% of their best.
constexpr std::uint32_t kBlocksPerMultiprocessor = 4;
constexpr std::uint32_t kMultiprocessorsMax = 4096;
// One block for each multiprocessor and launch; where the hardware puts it is not ours to say.
constexpr int kOnChipLaunchesMax = 16;

}  // namespace

Status Card::Open() {
  RINGFENCE_TRY(driver_.Open());
  const CardFacts& facts = driver_.facts();
  if (facts.multiprocessors == 0 || facts.multiprocessors > kMultiprocessorsMax ||
      facts.block_shared_bytes > facts.shared_bytes) {
    return Error{Code::kCorrupt, uuid_ + ": the driver's description of the card makes no sense"};
  }
  const std::size_t warps = std::size_t{facts.multiprocessors} * kWarps;
  tally_bytes_ =
      std::max(warps * kBlocksPerMultiprocessor * sizeof(Tally), warps * sizeof(OnChipTally));
  RINGFENCE_ASSIGN(tallies_, driver_.AllocateHost(tally_bytes_));
  return {};
}

void Card::Keep(CardPointer pointer, std::size_t bytes) {
  ranges_.push_back({pointer, bytes / kVectorBytes, taken_bytes_ / kVectorBytes});
  taken_bytes_ += bytes;
}

Result<std::uint64_t> Card::Warm() {
  RINGFENCE_ASSIGN(const auto pointer, driver_.Allocate(kPieceBytesMin));
  if (!pointer.has_value()) {
    return Error{Code::kUnavailable, uuid_ + ": no memory can be allocated at all",
                 "end every process on the card first"};
  }
  Keep(*pointer, kPieceBytesMin);
  RINGFENCE_ASSIGN(const std::uint64_t residue, Count(Content::kZeros));
  RINGFENCE_TRY(Fill(Content::kPattern));
  RINGFENCE_TRY(Fill(Content::kZeros));
  ranges_.clear();
  taken_bytes_ = 0;
  RINGFENCE_TRY(driver_.Free(*pointer));
  return residue;
}

Status Card::TakeAll() {
  RINGFENCE_ASSIGN(const std::size_t free_bytes, driver_.FreeBytes());
  // Few large pieces: each is a launch of its own in every pass.
  std::size_t piece = std::bit_floor(free_bytes);
  while (piece >= kPieceBytesMin && ranges_.size() < kRangesMax) {
    RINGFENCE_ASSIGN(const auto pointer, driver_.Allocate(piece));
    if (pointer.has_value()) {
      Keep(*pointer, piece);
    } else {
      piece /= 2;
    }
  }
  if (ranges_.empty()) {
    return Error{Code::kUnavailable, uuid_ + ": no memory can be allocated, though its driver " +
                                         "counts " + std::to_string(free_bytes) + " bytes free"};
  }
  return {};
}

std::uint32_t Card::GridBlocks(std::uint64_t vectors) const {
  const std::uint64_t most =
      std::uint64_t{driver_.facts().multiprocessors} * kBlocksPerMultiprocessor;
  return static_cast<std::uint32_t>(std::min(most, (vectors + kThreads - 1) / kThreads));
}

void Card::ClearTallies() { std::memset(tallies_, 0, tally_bytes_); }

Status Card::StartMemoryKernel(Kernel kernel, const Range& range, Content content) {
  CardPointer memory = range.pointer;
  std::uint64_t vectors = range.vectors;
  std::uint64_t first = range.first;
  std::uint64_t seed = seed_;
  std::uint32_t mask = content == Content::kPattern ? 0xffffffffU : 0U;
  void* tallies = tallies_;
  void* all[] = {&memory, &vectors, &first, &seed, &mask, &tallies};
  void* only_reading[] = {&memory, &vectors, &tallies};
  Launch launch;
  launch.kernel = kernel;
  launch.blocks = GridBlocks(range.vectors);
  launch.arguments =
      kernel == Kernel::kRead ? std::span<void*>(only_reading) : std::span<void*>(all);
  return driver_.Start(launch);
}

// Wrong bytes of the pass that has just ended.
Result<std::uint64_t> Card::AddUp() {
  std::uint64_t vectors = 0;
  std::uint64_t wrong = 0;
  const auto* tallies = static_cast<const Tally*>(tallies_);
  for (std::size_t i = 0; i < tally_bytes_ / sizeof(Tally); ++i) {
    vectors += tallies[i].vectors;
    wrong += tallies[i].wrong_bytes;
  }
  if (vectors * kVectorBytes != taken_bytes_) {
    return Error{Code::kCorrupt,
                 uuid_ + ": the card's kernels came to " + std::to_string(vectors * kVectorBytes) +
                     " of " + std::to_string(taken_bytes_) + " bytes",
                 "take the card out of service: it does not run programs to their end"};
  }
  return wrong;
}

Result<std::uint64_t> Card::Pass(Kernel kernel, Content content) {
  ClearTallies();
  for (const Range& range : ranges_) {
    RINGFENCE_TRY(StartMemoryKernel(kernel, range, content));
  }
  RINGFENCE_TRY(driver_.Wait());
  return AddUp();
}

Status Card::Fill(Content content) {
  const Result<std::uint64_t> done = Pass(Kernel::kFill, content);
  return done.has_value() ? Status() : Status(done.error());
}

Result<std::uint64_t> Card::Count(Content content) { return Pass(Kernel::kCount, content); }

Status Card::FloorRead() {
  const Result<std::uint64_t> done = Pass(Kernel::kRead, Content::kZeros);
  return done.has_value() ? Status() : Status(done.error());
}

Status Card::FloorWrite() {
  for (const Range& range : ranges_) {
    RINGFENCE_TRY(driver_.Zero(range.pointer, range.vectors * kVectorBytes));
  }
  return driver_.Wait();
}

Result<std::uint64_t> Card::ClearOnChip(OnChipScrub& result) {
  const CardFacts& facts = driver_.facts();
  if (!facts.runs_kernels) {
    result.multiprocessors = facts.multiprocessors;
    result.shared_bytes = facts.shared_bytes * facts.multiprocessors;
    return std::uint64_t{0};
  }
  RINGFENCE_ASSIGN(const bool registers, driver_.HoldsRegisters());
  auto shared_words = static_cast<std::uint32_t>(facts.block_shared_bytes / sizeof(std::uint32_t));
  auto seed = static_cast<std::uint32_t>(seed_);
  void* arguments[] = {&shared_words, &seed, &tallies_};
  Launch launch;
  launch.kernel = Kernel::kOnChip;
  launch.blocks = facts.multiprocessors;
  launch.shared_bytes = shared_words * static_cast<unsigned>(sizeof(std::uint32_t));
  launch.arguments = arguments;
  std::set<std::uint32_t> reached;
  std::uint64_t residue = 0;
  std::uint64_t wrong = 0;
  for (int i = 0; i < kOnChipLaunchesMax && reached.size() < facts.multiprocessors; ++i) {
    ClearTallies();
    RINGFENCE_TRY(driver_.Start(launch));
    RINGFENCE_TRY(driver_.Wait());
    const auto* tallies = static_cast<const OnChipTally*>(tallies_);
    for (std::uint32_t block = 0; block < launch.blocks; ++block) {
      std::uint64_t cleared = 0;
      for (const OnChipTally& warp : std::span(tallies + std::size_t{block} * kWarps, kWarps)) {
        cleared += warp.shared_bytes;
        residue += warp.residue_bytes;
        wrong += warp.wrong_bytes;
      }
      if (cleared != launch.shared_bytes) {
        return Error{Code::kCorrupt, uuid_ + ": a kernel cleared " + std::to_string(cleared) +
                                         " of " + std::to_string(launch.shared_bytes) +
                                         " bytes of shared memory"};
      }
      reached.insert(tallies[std::size_t{block} * kWarps].multiprocessor);
    }
  }
  result.multiprocessors = facts.multiprocessors;
  result.multiprocessors_reached = std::min<std::uint64_t>(reached.size(), facts.multiprocessors);
  result.shared_bytes = facts.shared_bytes * facts.multiprocessors;
  result.shared_reached_bytes = launch.shared_bytes * result.multiprocessors_reached;
  result.shared_residue_bytes += residue;
  result.register_bytes = facts.register_bytes * facts.multiprocessors;
  result.register_reached_bytes = registers ? sizeof(std::uint32_t) * kernels::kHeldRegisters *
                                                  kThreads * result.multiprocessors_reached
                                            : 0;
  result.l2_bytes = facts.l2_bytes;
  return wrong;
}

Status Card::Release() {
  Status first;
  const auto note = [&](Status status) {
    if (!status.has_value() && first.has_value()) {
      first = std::move(status);
    }
  };
  for (const Range& range : ranges_) {
    note(driver_.Free(range.pointer));
  }
  ranges_.clear();
  if (tallies_ != nullptr) {
    note(driver_.FreeHost(std::exchange(tallies_, nullptr)));
  }
  note(driver_.Close());
  return first;
}

}  // namespace ringfence::gpu

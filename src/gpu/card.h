#pragma once

// All of one card's memory, passes over it, and what is on its chip.

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/card_driver.h"
#include "gpu/scrub.h"

namespace ringfence::gpu {

// What the bytes are to be: a pattern that is another one at every place, or zeros.
enum class Content { kPattern, kZeros };

// For one thread. Release() must be asked for, as with CardDriver::Close. Every pass adds up what
// its kernels say they did: a byte that none of them came to is an error.
class Card {
 public:
  // `driver` must outlive the card. The seed makes this scrub's pattern.
  Card(CardDriver& driver, std::string uuid, std::uint64_t seed)
      : driver_(driver), uuid_(std::move(uuid)), seed_(seed) {}
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;
  ~Card() { (void)Release(); }

  Status Open();
  // Runs every kernel once on a small piece, so that what the driver allocates for itself at first
  // use is there before TakeAll leaves nothing. Returns the residue found in the piece, which is
  // zero afterwards.
  Result<std::uint64_t> Warm();
  // Allocates all that can be had.
  Status TakeAll();
  Status Fill(Content content);
  // Bytes that are not as they are to be.
  Result<std::uint64_t> Count(Content content);
  // Clears shared memory and registers of every multiprocessor, adding to `result`. Returns the
  // bytes that did not keep what was written.
  Result<std::uint64_t> ClearOnChip(OnChipScrub& result);
  Status Release();

  // What a scrub is measured against: the vendor's memset, and a kernel that only reads.
  Status FloorWrite();
  Status FloorRead();

  std::uint64_t taken_bytes() const { return taken_bytes_; }

 private:
  struct Range {
    CardPointer pointer = 0;
    std::uint64_t vectors = 0;
    std::uint64_t first = 0;  // place of the first vector on the card
  };
  void Keep(CardPointer pointer, std::size_t bytes);
  std::uint32_t GridBlocks(std::uint64_t vectors) const;
  void ClearTallies();
  Status StartMemoryKernel(Kernel kernel, const Range& range, Content content);
  Result<std::uint64_t> AddUp();
  Result<std::uint64_t> Pass(Kernel kernel, Content content);

  CardDriver& driver_;
  std::string uuid_;
  std::uint64_t seed_;
  void* tallies_ = nullptr;
  std::size_t tally_bytes_ = 0;
  std::vector<Range> ranges_;
  std::uint64_t taken_bytes_ = 0;
};

}  // namespace ringfence::gpu

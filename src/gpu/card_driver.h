#pragma once

// One card through its vendor's driver, as far as a scrub needs it; the same for every vendor.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"

namespace ringfence::gpu {

// What a card has beside its memory.
struct CardFacts {
  std::uint32_t multiprocessors = 0;
  std::uint64_t l2_bytes = 0;
  // Of each multiprocessor.
  std::uint64_t shared_bytes = 0;
  std::uint64_t block_shared_bytes = 0;  // of these, what one block can have
  std::uint64_t register_bytes = 0;
  // Whether kOnChip can be started; without, what is on the chip is out of reach.
  bool runs_kernels = true;
};

enum class Kernel { kFill, kCount, kRead, kOnChip };

struct Launch {
  Kernel kernel = Kernel::kCount;
  unsigned int blocks = 0;  // of kernels::kThreads threads each
  unsigned int shared_bytes = 0;
  std::span<void*> arguments;  // pointers to the kernel's arguments, in order
};

using CardPointer = unsigned long long;

// For one thread. Close() must be asked for, and its failure is an error: a context that would not
// go away is no clean card; destructors only tidy up. Errors name the card and the vendor's words.
class CardDriver {
 public:
  CardDriver() = default;
  CardDriver(const CardDriver&) = delete;
  CardDriver& operator=(const CardDriver&) = delete;
  virtual ~CardDriver() = default;

  // Takes the card into use and loads the kernels.
  virtual Status Open() = 0;
  virtual Status Close() = 0;
  // After Open.
  virtual const CardFacts& facts() const = 0;
  // Whether kOnChip keeps all of a thread's words in registers and none in memory.
  virtual Result<bool> HoldsRegisters() = 0;

  virtual Result<std::size_t> FreeBytes() = 0;
  virtual Result<std::optional<CardPointer>> Allocate(std::size_t bytes) = 0;  // none: no room
  virtual Status Free(CardPointer pointer) = 0;
  // Memory of this machine that kernels can write to, at the same address.
  virtual Result<void*> AllocateHost(std::size_t bytes) = 0;
  virtual Status FreeHost(void* memory) = 0;

  // Launches run one after another, behind our back until Wait.
  virtual Status Start(const Launch& launch) = 0;
  virtual Status Wait() = 0;
  // The vendor's own memset, which a scrub is measured against. Ends before or in Wait.
  virtual Status Zero(CardPointer pointer, std::size_t bytes) = 0;
};

}  // namespace ringfence::gpu

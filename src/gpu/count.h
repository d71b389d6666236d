#pragma once

// Counting bytes of memory read back from a card. At PCIe speed the host's side must not be what
// the scrub waits for, so both look at whole blocks first and at single bytes only where needed.

#include <cstdint>
#include <span>

namespace ringfence::gpu {

// Bytes that are not zero.
std::uint64_t CountNonZero(std::span<const std::byte> bytes);

// Bytes that differ from `pattern` repeated, as cuMemsetD32 writes it (little-endian) from the
// first byte on.
std::uint64_t CountDifferent(std::span<const std::byte> bytes, std::uint32_t pattern);

}  // namespace ringfence::gpu

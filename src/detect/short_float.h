#pragma once

// A float in two bytes: the same range, three decimal digits. A baseline keeps many numbers for
// each of a million series, and none of them needs more.

#include <bit>
#include <cstdint>

namespace ringfence::detect {

class ShortFloat {
 public:
  ShortFloat() = default;
  explicit ShortFloat(float value) {
    // The upper half of the bits, rounded to nearest; what is stored is never NaN (callers keep
    // NaN out), and a carry past the largest float gives infinity, as it should.
    const auto bits = std::bit_cast<std::uint32_t>(value);
    bits_ = static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
  }
  float get() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16U); }

 private:
  std::uint16_t bits_ = 0;
};

}  // namespace ringfence::detect

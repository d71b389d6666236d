#pragma once

// Counts of durations in buckets that are 1/128 of their value wide, so that every percentile is
// within 0.8% of the truth at a fixed size, however long the run.

#include <array>
#include <bit>
#include <cstdint>

namespace ringfence::bench {

// One thread at a time.
class Histogram {
 public:
  void Add(std::uint64_t microseconds) {
    ++buckets_[IndexOf(microseconds)];
    ++count_;
    max_ = microseconds > max_ ? microseconds : max_;
  }

  void Merge(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) {
      buckets_[i] += other.buckets_[i];
    }
    count_ += other.count_;
    max_ = other.max_ > max_ ? other.max_ : max_;
  }

  // The least value that `share` (0 to 1) of all are not above; 0 when there are none.
  std::uint64_t Percentile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_) + 0.5);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += buckets_[i];
      if (seen > 0 && seen >= wanted) {
        const std::uint64_t upper = UpperOf(i);
        return upper < max_ ? upper : max_;
      }
    }
    return max_;
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t max() const { return max_; }

 private:
  static constexpr unsigned kBits = 7;  // of precision
  static constexpr std::size_t kBuckets = (std::size_t{40} - kBits + 1) << kBits;

  // Below 2^(kBits+1) each value has a bucket of its own; above it each power of two has 2^kBits.
  static std::size_t IndexOf(std::uint64_t value) {
    const unsigned width = static_cast<unsigned>(std::bit_width(value | 1U));
    const unsigned shift = width > kBits + 1 ? width - kBits - 1 : 0;
    const std::size_t index = (std::size_t{shift} << kBits) + (value >> shift);
    return index < kBuckets ? index : kBuckets - 1;
  }
  static std::uint64_t UpperOf(std::size_t index) {
    if (index < (std::size_t{2} << kBits)) {
      return index;
    }
    const std::size_t shift = (index >> kBits) - 1;
    const std::uint64_t base = index - (shift << kBits);
    return ((base + 1) << shift) - 1;
  }

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace ringfence::bench

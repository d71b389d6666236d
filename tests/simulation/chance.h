#pragma once

// All chance of a simulated world comes from one seed: its own choices, and what the product draws
// (ids, keys, nonces) through OpenSSL.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace ringfence::simulation {

// splitmix64: small, and the same everywhere.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }
  // From `least` to `most`, both possible.
  std::int64_t Between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(Next() % static_cast<std::uint64_t>(most - least + 1));
  }
  Milliseconds Time(std::int64_t least_ms, std::int64_t most_ms) {
    return Milliseconds(Between(least_ms, most_ms));
  }
  // True in so many of a thousand cases.
  bool In1000(int cases) { return Between(0, 999) < cases; }
  template <typename T>
  T& Pick(std::vector<T>& from) {
    return from[static_cast<std::size_t>(Between(0, static_cast<std::int64_t>(from.size()) - 1))];
  }

 private:
  std::uint64_t state_;
};

// From now on OpenSSL's random bytes follow from this seed, in this whole process.
void SeedOpenSsl(std::uint64_t seed);

}  // namespace ringfence::simulation

#pragma once

// Most entries of a log have the same members as one that was checked shortly before, and differ
// only in the texts and numbers that stand there. A shape is what is the same. An entry that fits
// the shape of a canonical one, with plain texts and canonical numbers in its places, is canonical;
// finding that out takes a fraction of the time of a full scan.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ringfence::audit::verify {

// One thread. Works on processors with AVX-512 and its byte compression (servers since 2021);
// on others it never says yes.
class ShapeCache {
 public:
  // True: `text` is canonical. False says nothing.
  bool Fits(std::string_view text);
  // `text` has been found to be canonical by a full scan.
  void Learn(std::string_view text);

 private:
  static constexpr std::size_t kSlots = 256;
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kQuotesLimit = 512;

  struct Shape {
    // The text without the insides of strings that are values; each number is one '0'. Padded.
    std::string skeleton;
    std::size_t length = 0;  // of the skeleton without its padding
    std::size_t quotes = 0;
    // A bit for each quote: whether it belongs to a value. With room to read a word anywhere.
    std::array<std::uint8_t, kQuotesLimit / 8 + sizeof(std::uint64_t)> of_values{};
  };
  struct Marks;
  struct Matcher;

  static std::size_t SlotOf(std::string_view text, std::size_t quotes);
  static bool Describe(std::string_view text, Shape& shape);

  // Of each slot the shape used last comes first.
  std::array<std::array<std::unique_ptr<Shape>, kWays>, kSlots> slots_;
};

}  // namespace ringfence::audit::verify

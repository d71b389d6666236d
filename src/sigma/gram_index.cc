#include "sigma/gram_index.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace ringfence::sigma {
namespace {

constexpr std::size_t kBitsLeast = std::size_t{1} << 10U;
constexpr std::size_t kBitsMost = std::size_t{1} << 19U;  // 64 KiB: stays in the second cache
constexpr std::size_t kAnchorMost = 60'000;               // fits Entry::anchor

std::uint32_t Gram(std::string_view text, std::size_t at, std::size_t width) {
  return width == 4 ? LoadFour(text.data() + at) : LoadTwo(text.data() + at);
}

}  // namespace

void GramIndex::Table::Size(std::size_t grams) {
  used = true;
  const std::size_t bit_count = std::clamp(std::bit_ceil(grams * 16), kBitsLeast, kBitsMost);
  bits.assign(bit_count / 64, 0);
  bits_shift = 32U - static_cast<unsigned>(std::countr_zero(bit_count));
  const std::size_t slot_count = std::bit_ceil(grams * 2 + 2);
  slots.assign(slot_count, {});
  slots_shift = 32U - static_cast<unsigned>(std::countr_zero(slot_count));
}

void GramIndex::Table::Put(std::uint32_t gram, std::uint32_t first, std::uint32_t count) {
  const std::uint32_t h = Mix(gram) >> bits_shift;
  bits[h >> 6U] |= std::uint64_t{1} << (h & 63U);
  std::size_t at = Mix(gram) >> slots_shift;
  while (slots[at].count != 0) {
    at = (at + 1) & (slots.size() - 1);
  }
  slots[at] = {gram, first, count};
}

void GramIndex::Fill(Table& table, std::size_t width, std::vector<const Literal*> literals) {
  if (literals.empty()) {
    return;
  }
  // What is rare among the literals is taken to be rare in texts.
  std::unordered_map<std::uint32_t, std::uint32_t> uses;
  for (const Literal* literal : literals) {
    for (std::size_t i = 0; i + width <= literal->text.size(); ++i) {
      ++uses[Gram(literal->text, i, width)];
    }
  }
  struct Filed {
    std::uint32_t gram;
    Entry entry;
  };
  std::vector<Filed> filed;
  for (const Literal* literal : literals) {
    std::size_t best = 0;
    for (std::size_t i = 0; i + width <= literal->text.size() && i < kAnchorMost; ++i) {
      if (uses[Gram(literal->text, i, width)] < uses[Gram(literal->text, best, width)]) {
        best = i;
      }
    }
    filed.push_back({Gram(literal->text, best, width),
                     {literal->atom, static_cast<std::uint32_t>(pool_.size()),
                      static_cast<std::uint32_t>(literal->text.size()),
                      static_cast<std::uint16_t>(best), literal->mode, literal->pattern}});
    pool_ += literal->text;
  }
  std::stable_sort(filed.begin(), filed.end(),
                   [](const Filed& a, const Filed& b) { return a.gram < b.gram; });
  std::size_t grams = 0;
  for (std::size_t i = 0; i < filed.size(); ++i) {
    grams += i == 0 || filed[i].gram != filed[i - 1].gram ? 1 : 0;
  }
  table.Size(grams);
  for (std::size_t i = 0; i < filed.size();) {
    std::size_t end = i;
    const auto first = static_cast<std::uint32_t>(entries_.size());
    while (end < filed.size() && filed[end].gram == filed[i].gram) {
      entries_.push_back(filed[end++].entry);
    }
    table.Put(filed[i].gram, first, static_cast<std::uint32_t>(end - i));
    i = end;
  }
}

void GramIndex::Build(const std::vector<Literal>& literals) {
  std::vector<const Literal*> four;
  std::vector<const Literal*> two;
  for (const Literal& literal : literals) {
    if (literal.text.size() == 1) {
      singles_.push_back({literal.atom, static_cast<std::uint32_t>(pool_.size()), 1, 0,
                          literal.mode, literal.pattern});
      pool_ += literal.text;
    } else {
      (literal.text.size() < 4 ? two : four).push_back(&literal);
    }
  }
  Fill(four_, 4, std::move(four));
  Fill(two_, 2, std::move(two));
}

}  // namespace ringfence::sigma

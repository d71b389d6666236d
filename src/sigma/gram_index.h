#pragma once

// Finds which of many literals occur in a text, in one pass. Each literal is filed under its
// rarest four (or two) bytes; the scan asks a small bit table at every position and looks closer
// only where it says maybe. Built once, then read by any number of threads.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sigma/text.h"

namespace ringfence::sigma {

class GramIndex {
 public:
  enum class Mode : std::uint8_t { kAnywhere, kStart, kEnd, kGlob };
  struct Literal {
    std::uint32_t atom = 0;
    Mode mode = Mode::kAnywhere;
    std::string text;                  // folded; not empty
    const Pattern* pattern = nullptr;  // kGlob: `text` is one of its literal parts; must outlive
  };

  void Build(const std::vector<Literal>& literals);
  bool empty() const { return entries_.empty() && singles_.empty(); }

  // Calls hit(atom) for every literal in `text`, perhaps more than once; for a glob only
  // maybe(atom, pattern): the caller tries it, once.
  template <typename Hit, typename Maybe>
  void Scan(std::string_view text, const Hit& hit, const Maybe& maybe) const;

 private:
  struct Entry {
    std::uint32_t atom;
    std::uint32_t text;  // offset into pool_
    std::uint32_t length;
    std::uint16_t anchor;  // where the gram is in the literal
    Mode mode;
    const Pattern* pattern;
  };
  struct Slot {
    std::uint32_t gram = 0;
    std::uint32_t first = 0;
    std::uint32_t count = 0;  // 0: free
  };
  struct Table {
    std::vector<std::uint64_t> bits;
    std::vector<Slot> slots;
    unsigned bits_shift = 0;
    unsigned slots_shift = 0;
    bool used = false;

    void Size(std::size_t grams);
    void Put(std::uint32_t gram, std::uint32_t first, std::uint32_t count);
    static std::uint32_t Mix(std::uint32_t gram) { return gram * 0x9e3779b1U; }
    const Slot* Find(std::uint32_t gram) const {
      const Slot* all = slots.data();
      const std::size_t mask = slots.size() - 1;
      std::size_t at = Mix(gram) >> slots_shift;
      while (all[at].count != 0) {
        if (all[at].gram == gram) {
          return all + at;
        }
        at = (at + 1) & mask;
      }
      return nullptr;
    }
  };

  template <typename Hit, typename Maybe>
  void Check(const Slot& slot, std::string_view text, std::size_t at, const Hit& hit,
             const Maybe& maybe) const;

  void Fill(Table& table, std::size_t width, std::vector<const Literal*> literals);

  Table four_;
  Table two_;
  std::vector<Entry> entries_;
  std::vector<Entry> singles_;  // of one byte
  std::string pool_;
};

inline std::uint32_t LoadFour(const char* at) {
  std::uint32_t value = 0;
  __builtin_memcpy(&value, at, 4);
  return value;
}
inline std::uint32_t LoadTwo(const char* at) {
  std::uint16_t value = 0;
  __builtin_memcpy(&value, at, 2);
  return value;
}

template <typename Hit, typename Maybe>
void GramIndex::Check(const Slot& slot, std::string_view text, std::size_t at, const Hit& hit,
                      const Maybe& maybe) const {
  const Entry* entries = entries_.data() + slot.first;
  for (std::uint32_t i = 0; i < slot.count; ++i) {
    const Entry& entry = entries[i];
    if (at < entry.anchor || text.size() - (at - entry.anchor) < entry.length) {
      continue;
    }
    const std::size_t begin = at - entry.anchor;
    if ((entry.mode == Mode::kStart && begin != 0) ||
        (entry.mode == Mode::kEnd && begin + entry.length != text.size()) ||
        __builtin_memcmp(text.data() + begin, pool_.data() + entry.text, entry.length) != 0) {
      continue;
    }
    if (entry.mode == Mode::kGlob) {
      maybe(entry.atom, *entry.pattern);
    } else {
      hit(entry.atom);
    }
  }
}

template <typename Hit, typename Maybe>
void GramIndex::Scan(std::string_view text, const Hit& hit, const Maybe& maybe) const {
  const char* data = text.data();
  const auto pass = [&](const Table& table, std::size_t width, const auto& load) {
    if (!table.used || text.size() < width) {
      return;
    }
    const std::uint64_t* bits = table.bits.data();  // this loop is where the time goes
    const unsigned shift = table.bits_shift;
    const std::size_t end = text.size() - width;
    for (std::size_t i = 0; i <= end; ++i) {
      const std::uint32_t gram = load(data + i);
      const std::uint32_t h = Table::Mix(gram) >> shift;
      if (((bits[h >> 6U] >> (h & 63U)) & 1U) != 0) [[unlikely]] {
        if (const Slot* slot = table.Find(gram)) {
          Check(*slot, text, i, hit, maybe);
        }
      }
    }
  };
  pass(four_, 4, LoadFour);
  pass(two_, 2, LoadTwo);
  for (const Entry& entry : singles_) {
    const char c = pool_[entry.text];
    const bool found = entry.mode == Mode::kStart ? text.starts_with(c)
                       : entry.mode == Mode::kEnd ? text.ends_with(c)
                                                  : text.find(c) != std::string_view::npos;
    if (found && entry.mode == Mode::kGlob) {
      maybe(entry.atom, *entry.pattern);
    } else if (found) {
      hit(entry.atom);
    }
  }
}

}  // namespace ringfence::sigma

#pragma once

// Millions of indicators, looked up in about as long as it takes to read the memory they lie in.
//
// What a plain list names, and patterns that are nothing but equalities joined by OR, go into
// tables: texts by what they are and say, addresses by their prefixes, domains by their endings.
// Other patterns are tried one by one, those of the event's object types.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "detect/indicator.h"
#include "detect/ip_range.h"
#include "detect/pattern_match.h"

namespace ringfence::detect {

// From a key to the numbers of indicators. Keys are copied into one block of memory.
class KeyTable {
 public:
  void Add(std::string_view key, std::uint32_t number);
  // Calls `found` with each number under the key.
  template <typename Found>
  void Look(std::string_view key, const Found& found) const;
  std::size_t size() const { return used_; }
  std::size_t bytes() const {
    return slots_.capacity() * sizeof(Slot) + text_.capacity() + more_.capacity() * sizeof(More) +
           filter_.capacity() * sizeof(std::uint64_t);
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint64_t text = 0;  // where its key begins
    std::uint32_t length = 0;
    std::uint32_t number = kNone;
    std::uint32_t more = kNone;  // further numbers
  };
  struct More {
    std::uint32_t number;
    std::uint32_t next;
  };
  static constexpr std::uint32_t kNone = 0xffffffffU;
  static std::uint64_t Hash(std::string_view key);
  std::size_t Find(std::string_view key, std::uint64_t hash) const;
  void Grow();
  // A bit for each of many groups of hashes: most keys that are not there are seen to be missing
  // in memory small enough for the processor's cache.
  std::size_t FilterBit(std::uint64_t hash) const {
    return (hash >> 20U) & (filter_.size() * 64 - 1);
  }
  void Mark(std::uint64_t hash) {
    const std::size_t bit = FilterBit(hash);
    filter_[bit / 64] |= std::uint64_t{1} << (bit % 64);
  }
  bool Marked(std::uint64_t hash) const {
    const std::size_t bit = FilterBit(hash);
    return (filter_[bit / 64] >> (bit % 64) & 1U) != 0;
  }

  std::vector<Slot> slots_;            // a power of two of them
  std::vector<std::uint64_t> filter_;  // eight bits for each slot
  std::vector<More> more_;
  std::string text_;
  std::size_t used_ = 0;
};

class IndicatorIndex {
 public:
  // The pattern of a kPattern must be one that ParsePattern accepts.
  Status Add(Indicator indicator);

  const std::vector<Indicator>& indicators() const { return indicators_; }
  std::size_t bytes() const;  // of the tables
  std::size_t patterns_to_try() const { return matchers_.size(); }

  // Lookups of one value; each appends the numbers of what it finds.
  using Numbers = std::vector<std::uint32_t>;
  void LookIp(const IpRange& address, Numbers& found) const;
  void LookDomain(std::string_view name, Numbers& found) const;  // itself, and what it is below
  void LookText(Kind kind, std::string_view value, Numbers& found) const;  // URL, hash, e-mail

  // Everything that an event matches, each once, sorted; not yet asked whether valid at its time.
  // Events come in order: `number` grows. Patterns over several events remember what they need.
  void Match(const Observation& observation, std::uint64_t number, Numbers& found);

 private:
  void LookMembers(const Json& object, Numbers& found) const;

  std::vector<Indicator> indicators_;
  KeyTable keys_;
  std::vector<std::uint8_t> v4_bits_;  // prefix lengths that are there, longest first
  std::vector<std::uint8_t> v6_bits_;
  // Paths that some equality asks for, by type of object.
  std::unordered_map<std::string, std::vector<ObjectPath>> paths_;
  struct Tried {
    PatternMatcher matcher;
    std::uint32_t number;
    std::uint64_t last_event;
  };
  std::vector<Tried> matchers_;
  std::unordered_map<std::string, std::vector<std::size_t>> by_type_;
};

template <typename Found>
void KeyTable::Look(std::string_view key, const Found& found) const {
  if (slots_.empty()) {
    return;
  }
  const std::uint64_t hash = Hash(key);
  if (!Marked(hash)) {
    return;
  }
  const Slot& slot = slots_[Find(key, hash)];
  if (slot.number == kNone) {
    return;
  }
  found(slot.number);
  for (std::uint32_t at = slot.more; at != kNone; at = more_[at].next) {
    found(more_[at].number);
  }
}

}  // namespace ringfence::detect

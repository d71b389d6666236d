#pragma once

// What was found in values that come again and again: programs, users, paths. A value is kept when
// it is seen for the second time, so that those that never come back (process numbers, times) cost
// a look at one small table. Bounded: a full memo forgets everything and learns anew. One thread's.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sigma/arena.h"

namespace ringfence::sigma {

class ValueMemo {
 public:
  static constexpr std::size_t kEntriesMax = std::size_t{1} << 15U;
  static constexpr std::size_t kTextBytesMax = std::size_t{4} << 20U;  // of all entries
  static constexpr std::size_t kValueBytesMax = 4096;                  // of one that is kept

  struct Entry {
    std::uint64_t hash = 0;
    std::string_view text;
    std::string_view folded;
    std::uint32_t place = 0;  // where in events the value was
    std::uint32_t first = 0;  // into hits_
    std::uint32_t count = 0;
  };

  ValueMemo();

  // Before the values of an event: what Find gave before is no longer valid.
  void BeginEvent();

  static std::uint64_t Hash(std::uint32_t place, std::string_view text);
  const Entry* Find(std::uint64_t hash, std::uint32_t place, std::string_view text) const;
  std::span<const std::uint32_t> Hits(const Entry& entry) const {
    return {hits_.data() + entry.first, entry.count};
  }
  std::uint32_t NumberOf(const Entry& entry) const {
    return static_cast<std::uint32_t>(&entry - entries_.data());
  }
  // Answers to other questions (atoms) about an entry, by its number; old ones make way for new.
  bool FindAnswer(std::uint32_t entry, std::uint32_t atom, bool& holds) const {
    const Answer& answer = answers_[AnswerAt(entry, atom)];
    holds = answer.holds;
    return answer.entry == entry && answer.atom == atom;
  }
  void KeepAnswer(std::uint32_t entry, std::uint32_t atom, bool holds) {
    answers_[AnswerAt(entry, atom)] = {entry, atom, holds};
  }
  // Whether a value with this hash came before, as far as is remembered.
  bool Recurs(std::uint64_t hash);
  // Not kept when it is too long, or there is no room until the next event.
  void Keep(std::uint64_t hash, std::uint32_t place, std::string_view text, std::string_view folded,
            std::span<const std::uint32_t> hits);

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t entry = kFree;
  };
  static constexpr std::uint32_t kFree = 0xffffffffU;

  struct Answer {
    std::uint32_t entry = kFree;
    std::uint32_t atom = 0;
    bool holds = false;
  };
  static constexpr unsigned kAnswerBits = 14;
  static std::size_t AnswerAt(std::uint32_t entry, std::uint32_t atom) {
    const std::uint64_t both = std::uint64_t{entry} << 32U | atom;
    return (both * 0x9e3779b97f4a7c15ULL) >> (64U - kAnswerBits);
  }

  void Place(std::uint64_t hash, std::uint32_t entry);
  void Grow();

  std::vector<Slot> slots_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> hits_;
  std::vector<Answer> answers_;
  std::vector<std::uint16_t> once_;  // by hash: a part of the hash of the value seen last
  Arena texts_;
  std::size_t text_bytes_ = 0;
};

}  // namespace ringfence::sigma

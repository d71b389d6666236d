#pragma once

// What was found in values that come again and again: programs, users, paths. A value is kept when
// it is seen for the second time, so that those that never come back (process numbers, times) cost
// a look at one small table. Bounded: a full memo forgets everything and learns anew. One thread's.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace ringfence::sigma {

class ValueMemo {
 public:
  static constexpr std::size_t kEntriesMax = std::size_t{1} << 15U;
  static constexpr std::size_t kPoolBytes = std::size_t{6} << 20U;  // of all entries
  static constexpr std::size_t kValueBytesMax = 4096;               // of one that is kept

  // Followed in memory by its hits, its text and its folded text, so that few cache lines are read.
  struct Entry {
    std::uint64_t hash = 0;
    std::uint32_t place = 0;  // where in events the value was
    std::uint32_t number = 0;
    std::uint32_t text_bytes = 0;
    std::uint32_t folded_bytes = 0;  // 0: the text is folded as it is
    std::uint32_t hit_count = 0;

    std::span<const std::uint32_t> hits() const {
      return {reinterpret_cast<const std::uint32_t*>(this + 1), hit_count};
    }
    std::string_view text() const {
      return {reinterpret_cast<const char*>(this + 1) + hit_count * sizeof(std::uint32_t),
              text_bytes};
    }
    std::string_view folded() const {
      return folded_bytes == 0 ? text()
                               : std::string_view(text().data() + text_bytes, folded_bytes);
    }
  };

  ValueMemo();

  // Before the values of an event: what Find gave before is no longer valid.
  void BeginEvent();

  static std::uint64_t Hash(std::uint32_t place, std::string_view text);
  // Find waits for memory twice. Called for many values in turn, these have it fetched.
  void Warm(std::uint64_t hash) const { __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]); }
  void WarmEntry(std::uint64_t hash) const {
    const Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (slot.tag == Tag(hash) && slot.offset != kFree) {
      __builtin_prefetch(pool_.get() + slot.offset);
      __builtin_prefetch(pool_.get() + slot.offset + 64);
    }
  }
  const Entry* Find(std::uint64_t hash, std::uint32_t place, std::string_view text) const;
  // Whether a value with this hash came before, as far as is remembered.
  bool Recurs(std::uint64_t hash);
  // Not kept when it is too long, or there is no room until the next event.
  void Keep(std::uint64_t hash, std::uint32_t place, std::string_view text, std::string_view folded,
            std::span<const std::uint32_t> hits);

  // Answers to other questions (atoms) about an entry, by its number; old ones make way for new.
  bool FindAnswer(std::uint32_t entry, std::uint32_t atom, bool& holds) const {
    const Answer& answer = answers_[AnswerAt(entry, atom)];
    holds = answer.holds;
    return answer.entry == entry && answer.atom == atom;
  }
  void KeepAnswer(std::uint32_t entry, std::uint32_t atom, bool holds) {
    answers_[AnswerAt(entry, atom)] = {entry, atom, holds};
  }

 private:
  static constexpr std::uint32_t kFree = 0xffffffffU;
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t offset = kFree;  // into pool_
  };
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
  static std::uint32_t Tag(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32U); }
  const Entry& At(std::uint32_t offset) const {
    return *reinterpret_cast<const Entry*>(pool_.get() + offset);
  }

  void Place(std::uint64_t hash, std::uint32_t offset);
  void Grow();

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> offsets_;  // of the entries, by number
  std::vector<Answer> answers_;
  std::vector<std::uint16_t> once_;    // by hash: a part of the hash of the value seen last
  std::unique_ptr<std::byte[]> pool_;  // pages that are never used are never there
  std::size_t used_ = 0;
  bool full_ = false;
};

}  // namespace ringfence::sigma

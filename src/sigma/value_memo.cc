#include "sigma/value_memo.h"

namespace ringfence::sigma {
namespace {

constexpr std::size_t kSlotsLeast = 1024;
constexpr std::size_t kOnceSlots = std::size_t{1} << 15U;
constexpr std::size_t kHitsMax = std::size_t{1} << 19U;

std::uint64_t Mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 32U);
}

}  // namespace

ValueMemo::ValueMemo()
    : slots_(kSlotsLeast), answers_(std::size_t{1} << kAnswerBits), once_(kOnceSlots) {}

void ValueMemo::BeginEvent() {
  if (entries_.size() < kEntriesMax && text_bytes_ < kTextBytesMax && hits_.size() < kHitsMax) {
    return;
  }
  slots_.assign(slots_.size(), {});
  entries_.clear();
  hits_.clear();
  answers_.assign(answers_.size(), {});
  texts_.Clear();
  text_bytes_ = 0;
}

std::uint64_t ValueMemo::Hash(std::uint32_t place, std::string_view text) {
  const char* data = text.data();
  std::size_t left = text.size();
  std::uint64_t one = 0x9e3779b97f4a7c15ULL ^ (std::uint64_t{place} << 32U);
  std::uint64_t two = (left + 1) * 0xc4ceb9fe1a85ec53ULL;
  for (; left > 16; left -= 16, data += 16) {  // two chains, as each waits for its multiplication
    std::uint64_t words[2];
    __builtin_memcpy(words, data, 16);
    one = Mix(one, words[0]);
    two = Mix(two, words[1]);
  }
  std::uint64_t words[2] = {0, 0};
  if (left >= 8) {
    __builtin_memcpy(words, data, 8);
    __builtin_memcpy(words + 1, data + left - 8, 8);
  } else if (left >= 4) {
    std::uint32_t halves[2];
    __builtin_memcpy(halves, data, 4);
    __builtin_memcpy(halves + 1, data + left - 4, 4);
    words[0] = halves[0];
    words[1] = halves[1];
  } else if (left > 0) {
    const auto byte = [&](std::size_t i) {
      return std::uint64_t{static_cast<unsigned char>(data[i])};
    };
    words[0] = byte(0) | byte(left / 2) << 8U | byte(left - 1) << 16U;
  }
  return Mix(Mix(one, words[0]), Mix(two, words[1]));
}

const ValueMemo::Entry* ValueMemo::Find(std::uint64_t hash, std::uint32_t place,
                                        std::string_view text) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at].entry != kFree; at = (at + 1) & mask) {
    if (slots_[at].tag != static_cast<std::uint32_t>(hash >> 32U)) {
      continue;
    }
    const Entry& entry = entries_[slots_[at].entry];
    if (entry.place == place && entry.text == text) {
      return &entry;
    }
  }
  return nullptr;
}

bool ValueMemo::Recurs(std::uint64_t hash) {
  std::uint16_t& last = once_[hash & (kOnceSlots - 1)];
  const auto mark = static_cast<std::uint16_t>(hash >> 48U | 1U);
  const bool before = last == mark;
  last = mark;
  return before;
}

void ValueMemo::Place(std::uint64_t hash, std::uint32_t entry) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].entry != kFree) {
    at = (at + 1) & mask;
  }
  slots_[at] = {static_cast<std::uint32_t>(hash >> 32U), entry};
}

void ValueMemo::Grow() {
  slots_.assign(slots_.size() * 2, {});
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    Place(entries_[i].hash, i);
  }
}

void ValueMemo::Keep(std::uint64_t hash, std::uint32_t place, std::string_view text,
                     std::string_view folded, std::span<const std::uint32_t> hits) {
  if (text.size() > kValueBytesMax || entries_.size() >= kEntriesMax) {
    return;
  }
  if ((entries_.size() + 1) * 2 > slots_.size()) {
    Grow();
  }
  Entry entry;
  entry.hash = hash;
  entry.text = texts_.Copy(text);
  entry.folded = folded == text ? entry.text : texts_.Copy(folded);
  entry.place = place;
  entry.first = static_cast<std::uint32_t>(hits_.size());
  entry.count = static_cast<std::uint32_t>(hits.size());
  hits_.insert(hits_.end(), hits.begin(), hits.end());
  text_bytes_ += text.size() + folded.size();
  Place(hash, static_cast<std::uint32_t>(entries_.size()));
  entries_.push_back(entry);
}

}  // namespace ringfence::sigma

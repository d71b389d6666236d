#include "sigma/value_memo.h"

#include <cstring>
#include <new>

namespace ringfence::sigma {
namespace {

constexpr std::size_t kSlotsLeast = 1024;
constexpr std::size_t kOnceSlots = std::size_t{1} << 15U;

std::uint64_t Mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 32U);
}

}  // namespace

ValueMemo::ValueMemo()
    : slots_(kSlotsLeast),
      answers_(std::size_t{1} << kAnswerBits),
      once_(kOnceSlots),
      pool_(new std::byte[kPoolBytes]) {}

void ValueMemo::BeginEvent() {
  if (!full_) {
    return;
  }
  slots_.assign(slots_.size(), {});
  answers_.assign(answers_.size(), {});
  offsets_.clear();
  used_ = 0;
  full_ = false;
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
  for (std::size_t at = hash & mask; slots_[at].offset != kFree; at = (at + 1) & mask) {
    if (slots_[at].tag != Tag(hash)) {
      continue;
    }
    const Entry& entry = At(slots_[at].offset);
    if (entry.hash == hash && entry.place == place && entry.text() == text) {
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

void ValueMemo::Place(std::uint64_t hash, std::uint32_t offset) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].offset != kFree) {
    at = (at + 1) & mask;
  }
  slots_[at] = {Tag(hash), offset};
}

void ValueMemo::Grow() {
  slots_.assign(slots_.size() * 2, {});
  for (const std::uint32_t offset : offsets_) {
    Place(At(offset).hash, offset);
  }
}

void ValueMemo::Keep(std::uint64_t hash, std::uint32_t place, std::string_view text,
                     std::string_view folded, std::span<const std::uint32_t> hits) {
  if (text.size() > kValueBytesMax || full_) {
    return;
  }
  const bool same = folded == text;
  const std::size_t bytes =
      sizeof(Entry) + hits.size_bytes() + text.size() + (same ? 0 : folded.size());
  if (offsets_.size() >= kEntriesMax || used_ + bytes + sizeof(Entry) > kPoolBytes) {
    full_ = true;
    return;
  }
  if ((offsets_.size() + 1) * 2 > slots_.size()) {
    Grow();
  }
  std::byte* out = pool_.get() + used_;
  new (out) Entry{.hash = hash,
                  .place = place,
                  .number = static_cast<std::uint32_t>(offsets_.size()),
                  .text_bytes = static_cast<std::uint32_t>(text.size()),
                  .folded_bytes = static_cast<std::uint32_t>(same ? 0 : folded.size()),
                  .hit_count = static_cast<std::uint32_t>(hits.size())};
  auto append = [at = out + sizeof(Entry)](const void* data, std::size_t size) mutable {
    if (size != 0) {
      std::memcpy(at, data, size);
    }
    at += size;
  };
  append(hits.data(), hits.size_bytes());
  append(text.data(), text.size());
  append(folded.data(), same ? 0 : folded.size());
  Place(hash, static_cast<std::uint32_t>(used_));
  offsets_.push_back(static_cast<std::uint32_t>(used_));
  used_ = (used_ + bytes + alignof(Entry) - 1) / alignof(Entry) * alignof(Entry);
}

}  // namespace ringfence::sigma

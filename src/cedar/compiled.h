#pragma once

// What the engine works on: values of sixteen bytes that own nothing, and the table of entities
// by number. For this folder only.

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cedar/entities.h"
#include "cedar/value.h"

namespace ringfence::cedar {

// Memory that is given back all at once. Reset keeps the blocks, so that a second use of the same
// size allocates nothing.
class Bump {
 public:
  template <typename T>
  T* Array(std::size_t count) {
    return static_cast<T*>(Take(count * sizeof(T)));
  }
  std::string_view Copy(std::string_view text);
  void Reset() {
    block_ = 0;
    used_ = 0;
  }
  std::size_t bytes() const;

 private:
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  void* Take(std::size_t size);
  std::vector<Block> blocks_;
  std::size_t block_ = 0;
  std::size_t used_ = 0;
};

struct Member;

struct Compact {
  enum class Kind : std::uint8_t {
    kError,  // no value: evaluation failed
    kBool,
    kLong,
    kString,
    kEntity,
    kSet,
    kRecord,
    kDecimal,
    kIp,
    kDatetime,
    kDuration,
  };
  Kind kind = Kind::kError;
  std::uint32_t size = 0;  // of text, set or record
  union {
    std::int64_t number = 0;  // also an entity's number
    const char* text;
    const Compact* items;   // sorted, each once
    const Member* members;  // sorted by name
    const IpRange* ip;
  };

  static Compact Bool(bool value) { return Number(Kind::kBool, value ? 1 : 0); }
  static Compact Number(Kind kind, std::int64_t number) {
    Compact out;
    out.kind = kind;
    out.number = number;
    return out;
  }
  static Compact Text(std::string_view text) {
    Compact out;
    out.kind = Kind::kString;
    out.size = static_cast<std::uint32_t>(text.size());
    out.text = text.data();
    return out;
  }
  static Compact Entity(std::uint32_t number) { return Number(Kind::kEntity, number); }
  bool is(Kind other) const { return kind == other; }
  std::string_view view() const { return {text, size}; }
  std::uint32_t entity() const { return static_cast<std::uint32_t>(number); }
};

struct Member {
  std::string_view name;
  Compact value;
};

// Any order will do, as long as it is one; shorter names first is the quickest.
inline bool NameLess(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

int Compare(const Compact& a, const Compact& b);
const Compact* FindMember(const Member* members, std::uint32_t count, std::string_view name);

struct CompactEntity {
  const Member* attributes = nullptr;
  const Member* tags = nullptr;
  const std::uint32_t* ancestors = nullptr;  // sorted
  std::uint32_t attribute_count = 0;
  std::uint32_t tag_count = 0;
  std::uint32_t ancestor_count = 0;
  std::uint32_t type = 0;
  bool exists = false;  // else it is only named somewhere
};

inline constexpr std::uint32_t kNone = UINT32_MAX;

// Numbers for entities and for types. A table may stand on another, whose numbers it continues.
class NumberTable {
 public:
  explicit NumberTable(const NumberTable* below = nullptr);

  std::uint32_t FindType(std::string_view type) const;  // kNone: never seen
  std::uint32_t AddType(std::string_view type, Bump& bump);
  std::uint32_t Find(std::uint32_t type, std::string_view id) const;
  // Find in two steps, so that several can wait for memory together: where it begins, then the
  // number that it will most likely end with (kNone: none), without a look at the name.
  std::uint64_t Warm(std::uint32_t type, std::string_view id) const;
  std::uint32_t Guess(std::uint64_t hash) const;
  std::uint32_t Add(std::uint32_t type, std::string_view id, Bump& bump);
  std::uint32_t types() const { return type_base_ + static_cast<std::uint32_t>(types_.size()); }
  std::uint32_t size() const { return base_ + static_cast<std::uint32_t>(names_.size()); }
  std::uint32_t base() const { return base_; }
  std::uint32_t TypeOf(std::uint32_t entity) const;
  std::string_view IdOf(std::uint32_t entity) const;
  void Reserve(std::size_t count);
  void Clear();
  std::size_t bytes() const;

 private:
  struct Named {
    std::uint32_t type = 0;
    std::string_view id;
  };
  struct Place {
    std::uint32_t tag = 0;        // more of the hash, so that few names are looked at in vain
    std::uint32_t index = kNone;  // kNone: empty
  };
  static std::uint64_t Hash(std::uint32_t type, std::string_view id);
  void Put(std::uint64_t hash, std::uint32_t index);
  void Grow(std::size_t slots);

  const NumberTable* below_;
  std::uint32_t base_;
  std::uint32_t type_base_;
  std::vector<std::string_view> types_;
  std::vector<Named> names_;
  std::vector<Place> slots_;  // open addressing, a power of two
};

// Values into compact ones. Entities that the table does not know are added to it. A borrowing one
// points into the values' own text, which must then outlive what it makes.
class Compactor {
 public:
  enum class Text : std::uint8_t { kCopied, kBorrowed };
  using NameMap = std::unordered_map<std::string_view, std::string_view>;
  // `names`: attributes' names are kept there, each once; they are compared often.
  Compactor(NumberTable& table, Bump& bump, Text text, NameMap* names)
      : table_(table), bump_(bump), text_(text), names_(names) {}
  Compact Of(const Value& value);
  std::uint32_t Entity(const EntityUid& uid);
  const Member* Members(const ValueRecord& record);

 private:
  std::string_view Kept(std::string_view text) {
    return text_ == Text::kBorrowed ? text : bump_.Copy(text);
  }
  std::string_view KeptName(std::string_view name);

  NumberTable& table_;
  Bump& bump_;
  Text text_;
  NameMap* names_;
};

}  // namespace ringfence::cedar

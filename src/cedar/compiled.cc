#include "cedar/compiled.h"

#include <algorithm>
#include <cstring>

namespace ringfence::cedar {
namespace {

constexpr std::size_t kBlockBytes = 64 * 1024;

}  // namespace

void* Bump::Take(std::size_t size) {
  size = (size + 15) & ~std::size_t{15};
  while (block_ < blocks_.size() && used_ + size > blocks_[block_].size) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    const std::size_t bytes = std::max(size, kBlockBytes);
    blocks_.push_back({std::make_unique<std::byte[]>(bytes), bytes});
    used_ = 0;
  }
  void* out = blocks_[block_].bytes.get() + used_;
  used_ += size;
  return out;
}

std::string_view Bump::Copy(std::string_view text) {
  if (text.empty()) {
    return {};
  }
  char* out = Array<char>(text.size());
  std::memcpy(out, text.data(), text.size());
  return {out, text.size()};
}

std::size_t Bump::bytes() const {
  std::size_t out = 0;
  for (const Block& block : blocks_) {
    out += block.size;
  }
  return out;
}

int Compare(const Compact& a, const Compact& b) {
  const auto three_way = [](auto x, auto y) { return x < y ? -1 : (y < x ? 1 : 0); };
  if (a.kind != b.kind) {
    return three_way(a.kind, b.kind);
  }
  switch (a.kind) {
    case Compact::Kind::kError:
      return 0;
    case Compact::Kind::kBool:
    case Compact::Kind::kLong:
    case Compact::Kind::kEntity:
    case Compact::Kind::kDecimal:
    case Compact::Kind::kDatetime:
    case Compact::Kind::kDuration:
      return three_way(a.number, b.number);
    case Compact::Kind::kIp:
      return three_way(*a.ip, *b.ip);
    case Compact::Kind::kString:
      return a.size != b.size ? three_way(a.size, b.size)
                              : (a.size == 0 ? 0 : std::memcmp(a.text, b.text, a.size));
    case Compact::Kind::kSet:
    case Compact::Kind::kRecord:
      break;
  }
  if (a.size != b.size) {
    return three_way(a.size, b.size);
  }
  for (std::uint32_t i = 0; i < a.size; ++i) {
    if (a.kind == Compact::Kind::kSet) {
      if (const int order = Compare(a.items[i], b.items[i])) {
        return order;
      }
      continue;
    }
    if (a.members[i].name != b.members[i].name) {
      return NameLess(a.members[i].name, b.members[i].name) ? -1 : 1;
    }
    if (const int order = Compare(a.members[i].value, b.members[i].value)) {
      return order;
    }
  }
  return 0;
}

const Compact* FindMember(const Member* members, std::uint32_t count, std::string_view name) {
  const Member* end = members + count;
  const Member* found = std::lower_bound(
      members, end, name,
      [](const Member& member, std::string_view wanted) { return NameLess(member.name, wanted); });
  return found != end && found->name == name ? &found->value : nullptr;
}

NumberTable::NumberTable(const NumberTable* below)
    : below_(below),
      base_(below == nullptr ? 0 : below->size()),
      type_base_(below == nullptr ? 0 : below->types()) {}

std::uint64_t NumberTable::Hash(std::uint32_t type, std::string_view id) {
  constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;
  std::uint64_t hash = (type + 1) * kMix ^ id.size();
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * kMix;
    hash ^= hash >> 29U;
  };
  while (id.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, id.data(), 8);
    mix(word);
    id.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  if (!id.empty()) {
    std::memcpy(&rest, id.data(), id.size());
  }
  mix(rest);
  return hash;
}

std::uint32_t NumberTable::FindType(std::string_view type) const {
  if (below_ != nullptr) {
    const std::uint32_t found = below_->FindType(type);
    if (found != kNone) {
      return found;
    }
  }
  for (std::size_t i = 0; i < types_.size(); ++i) {
    if (types_[i] == type) {
      return type_base_ + static_cast<std::uint32_t>(i);
    }
  }
  return kNone;
}

std::uint32_t NumberTable::AddType(std::string_view type, Bump& bump) {
  const std::uint32_t found = FindType(type);
  if (found != kNone) {
    return found;
  }
  types_.push_back(bump.Copy(type));
  return types() - 1;
}

std::uint32_t NumberTable::Find(std::uint32_t type, std::string_view id) const {
  if (below_ != nullptr) {
    const std::uint32_t found = below_->Find(type, id);
    if (found != kNone) {
      return found;
    }
  }
  if (slots_.empty()) {
    return kNone;
  }
  const std::size_t mask = slots_.size() - 1;
  const std::uint64_t hash = Hash(type, id);
  const auto tag = static_cast<std::uint32_t>(hash >> 32U);
  for (std::size_t slot = hash & mask; slots_[slot].index != kNone; slot = (slot + 1) & mask) {
    if (slots_[slot].tag == tag) {
      const Named& named = names_[slots_[slot].index];
      if (named.type == type && named.id == id) {
        return base_ + slots_[slot].index;
      }
    }
  }
  return kNone;
}

std::uint64_t NumberTable::Warm(std::uint32_t type, std::string_view id) const {
  const std::uint64_t hash = Hash(type, id);
  if (!slots_.empty()) {
    __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  }
  return hash;
}

std::uint32_t NumberTable::Guess(std::uint64_t hash) const {
  if (slots_.empty()) {
    return kNone;
  }
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash & mask; slots_[slot].index != kNone; slot = (slot + 1) & mask) {
    if (slots_[slot].tag == static_cast<std::uint32_t>(hash >> 32U)) {
      __builtin_prefetch(&names_[slots_[slot].index]);
      return base_ + slots_[slot].index;
    }
  }
  return kNone;
}

void NumberTable::Put(std::uint64_t hash, std::uint32_t index) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot].index != kNone) {
    slot = (slot + 1) & mask;
  }
  slots_[slot] = {static_cast<std::uint32_t>(hash >> 32U), index};
}

void NumberTable::Grow(std::size_t slots) {
  slots_.assign(slots, Place());
  for (std::uint32_t i = 0; i < names_.size(); ++i) {
    Put(Hash(names_[i].type, names_[i].id), i);
  }
}

std::uint32_t NumberTable::Add(std::uint32_t type, std::string_view id, Bump& bump) {
  const std::uint32_t found = Find(type, id);
  if (found != kNone) {
    return found;
  }
  if ((names_.size() + 1) * 2 > slots_.size()) {
    Grow(std::max<std::size_t>(16, slots_.size() * 2));
  }
  Put(Hash(type, id), static_cast<std::uint32_t>(names_.size()));
  names_.push_back({type, bump.Copy(id)});
  return size() - 1;
}

std::uint32_t NumberTable::TypeOf(std::uint32_t entity) const {
  return entity < base_ ? below_->TypeOf(entity) : names_[entity - base_].type;
}

std::string_view NumberTable::IdOf(std::uint32_t entity) const {
  return entity < base_ ? below_->IdOf(entity) : names_[entity - base_].id;
}

void NumberTable::Reserve(std::size_t count) {
  names_.reserve(count);
  std::size_t slots = 16;
  while (slots < count * 2) {
    slots *= 2;
  }
  Grow(slots);
}

void NumberTable::Clear() {
  if (!names_.empty()) {
    names_.clear();
    std::fill(slots_.begin(), slots_.end(), Place());
  }
  types_.clear();
}

std::size_t NumberTable::bytes() const {
  return types_.capacity() * sizeof(types_[0]) + names_.capacity() * sizeof(Named) +
         slots_.capacity() * sizeof(Place);
}

std::uint32_t Compactor::Entity(const EntityUid& uid) {
  return table_.Add(table_.AddType(uid.type, bump_), uid.id, bump_);
}

std::string_view Compactor::KeptName(std::string_view name) {
  if (text_ == Text::kBorrowed || names_ == nullptr) {
    return Kept(name);
  }
  const auto found = names_->find(name);
  if (found != names_->end()) {
    return found->second;
  }
  const std::string_view kept = bump_.Copy(name);
  names_->emplace(kept, kept);
  return kept;
}

const Member* Compactor::Members(const ValueRecord& record) {
  Member* members = bump_.Array<Member>(record.size());
  std::size_t count = 0;
  for (const auto& [name, value] : record) {
    new (&members[count++]) Member{KeptName(name), Of(value)};
  }
  std::sort(members, members + count,
            [](const Member& a, const Member& b) { return NameLess(a.name, b.name); });
  return members;
}

Compact Compactor::Of(const Value& value) {
  Compact out;
  switch (value.kind()) {
    case Value::Kind::kBool:
      return Compact::Bool(value.boolean());
    case Value::Kind::kLong:
      return Compact::Number(Compact::Kind::kLong, value.number());
    case Value::Kind::kString:
      return Compact::Text(Kept(value.string()));
    case Value::Kind::kEntity:
      return Compact::Entity(Entity(value.entity()));
    case Value::Kind::kExtension: {
      const ExtensionValue& extension = value.extension();
      if (extension.type == Extension::kIp) {
        out.kind = Compact::Kind::kIp;
        out.ip = new (bump_.Array<IpRange>(1)) IpRange(extension.ip);
        return out;
      }
      return Compact::Number(extension.type == Extension::kDecimal    ? Compact::Kind::kDecimal
                             : extension.type == Extension::kDatetime ? Compact::Kind::kDatetime
                                                                      : Compact::Kind::kDuration,
                             extension.number);
    }
    case Value::Kind::kSet: {
      auto* items = bump_.Array<Compact>(value.set().size());
      std::size_t count = 0;
      for (const Value& element : value.set()) {
        new (&items[count++]) Compact(Of(element));
      }
      std::sort(items, items + count,
                [](const Compact& a, const Compact& b) { return Compare(a, b) < 0; });
      out.kind = Compact::Kind::kSet;
      out.items = items;
      out.size = static_cast<std::uint32_t>(count);
      return out;
    }
    case Value::Kind::kRecord:
      out.kind = Compact::Kind::kRecord;
      out.members = Members(value.record());
      out.size = static_cast<std::uint32_t>(value.record().size());
      return out;
  }
  return out;
}

}  // namespace ringfence::cedar

#include "detect/indicator_index.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ringfence::detect {
namespace {

constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15ULL;

// Keys begin with a letter for what they are.
constexpr char kIpKey = 'i';
constexpr char kDomainKey = 'd';
constexpr char kPathKey = 'p';
char KeyOf(Kind kind) {
  switch (kind) {
    case Kind::kUrl:
      return 'u';
    case Kind::kHash:
      return 'h';
    case Kind::kEmail:
      return 'e';
    case Kind::kPattern:
    case Kind::kIp:
    case Kind::kDomain:
      break;
  }
  return '?';
}

struct IpKey {
  std::array<char, 19> bytes;
  std::size_t length;
  std::string_view view() const { return {bytes.data(), length}; }
};
IpKey KeyOf(const IpRange& range) {
  IpKey key{{kIpKey, static_cast<char>(range.v6 ? 6 : 4), static_cast<char>(range.bits)}, 0};
  const std::size_t length = range.v6 ? 16 : 4;
  std::memcpy(key.bytes.data() + 3, range.address.data(), length);
  key.length = 3 + length;
  return key;
}

std::string PathKey(const std::string& path, std::string_view value) {
  return kPathKey + path + '\0' + std::string(value);
}

// The equalities of a pattern that is nothing else; false for any other.
bool Equalities(const ObjectTest& test, std::vector<const Comparison*>& into) {
  if (test.kind == ObjectTest::Kind::kOr) {
    return std::all_of(test.parts.begin(), test.parts.end(),
                       [&](const ObjectTest& part) { return Equalities(part, into); });
  }
  const Comparison& comparison = test.comparison;
  const bool equality = comparison.op == Operator::kEqual || comparison.op == Operator::kIn;
  if (test.kind != ObjectTest::Kind::kComparison || comparison.negated || !equality ||
      comparison.literals.empty() ||
      !std::all_of(comparison.literals.begin(), comparison.literals.end(),
                   [](const Literal& l) { return std::holds_alternative<std::string>(l); })) {
    return false;
  }
  into.push_back(&comparison);
  return true;
}

std::string_view Text(const JsonObject& object, std::string_view name) {
  const Json* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string_view(value->get_string())
                                                : std::string_view();
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

// The host of a URL, without port and user.
std::string_view HostOf(std::string_view url) {
  const std::size_t begin = url.find("://");
  if (begin == std::string_view::npos) {
    return {};
  }
  std::string_view host = url.substr(begin + 3);
  host = host.substr(0, host.find_first_of("/?#"));
  if (const std::size_t at = host.rfind('@'); at != std::string_view::npos) {
    host.remove_prefix(at + 1);
  }
  if (host.starts_with('[')) {
    return host.substr(1, host.find(']') - 1);
  }
  return host.substr(0, host.find(':'));
}

void AddLength(std::vector<std::uint8_t>& lengths, std::uint8_t bits) {
  const auto at = std::lower_bound(lengths.begin(), lengths.end(), bits, std::greater<>());
  if (at == lengths.end() || *at != bits) {
    lengths.insert(at, bits);
  }
}

}  // namespace

std::uint64_t KeyTable::Hash(std::string_view key) {
  std::uint64_t hash = key.size() * kMultiplier;
  while (key.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, key.data(), 8);
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32U;
    key.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, key.data(), key.size());
  hash = (hash ^ rest) * kMultiplier;
  return hash ^ (hash >> 29U);
}

std::size_t KeyTable::Find(std::string_view key, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    // Up to seven bytes, no two keys of one length have the same hash: the bytes need not be read.
    if (slot.number == kNone ||
        (slot.hash == hash && slot.length == key.size() &&
         (key.size() <= 7 || std::memcmp(text_.data() + slot.text, key.data(), key.size()) == 0))) {
      return at;
    }
  }
}

void KeyTable::Grow() {
  std::vector<Slot> old = std::move(slots_);
  slots_.assign(std::max<std::size_t>(64, old.size() * 2), Slot{});
  filter_.assign(slots_.size() / 8, 0);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number != kNone) {
      std::size_t at = slot.hash & mask;
      while (slots_[at].number != kNone) {
        at = (at + 1) & mask;
      }
      slots_[at] = slot;
      Mark(slot.hash);
    }
  }
}

void KeyTable::Add(std::string_view key, std::uint32_t number) {
  if (used_ * 3 >= slots_.size() * 2) {
    Grow();
  }
  const std::uint64_t hash = Hash(key);
  Slot& slot = slots_[Find(key, hash)];
  if (slot.number == kNone) {
    slot = {hash, text_.size(), static_cast<std::uint32_t>(key.size()), number, kNone};
    text_ += key;
    ++used_;
    Mark(hash);
  } else {
    more_.push_back({number, slot.more});
    slot.more = static_cast<std::uint32_t>(more_.size() - 1);
  }
}

Status IndicatorIndex::Add(Indicator indicator) {
  if (indicators_.size() >= kIndicatorsMax) {
    return Error{Code::kExhausted, "more than " + std::to_string(kIndicatorsMax) + " indicators"};
  }
  const auto number = static_cast<std::uint32_t>(indicators_.size());
  if (indicator.kind == Kind::kPattern) {
    RINGFENCE_ASSIGN(Pattern pattern, ParsePattern(indicator.value));
    std::vector<const Comparison*> equalities;
    if (pattern.root.kind == ObservationTest::Kind::kObject &&
        Equalities(pattern.root.object, equalities)) {
      for (const Comparison* one : equalities) {
        const std::string path = one->path.ToString();
        std::vector<ObjectPath>& paths = paths_[one->path.type];
        if (std::none_of(paths.begin(), paths.end(),
                         [&](const ObjectPath& known) { return known.ToString() == path; })) {
          paths.push_back(one->path);
        }
        for (const Literal& literal : one->literals) {
          keys_.Add(PathKey(path, std::get<std::string>(literal)), number);
        }
      }
    } else {
      for (const std::string& type : pattern.types) {
        by_type_[type].push_back(matchers_.size());
      }
      matchers_.push_back({PatternMatcher(std::move(pattern)), number, 0});
    }
  } else if (indicator.kind == Kind::kIp) {
    const auto range = ParseIpRange(indicator.value);
    if (!range) {
      return Error{Code::kInvalidArgument, indicator.value + " is no address and no range"};
    }
    AddLength(range->v6 ? v6_bits_ : v4_bits_, range->bits);
    keys_.Add(KeyOf(*range).view(), number);
  } else if (indicator.kind == Kind::kDomain) {
    keys_.Add(kDomainKey + indicator.value, number);
  } else {
    keys_.Add(KeyOf(indicator.kind) + indicator.value, number);
  }
  indicators_.push_back(std::move(indicator));
  return {};
}

std::size_t IndicatorIndex::bytes() const { return keys_.bytes(); }

void IndicatorIndex::LookIp(const IpRange& address, Numbers& found) const {
  for (const std::uint8_t bits : address.v6 ? v6_bits_ : v4_bits_) {
    if (bits <= address.bits) {
      keys_.Look(KeyOf(address.Widened(bits)).view(),
                 [&](std::uint32_t number) { found.push_back(number); });
    }
  }
}

void IndicatorIndex::LookDomain(std::string_view name, Numbers& found) const {
  if (name.size() > 253) {
    return;
  }
  std::array<char, 256> key{};
  key[0] = kDomainKey;
  while (!name.empty()) {
    std::copy(name.begin(), name.end(), key.begin() + 1);
    keys_.Look({key.data(), name.size() + 1},
               [&](std::uint32_t number) { found.push_back(number); });
    const std::size_t dot = name.find('.');
    name.remove_prefix(dot == std::string_view::npos ? name.size() : dot + 1);
  }
}

void IndicatorIndex::LookText(Kind kind, std::string_view value, Numbers& found) const {
  std::string key(1, KeyOf(kind));
  key += value;
  keys_.Look(key, [&](std::uint32_t number) { found.push_back(number); });
}

// What plain lists name, wherever STIX has it.
void IndicatorIndex::LookMembers(const Json& json, Numbers& found) const {
  const JsonObject& object = json.get_object();
  const std::string_view type = Text(object, "type");
  const std::string_view value = Text(object, "value");
  if (type == "ipv4-addr" || type == "ipv6-addr") {
    if (const auto range = ParseIpRange(value)) {
      LookIp(*range, found);
    }
  } else if (type == "domain-name") {
    std::string name = Lower(value);
    if (!name.empty() && name.back() == '.') {
      name.pop_back();
    }
    LookDomain(name, found);
  } else if (type == "email-addr") {
    LookText(Kind::kEmail, Lower(value), found);
  } else if (type == "url") {
    LookText(Kind::kUrl, value, found);
    const std::string host = Lower(HostOf(value));
    if (const auto range = ParseIpRange(host)) {
      LookIp(*range, found);
    } else {
      LookDomain(host, found);
    }
  }
  const Json* hashes = object.if_contains("hashes");
  if (hashes != nullptr && hashes->is_object()) {
    for (const auto& [name, hash] : hashes->get_object()) {
      if (hash.is_string()) {
        LookText(Kind::kHash, Lower(std::string_view(hash.get_string())), found);
      }
    }
  }
  for (const auto& [name, inner] : object) {  // a mapping puts the object where STIX has its id
    if (inner.is_object() && std::string_view(name).ends_with("_ref")) {
      LookMembers(inner, found);
    }
  }
}

void IndicatorIndex::Match(const Observation& observation, std::uint64_t number, Numbers& found) {
  found.clear();
  for (const Json* object : observation.objects) {
    LookMembers(*object, found);
    const std::string type(Text(object->get_object(), "type"));
    if (const auto paths = paths_.find(type); paths != paths_.end()) {
      for (const ObjectPath& path : paths->second) {
        AnyValue(*object, path, observation, [&](const Json& value) {
          if (value.is_string()) {
            keys_.Look(PathKey(path.ToString(), std::string_view(value.get_string())),
                       [&](std::uint32_t one) { found.push_back(one); });
          }
          return false;
        });
      }
    }
    if (const auto tried = by_type_.find(type); tried != by_type_.end()) {
      for (const std::size_t at : tried->second) {
        Tried& one = matchers_[at];
        if (one.last_event != number + 1) {  // an event may have several objects of the type
          one.last_event = number + 1;
          if (one.matcher.Feed(observation, number)) {
            found.push_back(one.number);
          }
        }
      }
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
}

}  // namespace ringfence::detect

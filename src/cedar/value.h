#pragma once

// The values of Cedar's evaluator. Immutable: copies share what they point to (so `shared_ptr`:
// an attribute of the store, a request's context and a result may be one and the same set).

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ringfence::cedar {

struct EntityUid {
  std::string type;  // "Acme::User", normalised: no blanks
  std::string id;    // any text
  auto operator<=>(const EntityUid&) const = default;
};

struct EntityUidHash {
  std::size_t operator()(const EntityUid& uid) const {
    return std::hash<std::string>()(uid.type) * 31 + std::hash<std::string>()(uid.id);
  }
};

// `Acme::User::"alice"`, escaped so that the parser reads the same entity back.
std::string ToText(const EntityUid& uid);
// Quoted and escaped as a Cedar string literal.
std::string Quoted(std::string_view text);
// True for types whose last part is `Action`.
bool IsActionType(std::string_view type);

enum class Extension : std::uint8_t { kDecimal, kIp, kDatetime, kDuration };
std::string_view Name(Extension extension);  // "decimal", "ipaddr", "datetime", "duration"

struct IpRange {
  bool v6 = false;
  std::array<std::uint8_t, 16> address{};  // v4: the first four bytes
  std::uint8_t prefix = 0;
  auto operator<=>(const IpRange&) const = default;
};

struct ExtensionValue {
  Extension type = Extension::kDecimal;
  std::int64_t number = 0;  // decimal: ten-thousandths; datetime, duration: milliseconds
  IpRange ip = {};
  auto operator<=>(const ExtensionValue&) const = default;
};

class Value;
using ValueSet = std::vector<Value>;  // sorted, each once
using ValueRecord = std::map<std::string, Value, std::less<>>;

class Value {
 public:
  enum class Kind : std::uint8_t { kBool, kLong, kString, kEntity, kSet, kRecord, kExtension };

  Value() : state_(false) {}
  static Value Bool(bool value) { return Value(State(value)); }
  static Value Long(std::int64_t value) { return Value(State(value)); }
  static Value String(std::string text);
  static Value Entity(EntityUid uid);
  static Value Set(std::vector<Value> elements);  // in any order, with repetitions
  static Value Record(ValueRecord members);
  static Value Extended(ExtensionValue value);

  Kind kind() const { return static_cast<Kind>(state_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  // Each may be called on its kind only.
  bool boolean() const { return std::get<0>(state_); }
  std::int64_t number() const { return std::get<1>(state_); }
  const std::string& string() const { return *std::get<2>(state_); }
  const EntityUid& entity() const { return *std::get<3>(state_); }
  const ValueSet& set() const { return *std::get<4>(state_); }
  const ValueRecord& record() const { return *std::get<5>(state_); }
  const ExtensionValue& extension() const { return *std::get<6>(state_); }

  // Any two values compare: by kind first. Equality is Cedar's `==`.
  std::strong_ordering operator<=>(const Value& other) const;
  bool operator==(const Value& other) const { return (*this <=> other) == 0; }

 private:
  template <typename T>
  using Shared = std::shared_ptr<const T>;
  using State = std::variant<bool, std::int64_t, Shared<std::string>, Shared<EntityUid>,
                             Shared<ValueSet>, Shared<ValueRecord>, Shared<ExtensionValue>>;
  explicit Value(State state) : state_(std::move(state)) {}
  State state_;
};

std::string_view Name(Value::Kind kind);  // "long", as errors say it
std::string ToText(const Value& value);   // as an expression

}  // namespace ringfence::cedar

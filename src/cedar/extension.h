#pragma once

// The extension types ip, decimal, datetime and duration: their constructors and their functions.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cedar/value.h"

namespace ringfence::cedar {

std::string_view ConstructorName(Extension type);  // "ip" for kIp
// What a constructor makes of its text. Strict: what Cedar's own parser refuses is refused.
Result<ExtensionValue> ParseExtension(Extension type, std::string_view text);
// Text that the constructor reads as the same value.
std::string ToText(const ExtensionValue& value);

enum class ArgumentType : std::uint8_t {
  kString,
  kLong,
  kBool,
  kDecimal,
  kIp,
  kDatetime,
  kDuration
};

struct ExtensionFunction {
  std::string_view name;
  bool method;  // called as `x.name(y)`, else as `name(x)`
  std::uint8_t arity;
  ArgumentType result;
  std::array<ArgumentType, 2> arguments;
  std::optional<Extension> constructs;  // a constructor: from one string
};

// All of them; an index into it names one.
std::span<const ExtensionFunction> ExtensionFunctions();
const ExtensionFunction* FindExtensionFunction(std::string_view name);
// Checks number and types of the arguments.
Result<Value> CallExtension(const ExtensionFunction& function, std::span<const Value> arguments);

// The functions themselves, for the compiled evaluator. nullopt: overflow.
bool InRange(const IpRange& inner, const IpRange& outer);
bool IsLoopback(const IpRange& ip);
bool IsMulticast(const IpRange& ip);
std::optional<std::int64_t> ToDate(std::int64_t epoch_ms);
std::int64_t ToTime(std::int64_t epoch_ms);

}  // namespace ringfence::cedar

#include "cedar/extension.h"

#include <array>
#include <cstdio>

namespace ringfence::cedar {
namespace {

using A = ArgumentType;
constexpr std::int64_t kDayMs = 86'400'000;

constexpr ExtensionFunction Constructor(std::string_view name, A result, Extension type) {
  return {name, false, 1, result, {A::kString, A::kString}, type};
}
constexpr ExtensionFunction Unary(std::string_view name, A result, A argument) {
  return {name, true, 1, result, {argument, argument}, std::nullopt};
}
constexpr ExtensionFunction Binary(std::string_view name, A result, A left, A right) {
  return {name, true, 2, result, {left, right}, std::nullopt};
}

constexpr std::array kFunctions = {
    Constructor("decimal", A::kDecimal, Extension::kDecimal),
    Constructor("ip", A::kIp, Extension::kIp),
    Constructor("datetime", A::kDatetime, Extension::kDatetime),
    Constructor("duration", A::kDuration, Extension::kDuration),
    Binary("lessThan", A::kBool, A::kDecimal, A::kDecimal),
    Binary("lessThanOrEqual", A::kBool, A::kDecimal, A::kDecimal),
    Binary("greaterThan", A::kBool, A::kDecimal, A::kDecimal),
    Binary("greaterThanOrEqual", A::kBool, A::kDecimal, A::kDecimal),
    Unary("isIpv4", A::kBool, A::kIp),
    Unary("isIpv6", A::kBool, A::kIp),
    Unary("isLoopback", A::kBool, A::kIp),
    Unary("isMulticast", A::kBool, A::kIp),
    Binary("isInRange", A::kBool, A::kIp, A::kIp),
    Binary("offset", A::kDatetime, A::kDatetime, A::kDuration),
    Binary("durationSince", A::kDuration, A::kDatetime, A::kDatetime),
    Unary("toDate", A::kDatetime, A::kDatetime),
    Unary("toTime", A::kDuration, A::kDatetime),
    Unary("toMilliseconds", A::kLong, A::kDuration),
    Unary("toSeconds", A::kLong, A::kDuration),
    Unary("toMinutes", A::kLong, A::kDuration),
    Unary("toHours", A::kLong, A::kDuration),
    Unary("toDays", A::kLong, A::kDuration),
};

bool Fits(const Value& value, ArgumentType type) {
  const auto extended = [&](Extension extension) {
    return value.is(Value::Kind::kExtension) && value.extension().type == extension;
  };
  switch (type) {
    case A::kString:
      return value.is(Value::Kind::kString);
    case A::kLong:
      return value.is(Value::Kind::kLong);
    case A::kBool:
      return value.is(Value::Kind::kBool);
    case A::kDecimal:
      return extended(Extension::kDecimal);
    case A::kIp:
      return extended(Extension::kIp);
    case A::kDatetime:
      return extended(Extension::kDatetime);
    case A::kDuration:
      return extended(Extension::kDuration);
  }
  return false;
}

std::string IpText(const IpRange& ip) {
  std::string out;
  std::array<char, 8> part{};
  if (ip.v6) {
    for (std::size_t i = 0; i < 16; i += 2) {
      std::snprintf(part.data(), part.size(), i == 0 ? "%x" : ":%x",
                    static_cast<unsigned>(ip.address[i] << 8U | ip.address[i + 1]));
      out += part.data();
    }
  } else {
    for (std::size_t i = 0; i < 4; ++i) {
      out += (i == 0 ? "" : ".") + std::to_string(ip.address[i]);
    }
  }
  return out + "/" + std::to_string(ip.prefix);
}

std::string DecimalText(std::int64_t number) {
  const bool negative = number < 0;
  const std::uint64_t size =
      negative ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  std::string part = std::to_string(size % 10000);
  part.insert(0, 4 - part.size(), '0');
  while (part.size() > 1 && part.back() == '0') {
    part.pop_back();
  }
  return (negative ? "-" : "") + std::to_string(size / 10000) + "." + part;
}

// Within the years the constructor reads, a date and time; beyond, an offset from the epoch.
std::string DatetimeText(std::int64_t ms) {
  const std::int64_t days = ms / kDayMs - (ms % kDayMs < 0 ? 1 : 0);
  const std::int64_t rest = ToTime(ms);
  const std::int64_t z = days + 719468;
  const std::int64_t era = (z >= 0 ? z : z - 146096) / 146097;
  const std::int64_t doe = z - era * 146097;
  const std::int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const std::int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const std::int64_t mp = (5 * doy + 2) / 153;
  const std::int64_t month = mp < 10 ? mp + 3 : mp - 9;
  const std::int64_t year = yoe + era * 400 + (month <= 2 ? 1 : 0);
  std::array<char, 80> out{};
  std::snprintf(out.data(), out.size(), "%04lld-%02lld-%02lldT%02lld:%02lld:%02lld.%03lldZ",
                static_cast<long long>(year), static_cast<long long>(month),
                static_cast<long long>(doy - (153 * mp + 2) / 5 + 1),
                static_cast<long long>(rest / 3'600'000),
                static_cast<long long>(rest / 60'000 % 60),
                static_cast<long long>(rest / 1000 % 60), static_cast<long long>(rest % 1000));
  return out.data();
}

Result<Value> Overflow(const ExtensionFunction& function) {
  return Error{Code::kInvalidArgument, std::string(function.name) + ": the result is out of range"};
}

Result<Value> CallDatetime(const ExtensionFunction& function, std::int64_t left,
                           std::int64_t right) {
  const auto extended = [](Extension type, std::int64_t number) {
    return Value::Extended({.type = type, .number = number});
  };
  std::int64_t out = 0;
  if (function.name == "offset") {
    return __builtin_add_overflow(left, right, &out) ? Overflow(function)
                                                     : extended(Extension::kDatetime, out);
  }
  if (function.name == "durationSince") {
    return __builtin_sub_overflow(left, right, &out) ? Overflow(function)
                                                     : extended(Extension::kDuration, out);
  }
  if (function.name == "toDate") {
    const auto date = ToDate(left);
    return date ? Result<Value>(extended(Extension::kDatetime, *date)) : Overflow(function);
  }
  if (function.name == "toTime") {
    return extended(Extension::kDuration, ToTime(left));
  }
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits = {
      {{"toMilliseconds", 1},
       {"toSeconds", 1000},
       {"toMinutes", 60'000},
       {"toHours", 3'600'000},
       {"toDays", kDayMs}}};
  for (const auto& [name, unit] : kUnits) {
    if (function.name == name) {
      return Value::Long(left / unit);
    }
  }
  return Error{Code::kInternal, "no such function: " + std::string(function.name)};
}

}  // namespace

std::optional<std::int64_t> ToDate(std::int64_t epoch_ms) {
  std::int64_t rest = epoch_ms % kDayMs;
  rest += rest < 0 ? kDayMs : 0;
  std::int64_t out = 0;
  if (__builtin_sub_overflow(epoch_ms, rest, &out)) {
    return std::nullopt;
  }
  return out;
}

std::int64_t ToTime(std::int64_t epoch_ms) {
  const std::int64_t rest = epoch_ms % kDayMs;
  return rest < 0 ? rest + kDayMs : rest;
}

bool InRange(const IpRange& inner, const IpRange& outer) {
  if (inner.v6 != outer.v6 || inner.prefix < outer.prefix) {
    return false;
  }
  const std::size_t whole = outer.prefix / 8;
  for (std::size_t i = 0; i < whole; ++i) {
    if (inner.address[i] != outer.address[i]) {
      return false;
    }
  }
  const unsigned bits = outer.prefix % 8;
  return bits == 0 || (inner.address[whole] ^ outer.address[whole]) >> (8 - bits) == 0;
}

bool IsLoopback(const IpRange& ip) {
  if (!ip.v6) {
    return ip.address[0] == 127 && ip.prefix >= 8;
  }
  std::array<std::uint8_t, 16> one{};
  one[15] = 1;
  return ip.address == one && ip.prefix == 128;
}

bool IsMulticast(const IpRange& ip) {
  return ip.v6 ? ip.address[0] == 0xff && ip.prefix >= 8
               : ip.address[0] >> 4U == 0xe && ip.prefix >= 4;
}

std::string ToText(const ExtensionValue& value) {
  switch (value.type) {
    case Extension::kDecimal:
      return DecimalText(value.number);
    case Extension::kIp:
      return IpText(value.ip);
    case Extension::kDatetime:
      return DatetimeText(value.number);
    case Extension::kDuration:
      return std::to_string(value.number) + "ms";
  }
  return "";
}

std::span<const ExtensionFunction> ExtensionFunctions() { return kFunctions; }

const ExtensionFunction* FindExtensionFunction(std::string_view name) {
  for (const ExtensionFunction& function : kFunctions) {
    if (function.name == name) {
      return &function;
    }
  }
  return nullptr;
}

Result<Value> CallExtension(const ExtensionFunction& function, std::span<const Value> arguments) {
  if (arguments.size() != function.arity) {
    return Error{Code::kInvalidArgument, std::string(function.name) + " takes " +
                                             std::to_string(function.arity) + " argument(s), not " +
                                             std::to_string(arguments.size())};
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!Fits(arguments[i], function.arguments[i])) {
      return Error{Code::kInvalidArgument, "type error: " + std::string(function.name) +
                                               " does not take a " +
                                               std::string(Name(arguments[i].kind())) + " there"};
    }
  }
  if (function.constructs) {
    RINGFENCE_ASSIGN(const ExtensionValue made,
                     ParseExtension(*function.constructs, arguments[0].string()));
    return Value::Extended(made);
  }
  const ExtensionValue& left = arguments[0].extension();
  const ExtensionValue& right = arguments.size() > 1 ? arguments[1].extension() : left;
  switch (left.type) {
    case Extension::kDecimal:
      if (function.name == "lessThan") {
        return Value::Bool(left.number < right.number);
      }
      if (function.name == "lessThanOrEqual") {
        return Value::Bool(left.number <= right.number);
      }
      return Value::Bool(function.name == "greaterThan" ? left.number > right.number
                                                        : left.number >= right.number);
    case Extension::kIp:
      if (function.name == "isInRange") {
        return Value::Bool(InRange(left.ip, right.ip));
      }
      if (function.name == "isLoopback") {
        return Value::Bool(IsLoopback(left.ip));
      }
      if (function.name == "isMulticast") {
        return Value::Bool(IsMulticast(left.ip));
      }
      return Value::Bool(left.ip.v6 == (function.name == "isIpv6"));
    case Extension::kDatetime:
    case Extension::kDuration:
      return CallDatetime(function, left.number, right.number);
  }
  return Error{Code::kInternal, "no such function: " + std::string(function.name)};
}

}  // namespace ringfence::cedar

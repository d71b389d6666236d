#include "detect/compare.h"

#include <re2/re2.h>

#include <algorithm>
#include <compare>

#include "base/encoding.h"
#include "detect/ip_range.h"

namespace ringfence::detect {
namespace {

std::optional<std::string_view> Text(const Json& json) {
  if (!json.is_string()) {
    return std::nullopt;
  }
  return std::string_view(json.get_string());
}

using Order = std::partial_ordering;

Order CompareText(std::string_view a, std::string_view b) {  // UTF-8 sorts by code point
  const int order = a.compare(b);
  return order < 0 ? Order::less : order > 0 ? Order::greater : Order::equivalent;
}

Order CompareWhole(const Json& value, std::int64_t literal) {
  if (value.is_int64()) {
    return value.get_int64() <=> literal;
  }
  if (value.is_uint64()) {  // beyond what a literal can hold
    return Order::greater;
  }
  return value.is_double() ? value.get_double() <=> static_cast<double>(literal) : Order::unordered;
}

Order CompareBroken(const Json& value, double literal) {
  if (value.is_double()) {
    return value.get_double() <=> literal;
  }
  if (value.is_int64()) {
    return static_cast<double>(value.get_int64()) <=> literal;
  }
  return value.is_uint64() ? static_cast<double>(value.get_uint64()) <=> literal : Order::unordered;
}

Bytes BytesOf(std::string_view text, std::string_view name) {
  if (name.ends_with("_hex")) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
    if (auto bytes = FromHex(lower); bytes.has_value()) {
      return std::move(*bytes);
    }
  } else if (name.ends_with("_bin")) {
    if (auto bytes = FromBase64(text); bytes.has_value()) {
      return std::move(*bytes);
    }
  }
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(begin, begin + text.size());
}

// How the value lies to the literal; unordered when they are of different kinds.
Order Compare(const Json& value, const Literal& literal, std::string_view name) {
  const auto text = Text(value);
  switch (literal.index()) {
    case 0:
      return text ? CompareText(*text, std::get<0>(literal)) : Order::unordered;
    case 1:
      return CompareWhole(value, std::get<1>(literal));
    case 2:
      return CompareBroken(value, std::get<2>(literal));
    case 3:
      return value.is_bool() ? Order(static_cast<int>(value.get_bool()) <=>
                                     static_cast<int>(std::get<3>(literal)))
                             : Order::unordered;
    case 4:
      return text ? Order(BytesOf(*text, name) <=> std::get<4>(literal)) : Order::unordered;
    default: {
      const auto moment = text ? ParseMoment(*text) : std::nullopt;
      return moment ? Order(*moment <=> std::get<5>(literal)) : Order::unordered;
    }
  }
}

bool Ranged(const Comparison& comparison, std::string_view text) {
  const auto value = ParseIpRange(text);
  const auto literal = ParseIpRange(std::get<std::string>(comparison.literals[0]));
  if (!value || !literal) {
    return false;
  }
  return comparison.op == Operator::kSubset ? literal->Contains(*value) : value->Contains(*literal);
}

bool Holds(const Comparison& comparison, const Json& value, std::string_view name) {
  const auto text = Text(value);
  const auto order = [&] { return Compare(value, comparison.literals[0], name); };
  switch (comparison.op) {
    case Operator::kExists:
      return true;
    case Operator::kEqual:
      return order() == 0;
    case Operator::kNotEqual:
      return !(order() == 0);
    case Operator::kLess:
      return order() < 0;
    case Operator::kLessEqual:
      return order() <= 0;
    case Operator::kGreater:
      return order() > 0;
    case Operator::kGreaterEqual:
      return order() >= 0;
    case Operator::kIn:
      return std::any_of(
          comparison.literals.begin(), comparison.literals.end(),
          [&](const Literal& literal) { return Compare(value, literal, name) == 0; });
    case Operator::kLike:
      return text && Like(*text, std::get<std::string>(comparison.literals[0]));
    case Operator::kMatches:
      return text && re2::RE2::PartialMatch(re2::StringPiece(text->data(), text->size()),
                                            *comparison.regex);
    case Operator::kSubset:
    case Operator::kSuperset:
      return text && Ranged(comparison, *text);
  }
  return false;
}

// Bytes of the character that begins here.
std::size_t Step(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xc0U) == 0x80U) {
    ++length;
  }
  return length;
}

}  // namespace

bool Like(std::string_view text, std::string_view pattern) {
  // The last % may take ever more; what came before it is settled. So no more than
  // length x length steps.
  std::size_t t = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '%') {
      star = ++p;
      star_text = t;
    } else if (p < pattern.size() && pattern[p] == '_') {
      ++p;
      t += Step(text.substr(t));
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      star_text += Step(text.substr(star_text));
      t = star_text;
      p = star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '%') {
    ++p;
  }
  return p == pattern.size();
}

bool Satisfies(const Comparison& comparison, const Json& value, std::string_view name) {
  return Holds(comparison, value, name) != comparison.negated;
}

}  // namespace ringfence::detect

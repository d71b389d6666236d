#include "assure/product_version.h"

#include <algorithm>

namespace ringfence::assure {
namespace {

constexpr std::size_t kTextMax = 128;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return c >= 'a' && c <= 'z'; }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  char peek(std::size_t ahead = 0) const { return ahead < rest_.size() ? rest_[ahead] : '\0'; }
  void Skip(std::size_t count) { rest_.remove_prefix(std::min(count, rest_.size())); }
  bool Take(std::string_view word) {
    if (!rest_.starts_with(word)) {
      return false;
    }
    rest_.remove_prefix(word.size());
    return true;
  }
  // Digits whose number would not fit are none.
  std::optional<std::uint32_t> Number() {
    std::uint64_t value = 0;
    std::size_t digits = 0;
    while (IsDigit(peek(digits))) {
      value = value * 10 + static_cast<std::uint64_t>(peek(digits) - '0');
      if (++digits > 9) {
        return std::nullopt;
      }
    }
    if (digits == 0) {
      return std::nullopt;
    }
    Skip(digits);
    return static_cast<std::uint32_t>(value);
  }
  // "x" or "xx", as a part of its own.
  bool AnyNumber() {
    std::size_t count = 0;
    while (peek(count) == 'x') {
      ++count;
    }
    if (count == 0 || count > 3 || IsLetter(peek(count)) || IsDigit(peek(count))) {
      return false;
    }
    Skip(count);
    return true;
  }

 private:
  std::string_view rest_;
};

// False when it is no dotted number.
bool ReadParts(Cursor& cursor, ProductVersion& version) {
  bool last_any = false;
  while (version.parts.size() < ProductVersion::kPartsMax) {
    if (cursor.AnyNumber()) {
      last_any = true;
      version.parts.push_back(ProductVersion::kAny);
    } else if (const auto number = cursor.Number()) {
      last_any = false;
      version.parts.push_back(*number);
    } else {
      return false;
    }
    const char next = cursor.peek(1);
    if (cursor.peek() != '.' || !(IsDigit(next) || next == 'x')) {
      break;
    }
    cursor.Skip(1);
  }
  if (last_any) {  // "6.16.x"
    version.series = true;
    version.parts.pop_back();
  }
  return !version.parts.empty() &&
         std::any_of(version.parts.begin(), version.parts.end(),
                     [](std::uint32_t part) { return part != ProductVersion::kAny; });
}

// "rc1", "-rc.1", "~beta2", "b1".
bool ReadBefore(Cursor& cursor, ProductVersion& version) {
  Cursor ahead = cursor;
  if (const char c = ahead.peek(); c == '-' || c == '~' || c == '.' || c == '_') {
    ahead.Skip(1);
  }
  std::uint32_t rank = 0;
  if (ahead.Take("alpha") || ahead.Take("dev") || ahead.Take("pre")) {
    rank = 0;
  } else if (ahead.Take("beta")) {
    rank = 1;
  } else if (ahead.Take("rc")) {
    rank = 2;
  } else {
    return false;
  }
  if (const char c = ahead.peek(); (c == '.' || c == '-') && IsDigit(ahead.peek(1))) {
    ahead.Skip(1);
  }
  const std::uint32_t number = ahead.Number().value_or(0);
  version.before = rank * 100'000'000U + std::min(number, 99'999'999U);
  cursor = ahead;
  return true;
}

// What may follow the number. False: not understood.
bool ReadRest(Cursor& cursor, ProductVersion& version) {
  (void)ReadBefore(cursor, version);
  if (cursor.peek() == 'u' && IsDigit(cursor.peek(1))) {
    cursor.Skip(1);
    version.update = cursor.Number().value_or(0);
  } else if (IsLetter(cursor.peek()) && !IsLetter(cursor.peek(1)) && !IsDigit(cursor.peek(1))) {
    version.letter = cursor.peek();
    cursor.Skip(1);
  }
  while (!cursor.done()) {
    const char c = cursor.peek();
    if (c == '+' || c == '~') {  // a builder's own mark
      return true;
    }
    if (c != '-' && c != '_' && !(c == '.' && !version.revision.empty())) {
      return false;
    }
    if (!version.before && ReadBefore(cursor, version)) {
      continue;
    }
    cursor.Skip(1);
    const auto number = cursor.Number();
    if (!number) {
      return IsLetter(cursor.peek());  // "-ubuntu20.04", "-lts": a flavour, not a version
    }
    if (version.revision.size() < ProductVersion::kPartsMax) {
      version.revision.push_back(*number);
    }
    if (cursor.done()) {
      return true;
    }
  }
  return true;
}

// Letters and numbers by turns: "s2w_3a13".
bool IsOpaque(std::string_view text) {
  return text.size() >= 3 && std::any_of(text.begin(), text.end(), IsDigit) &&
         std::any_of(text.begin(), text.end(), IsLetter) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsDigit(c) || IsLetter(c) || c == '_'; });
}

std::partial_ordering CompareOpaque(std::string_view a, std::string_view b) {
  Cursor left(a);
  Cursor right(b);
  while (!left.done() && !right.done()) {
    if (IsDigit(left.peek()) && IsDigit(right.peek())) {
      const auto x = left.Number();
      const auto y = right.Number();
      if (!x || !y) {
        return std::partial_ordering::unordered;
      }
      if (*x != *y) {
        return *x <=> *y;
      }
      continue;
    }
    if (left.peek() != right.peek()) {
      return std::partial_ordering::unordered;
    }
    left.Skip(1);
    right.Skip(1);
  }
  return left.done() && right.done() ? std::partial_ordering::equivalent
                                     : std::partial_ordering::unordered;
}

std::strong_ordering CompareLists(const std::vector<std::uint32_t>& a,
                                  const std::vector<std::uint32_t>& b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::uint32_t x = i < a.size() ? a[i] : 0;
    const std::uint32_t y = i < b.size() ? b[i] : 0;
    if (x != y && x != ProductVersion::kAny && y != ProductVersion::kAny) {
      return x <=> y;
    }
  }
  return std::strong_ordering::equal;
}

}  // namespace

std::optional<ProductVersion> ParseProductVersion(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '.')) {
    text.remove_suffix(1);
  }
  if (text.empty() || text.size() > kTextMax) {
    return std::nullopt;
  }
  ProductVersion version;
  version.text = std::string(text);
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  std::string_view body = lower;
  if (const std::size_t colon = body.find(':');
      colon != std::string_view::npos && colon > 0 && colon <= 3 &&
      std::all_of(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(colon), IsDigit)) {
    body.remove_prefix(colon + 1);  // a Debian package's epoch
  }
  if (body.size() > 1 && (body[0] == 'v' || body[0] == 'r') && IsDigit(body[1])) {
    body.remove_prefix(1);
  }
  Cursor cursor(body);
  if (ReadParts(cursor, version) && ReadRest(cursor, version)) {
    return version;
  }
  if (IsOpaque(body) && !IsDigit(body.front())) {
    ProductVersion opaque;
    opaque.text = version.text;
    opaque.opaque = std::string(body);
    return opaque;
  }
  return std::nullopt;
}

std::partial_ordering Compare(const ProductVersion& version, const ProductVersion& bound) {
  if (version.numbered() != bound.numbered()) {
    return std::partial_ordering::unordered;
  }
  if (!version.numbered()) {
    return CompareOpaque(version.opaque, bound.opaque);
  }
  if (const auto order = CompareLists(version.parts, bound.parts); order != 0) {
    return order;
  }
  if (version.update != bound.update) {
    return version.update <=> bound.update;
  }
  if (version.letter != bound.letter) {
    return version.letter <=> bound.letter;
  }
  if (version.before != bound.before) {
    if (!version.before || !bound.before) {
      return version.before ? std::partial_ordering::less : std::partial_ordering::greater;
    }
    return *version.before <=> *bound.before;
  }
  if (bound.revision.empty()) {
    return std::partial_ordering::equivalent;
  }
  return CompareLists(version.revision, bound.revision);
}

bool IsOfSeries(const ProductVersion& version, const ProductVersion& series) {
  if (!version.numbered() || !series.numbered() || version.parts.size() < series.parts.size()) {
    return false;
  }
  return std::equal(series.parts.begin(), series.parts.end(), version.parts.begin(),
                    [](std::uint32_t a, std::uint32_t b) {
                      return a == b || a == ProductVersion::kAny || b == ProductVersion::kAny;
                    });
}

bool IsCalendar(const ProductVersion& version) {
  if (!version.numbered() || version.parts.size() < 2) {
    return false;
  }
  const std::uint32_t year = version.parts[0];
  const std::uint32_t month = version.parts[1];
  return (year >= 2017 && year <= 2099) || (year >= 17 && year <= 40 && month >= 1 && month <= 12);
}

}  // namespace ringfence::assure

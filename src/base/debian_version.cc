#include "base/debian_version.h"

#include <algorithm>

namespace ringfence {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Of a sign that is no digit; the end of the text counts as 0.
int Rank(std::string_view text) {
  if (text.empty() || IsDigit(text.front())) {
    return 0;
  }
  const char c = text.front();
  if (c == '~') {
    return -1;
  }
  return IsLetter(c) ? static_cast<unsigned char>(c) : static_cast<unsigned char>(c) + 256;
}

std::string_view TakeNumber(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

std::strong_ordering CompareNumbers(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) {
    return a.size() <=> b.size();
  }
  return a.compare(b) <=> 0;
}

// One part: signs that are no digits, then a number, and so on.
std::strong_ordering ComparePart(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    while ((!a.empty() && !IsDigit(a.front())) || (!b.empty() && !IsDigit(b.front()))) {
      if (const auto order = Rank(a) <=> Rank(b); order != 0) {
        return order;
      }
      a.remove_prefix(a.empty() ? 0 : 1);
      b.remove_prefix(b.empty() ? 0 : 1);
    }
    const std::string_view left = TakeNumber(a);
    const std::string_view right = TakeNumber(b);
    if (const auto order = CompareNumbers(left, right); order != 0) {
      return order;
    }
  }
  return std::strong_ordering::equal;
}

struct Parts {
  std::string_view epoch;
  std::string_view upstream;
  std::string_view revision;
};

Parts Split(std::string_view text) {
  Parts parts;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    parts.epoch = text.substr(0, colon);
    text.remove_prefix(colon + 1);
  }
  const std::size_t dash = text.rfind('-');
  parts.upstream = text.substr(0, dash);
  parts.revision = dash == std::string_view::npos ? std::string_view() : text.substr(dash + 1);
  return parts;
}

}  // namespace

std::strong_ordering CompareDebianVersions(std::string_view a, std::string_view b) {
  const Parts left = Split(a);
  const Parts right = Split(b);
  if (const auto order = ComparePart(left.epoch, right.epoch); order != 0) {
    return order;
  }
  if (const auto order = ComparePart(left.upstream, right.upstream); order != 0) {
    return order;
  }
  return ComparePart(left.revision, right.revision);
}

}  // namespace ringfence

#include "net/target.h"

#include <algorithm>

#include "base/encoding.h"
#include "net/client.h"

namespace ringfence::net {
namespace {

Error Bad(std::string message, std::string hint = {}) {
  return Error{Code::kInvalidArgument, std::move(message), std::move(hint), "target"};
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool HasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

bool HasDotSegment(std::string_view path) {
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view segment = path.substr(at, end - at);
    if (segment == "." || segment == "..") {
      return true;
    }
    at = end + 1;
  }
  return false;
}

Result<std::string> DecodePart(std::string_view text) {
  RINGFENCE_ASSIGN(std::string part, PercentDecode(text, true));
  if (part.find('\0') != std::string::npos || !IsUtf8(part)) {
    return Bad("the query holds a zero byte or bytes that are not UTF-8");
  }
  return part;
}

}  // namespace

Result<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return Bad("a '%' in the target is not followed by two hex digits",
                   "write a percent sign as %25");
      }
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

Result<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) {
      continue;
    }
    if (pairs.size() == kQueryPairsMax) {
      return Bad("the query has more than 64 parameters");
    }
    const std::size_t equals = std::min(pair.find('='), pair.size());
    RINGFENCE_ASSIGN(std::string name, DecodePart(pair.substr(0, equals)));
    RINGFENCE_ASSIGN(std::string value, DecodePart(pair.substr(std::min(equals + 1, pair.size()))));
    pairs.emplace_back(std::move(name), std::move(value));
  }
  return pairs;
}

Result<Target> ParseTarget(std::string_view target) {
  if (target.empty() || target.front() != '/') {
    return Bad("the request target is not a path", "send it as /v1/...");
  }
  if (target.size() > kTargetBytesMax) {
    return Bad("the request target is longer than 8192 bytes");
  }
  for (const char c : target) {
    if (c <= ' ' || c >= '\x7f' || c == '#') {
      return Bad("the request target holds a character that must be percent-encoded");
    }
  }
  const std::size_t question = std::min(target.find('?'), target.size());
  Target parsed;
  RINGFENCE_ASSIGN(parsed.path, PercentDecode(target.substr(0, question), false));
  if (HasControl(parsed.path) || !IsUtf8(parsed.path)) {
    return Bad("the path holds control characters or bytes that are not UTF-8");
  }
  if (HasDotSegment(parsed.path)) {
    return Bad("the path holds a . or .. segment", "send the path it stands for");
  }
  RINGFENCE_ASSIGN(parsed.query, ParseQuery(target.substr(std::min(question + 1, target.size()))));
  return parsed;
}

std::string UrlEncode(std::string_view text, bool keep_slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain || (keep_slashes && c == '/')) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += kDigits[byte >> 4U];
      encoded += kDigits[byte & 15U];
    }
  }
  return encoded;
}

}  // namespace ringfence::net

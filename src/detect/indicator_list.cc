// Plain lists: one indicator a line, and what is true of those that follow in comments.
//
//   # source: abuse desk
//   # confidence: 80
//   # expires: 2026-12-31T00:00:00Z
//   203.0.113.7
//   198.51.100.0/24   confidence=60
//   pool.example      expires=2026-12-01T00:00:00Z source=miners

#include <algorithm>
#include <charconv>

#include "detect/indicator.h"
#include "detect/ip_range.h"

namespace ringfence::detect {
namespace {

constexpr std::size_t kLineBytesMax = 8192;

std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

void Replace(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

bool IsHash(std::string_view text) {
  const bool length = text.size() == 32 || text.size() == 40 || text.size() == 64 ||
                      text.size() == 96 || text.size() == 128;
  return length && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsDomain(std::string_view text) {
  if (text.size() > 253 || text.find('.') == std::string_view::npos) {
    return false;
  }
  bool letter = false;  // of the last label: 1.2.3.4 is none, and neither is a bad 1.2.3
  while (!text.empty()) {
    const std::size_t dot = text.find('.');
    const std::string_view label = text.substr(0, dot);
    if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-' ||
        !std::all_of(label.begin(), label.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                 (static_cast<unsigned char>(c) & 0x80U) != 0;
        })) {
      return false;
    }
    letter = label.find_first_not_of("0123456789") != std::string_view::npos;
    text.remove_prefix(dot == std::string_view::npos ? text.size() : dot + 1);
  }
  return letter;
}

// What holds for one line, or for all that follow.
struct Facts {
  std::string source;
  std::string name;
  std::optional<Moment> expires;
  int confidence = -1;
};

// An empty text when it was understood.
std::string SetFact(Facts& facts, std::string_view key, std::string_view value) {
  if (key == "source") {
    facts.source = value;
  } else if (key == "name") {
    facts.name = value;
  } else if (key == "expires") {
    facts.expires = ParseMoment(value);
    if (!facts.expires) {
      return "expires is not a time such as 2026-12-31T00:00:00Z";
    }
  } else if (key == "confidence") {
    int number = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0 || number > 100) {
      return "confidence is a number from 0 to 100";
    }
    facts.confidence = number;
  } else {
    return "\"" + std::string(key.substr(0, 40)) +
           "\" is none of source, name, expires, confidence";
  }
  return {};
}

class ListReader {
 public:
  explicit ListReader(const std::string& path) : path_(path) {}

  Result<IndicatorFile> Read(std::string_view text) {
    std::size_t number = 0;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      Line(Trimmed(text.substr(0, end)), ++number);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (file_.indicators.size() > kIndicatorsMax) {
        return Error{Code::kExhausted,
                     path_ + ": more than " + std::to_string(kIndicatorsMax) + " indicators"};
      }
    }
    return std::move(file_);
  }

 private:
  void Line(std::string_view line, std::size_t number) {
    const std::string where = path_ + ":" + std::to_string(number);
    if (line.empty()) {
      return;
    }
    if (line.size() > kLineBytesMax) {
      file_.Add({where, "longer than " + std::to_string(kLineBytesMax) + " bytes"});
      return;
    }
    if (line[0] == '#' || line[0] == ';') {
      Comment(Trimmed(line.substr(1)), where);
      return;
    }
    Facts facts = facts_;
    std::string_view rest = line;
    std::string value;
    for (bool first = true; !rest.empty(); first = false) {
      const std::size_t end = rest.find_first_of(" \t");
      const std::string_view word = rest.substr(0, end);
      rest = Trimmed(end == std::string_view::npos ? std::string_view() : rest.substr(end));
      if (first) {
        value = word;
        continue;
      }
      if (word[0] == '#') {
        break;  // a remark
      }
      const std::size_t equals = word.find('=');
      const std::string wrong =
          equals == std::string_view::npos
              ? "\"" + std::string(word.substr(0, 40)) + "\" is not KEY=VALUE"
              : SetFact(facts, word.substr(0, equals), word.substr(equals + 1));
      if (!wrong.empty()) {
        file_.Add({where, wrong});
        return;
      }
    }
    Add(std::move(value), facts, where);
  }

  void Add(std::string value, const Facts& facts, const std::string& where) {
    const std::string given = value.substr(0, 60);
    const auto kind = KindOf(value);
    if (!kind) {
      file_.Add(
          {where, "\"" + given + "\" is no address, range, domain, URL, hash or e-mail address"});
      return;
    }
    Indicator indicator;
    indicator.kind = *kind;
    indicator.value = std::move(value);
    indicator.id = where;
    indicator.name = facts.name;
    indicator.source = facts.source.empty() ? path_ : facts.source;
    indicator.valid_until = facts.expires;
    indicator.confidence = facts.confidence;
    file_.indicators.push_back(std::move(indicator));
  }

  // "source: abuse desk" sets something; any other comment is one.
  void Comment(std::string_view text, const std::string& where) {
    const std::size_t colon = text.find(':');
    const std::string_view key = Trimmed(text.substr(0, colon));
    if (colon == std::string_view::npos ||
        (key != "source" && key != "name" && key != "expires" && key != "confidence")) {
      return;
    }
    const std::string wrong = SetFact(facts_, key, Trimmed(text.substr(colon + 1)));
    if (!wrong.empty()) {
      file_.Add({where, wrong});
    }
  }

  const std::string& path_;
  Facts facts_;
  IndicatorFile file_;
};

}  // namespace

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kPattern:
      return "pattern";
    case Kind::kIp:
      return "ip";
    case Kind::kDomain:
      return "domain";
    case Kind::kUrl:
      return "url";
    case Kind::kHash:
      return "hash";
    case Kind::kEmail:
      return "email";
  }
  return "";
}

std::optional<Kind> KindOf(std::string& value) {
  Replace(value, "[.]", ".");
  Replace(value, "[:]", ":");
  if (value.starts_with("hxxp")) {
    value.replace(0, 4, "http");
  }
  if (value.find("://") != std::string::npos) {
    return value.size() > value.find("://") + 3 ? std::optional(Kind::kUrl) : std::nullopt;
  }
  if (ParseIpRange(value)) {
    return Kind::kIp;
  }
  std::transform(value.begin(), value.end(), value.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (IsHash(value)) {
    return Kind::kHash;
  }
  const std::size_t at = value.find('@');
  if (at != std::string::npos) {
    return at > 0 && IsDomain(std::string_view(value).substr(at + 1)) ? std::optional(Kind::kEmail)
                                                                      : std::nullopt;
  }
  if (!value.empty() && value.back() == '.') {
    value.pop_back();
  }
  if (value.starts_with("*.")) {  // a domain stands for the names below it anyway
    value.erase(0, 2);
  }
  return IsDomain(value) ? std::optional(Kind::kDomain) : std::nullopt;
}

Result<IndicatorFile> ParseList(std::string_view text, const std::string& path) {
  return ListReader(path).Read(text);
}

}  // namespace ringfence::detect

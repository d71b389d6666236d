// The sentences about versions: from words to spans.

#include "assure/version_clause.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace ringfence::assure {
namespace {

constexpr std::size_t kSpansMax = 64;

// Words that turn a sentence round, or say that there is no version. With one of them the text is
// not understood.
constexpr std::array<std::string_view, 22> kRefused = {
    "except",  "excluding", "exclude",  "excepting", "unless",    "not",    "no",  "without",
    "other",   "only",      "but",      "contact",   "available", "week",   "tbd", "tba",
    "pending", "planned",   "upcoming", "none",      "never",     "unknown"};
// Words that the shape of a range is made of. Any other word is taken for a product's name.
constexpr std::array<std::string_view, 34> kShape = {
    "prior",     "to",    "and",     "including", "up",    "through",  "thru",
    "before",    "after", "earlier", "older",     "lower", "below",    "than",
    "or",        "later", "newer",   "higher",    "above", "-",        ",",
    "<",         "<=",    ">",       ">=",        "from",  "starting", "between",
    "inclusive", "until", "since",   "greater",   "less",  "="};

template <std::size_t N>
bool In(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "v1.2", "24.03", "xx.41.1000", "mlnx_dpdk_20.11_5.0.0".
std::optional<ProductVersion> VersionIn(std::string_view word) {
  const bool plain = IsDigit(word.front()) || word.starts_with("xx.") ||
                     (word.size() > 1 && (word[0] == 'v' || word[0] == 'r') && IsDigit(word[1]));
  if (plain) {
    return ParseProductVersion(word);
  }
  const std::size_t digit = word.find_first_of("0123456789");
  if (digit != std::string_view::npos && digit > 1 && word[digit - 1] == '_') {
    return ParseProductVersion(word.substr(digit));
  }
  return std::nullopt;
}

// "9.0-9.2": both sides with a dot; "9.0-22" is a version with a revision.
bool SplitRange(std::string_view word, std::vector<Token>& tokens) {
  const std::size_t dash = word.find('-');
  if (dash == std::string_view::npos || word.find('-', dash + 1) != std::string_view::npos) {
    return false;
  }
  const std::string_view left = word.substr(0, dash);
  const std::string_view right = word.substr(dash + 1);
  if (left.find('.') == std::string_view::npos || right.find('.') == std::string_view::npos ||
      right.empty() || !IsDigit(right.front() == 'v' && right.size() > 1 ? right[1] : right[0])) {
    return false;
  }
  auto low = VersionIn(left);
  auto high = VersionIn(right);
  if (!low || !high) {
    return false;
  }
  tokens.push_back({"", std::move(low)});
  tokens.push_back({"-", std::nullopt});
  tokens.push_back({"", std::move(high)});
  return true;
}

}  // namespace

VersionSpan UpTo(const ProductVersion& high, bool included) {
  VersionSpan span;
  span.high = high;
  span.high_included = included;
  return span;
}

Sentence ReadSentence(const std::vector<std::string>& words) {
  Sentence sentence;
  std::string opaque;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (In(kRefused, word)) {
      sentence.refused = true;
      return sentence;
    }
    if (word == "update" && i + 1 < words.size() && !sentence.tokens.empty() &&
        sentence.tokens.back().is_version()) {
      if (auto joined =
              ParseProductVersion(sentence.tokens.back().version->text + "u" + words[i + 1])) {
        sentence.tokens.back().version = std::move(joined);
        ++i;
        continue;
      }
    }
    if (word == "bmc" || word == "sbios" || word == "vbios" || word == "cpld") {
      sentence.component = word;
    } else if (word == "all" || word == "any") {
      sentence.all = true;
    } else if (In(kShape, word)) {
      sentence.tokens.push_back({word, std::nullopt});
    } else if (SplitRange(word, sentence.tokens)) {
      continue;
    } else if (auto version = VersionIn(word)) {
      sentence.tokens.push_back({"", std::move(version)});
    } else if (IsDigit(word.front())) {  // begins like a version, and is none that we know
      sentence.refused = true;
      return sentence;
    } else if (const auto other = ParseProductVersion(word); other && !other->numbered()) {
      opaque = word;
      sentence.tokens.push_back({"opaque", std::nullopt});
    }
  }
  const bool numbered = std::any_of(sentence.tokens.begin(), sentence.tokens.end(),
                                    [](const Token& token) { return token.is_version(); });
  std::vector<Token> kept;
  for (Token& token : sentence.tokens) {
    if (token == "opaque") {  // a version only where there is no other: else a product's name
      if (numbered) {
        continue;
      }
      token = {"", ParseProductVersion(opaque)};
    }
    kept.push_back(std::move(token));
  }
  sentence.tokens = std::move(kept);
  return sentence;
}

namespace {

// "V" for a version, the word for any other: the shape that a clause is recognised by.
std::string ShapeOf(const std::vector<Token>& clause) {
  std::string shape;
  for (const Token& token : clause) {
    shape += shape.empty() ? "" : " ";
    shape += token.is_version() ? "V" : token.shape;
  }
  return shape;
}

bool OneOf(std::string_view shape, std::initializer_list<std::string_view> shapes) {
  return std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
}

bool Bare(const ProductVersion& version) {  // "10": a major version is a series
  return version.series || (version.parts.size() == 1 && version.numbered());
}

VersionSpan Single(const ProductVersion& version) {
  VersionSpan span;
  span.low = version;
  span.high = version;
  span.loose = Bare(version);
  return span;
}

VersionSpan Between(const ProductVersion& low, const ProductVersion& high) {
  VersionSpan span;
  span.low = low;
  span.high = high;
  span.loose = true;
  return span;
}

VersionSpan From(const ProductVersion& low, bool included) {
  VersionSpan span;
  span.low = low;
  span.low_included = included;
  return span;
}

// One clause without commas. False: not understood.
bool ReadClause(const std::vector<Token>& clause, std::vector<VersionSpan>& spans) {
  const std::string shape = ShapeOf(clause);
  std::vector<ProductVersion> versions;
  for (const Token& token : clause) {
    if (token.is_version()) {
      versions.push_back(*token.version);
    }
  }
  if (OneOf(shape, {"V", "= V"})) {
    spans.push_back(Single(versions[0]));
  } else if (OneOf(shape, {"prior to V", "prior V to", "prior V", "before V", "earlier than V",
                           "older than V", "lower than V", "less than V", "below V", "< V",
                           "to V prior", "until V"})) {
    spans.push_back(UpTo(versions[0], false));
  } else if (OneOf(shape, {"prior to and including V",
                           "up to and including V",
                           "up to V",
                           "through V",
                           "thru V",
                           "to V",
                           "up through V",
                           "<= V",
                           "V and prior",
                           "V or prior",
                           "V and earlier",
                           "V or earlier",
                           "V and older",
                           "V or older",
                           "V and below",
                           "V or below",
                           "V and before",
                           "V or before",
                           "V and lower",
                           "V or lower",
                           "up to V inclusive",
                           "to and including V",
                           "including and prior to V",
                           "prior to or including V",
                           "prior and including V"})) {
    spans.push_back(UpTo(versions[0], true));
  } else if (OneOf(shape,
                   {"V to V", "V through V", "V thru V", "V - V", "from V to V", "between V and V",
                    "from V through V", "V up to V", "V up to and including V",
                    "from V up to and including V", "from V up to V", "V to and including V",
                    "V through and including V"})) {
    spans.push_back(Between(versions[0], versions[1]));
  } else if (OneOf(shape,
                   {"V prior to V", "V before V", "from V prior to V", "V earlier than V"})) {
    VersionSpan span = Between(versions[0], versions[1]);
    span.high_included = false;
    span.loose = false;
    spans.push_back(std::move(span));
  } else if (OneOf(shape, {"after V", "later than V", "newer than V", "above V", "higher than V",
                           "greater than V", "> V"})) {
    spans.push_back(From(versions[0], false));
  } else if (OneOf(shape, {"V or later", "V and later", "V or newer", "V and newer", "V and above",
                           "V or above", "V or higher", "V and higher", "from V", "starting V",
                           "since V", "starting from V", ">= V"})) {
    spans.push_back(From(versions[0], true));
  } else {
    return false;
  }
  return true;
}

// "> 1.0" and "< 2.0" beside each other mean both.
void JoinBounds(std::vector<VersionSpan>& spans) {
  for (std::size_t i = 0; i + 1 < spans.size(); ++i) {
    VersionSpan& low = spans[i];
    const VersionSpan& high = spans[i + 1];
    if (low.low && !low.high && !high.low && high.high) {
      low.high = high.high;
      low.high_included = high.high_included;
      spans.erase(spans.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  }
}

bool OnlyVersionsAndAnd(const std::vector<Token>& clause) {
  return std::all_of(clause.begin(), clause.end(), [](const Token& token) {
    return token.is_version() || token == "and" || token == "or";
  });
}

}  // namespace

bool ReadClauses(const Sentence& sentence, std::vector<VersionSpan>& spans) {
  std::vector<Token> clause;
  const auto end = [&clause, &spans] {
    bool understood = true;
    if (clause.size() > 1 && OnlyVersionsAndAnd(clause)) {  // "2.3.4 and 2.3.5"
      for (const Token& token : clause) {
        if (token.is_version()) {
          spans.push_back(Single(*token.version));
        }
      }
    } else if (!clause.empty()) {
      understood = ReadClause(clause, spans);
    }
    clause.clear();
    return understood && spans.size() <= kSpansMax;
  };
  for (const Token& token : sentence.tokens) {
    if (token == ",") {
      if (!end()) {
        return false;
      }
    } else if (!(clause.empty() && token == "and")) {  // ", and 9.2"
      clause.push_back(token);
    }
  }
  if (!end()) {
    return false;
  }
  JoinBounds(spans);
  if (spans.empty() && sentence.all) {
    spans.emplace_back();  // "All driver versions"
  }
  return !spans.empty();
}

}  // namespace ringfence::assure

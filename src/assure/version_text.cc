#include "assure/version_text.h"

#include <algorithm>

#include "assure/version_clause.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kTextMax = 512;
// Lower case, single blanks, commas and comparison signs as words of their own.
std::string Plain(std::string_view text) {
  std::string out;
  const auto blank = [&out] {
    if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<' || c == '>') {
      blank();
      out += c;
      if (i + 1 < text.size() && text[i + 1] == '=') {
        out += '=';
        ++i;
      }
      out += ' ';
    } else if (c == ',' || c == ';' || c == '|') {
      blank();
      out += ", ";
    } else if (c == '\xe2' && i + 2 < text.size() && text[i + 1] == '\x80') {  // a long dash
      blank();
      out += "- ";
      i += 2;
    } else if (text.substr(i, 3) == "\u2264" || text.substr(i, 3) == "\u2265") {
      blank();
      out += text[i + 2] == '\xa4' ? "<= " : ">= ";
      i += 2;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ':' || c == '/' ||
               static_cast<unsigned char>(c) == 0xc2 || static_cast<unsigned char>(c) == 0xa0) {
      blank();
    } else {
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  while (!out.empty() && out.back() == ' ') {
    out.pop_back();
  }
  return out;
}

std::vector<std::string> Words(std::string_view plain) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (at < plain.size()) {
    const std::size_t end = std::min(plain.find(' ', at), plain.size());
    if (end > at) {
      words.emplace_back(plain.substr(at, end - at));
    }
    at = end + 1;
  }
  return words;
}

bool HasWord(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool Turns(const std::vector<std::string>& words) {
  return HasWord(words, "except") || HasWord(words, "excluding") || HasWord(words, "unless") ||
         HasWord(words, "not") || HasWord(words, "excepting");
}

// What follows "for support of", "when", "if" is a condition.
std::string CutCondition(std::vector<std::string>& words) {
  const auto at = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word == "for" || word == "when" || word == "if" || word == "with" || word == "using" ||
           word == "on" || word == "where";
  });
  std::string condition;
  for (auto word = at; word != words.end(); ++word) {
    condition += (condition.empty() ? "" : " ") + *word;
  }
  words.erase(at, words.end());
  return condition;
}

// The text outside of brackets, and what is in each pair of them.
bool SplitBrackets(std::string_view text, std::string& outside, std::vector<std::string>& inside) {
  std::size_t depth = 0;
  for (const char c : text) {
    if (c == '(') {
      if (depth++ == 0) {
        inside.emplace_back();
        outside += ' ';
        continue;
      }
    } else if (c == ')') {
      if (depth == 0) {
        return false;
      }
      if (--depth == 0) {
        continue;
      }
    }
    (depth > 0 ? inside.back() : outside) += c;
  }
  return depth == 0;
}

// "vGPU software 19.3", "vGPU17.1" -> without the name.
std::string WithoutVgpu(std::string plain) {
  std::size_t at = 0;
  while ((at = plain.find("vgpu", at)) != std::string::npos) {
    std::fill_n(plain.begin() + static_cast<std::ptrdiff_t>(at), 4, ' ');
  }
  return Plain(plain);
}

void ReadBracket(const std::string& inside, VersionText& text) {
  const std::string plain = Plain(inside);
  const std::vector<std::string> words = Words(plain);
  if (plain.find("vgpu") != std::string::npos) {
    const Sentence sentence = ReadSentence(Words(WithoutVgpu(plain)));
    text.understood =
        text.understood && !sentence.refused && ReadClauses(sentence, text.vgpu_spans);
  } else if (HasWord(words, "release") || HasWord(words, "latest") || HasWord(words, "bfb")) {
    return;  // the name of a monthly release, or of the package that it comes in
  } else {
    text.understood = text.understood && !Turns(words);
    text.condition += (text.condition.empty() ? "" : "; ") + inside;
  }
}

}  // namespace

Holds Contains(const VersionSpan& span, const ProductVersion& version) {
  if (span.low && span.high && span.low->text == span.high->text) {  // one version, or a series
    if (span.loose) {
      return IsOfSeries(version, *span.low) ? Holds::kLoosely : Holds::kNo;
    }
    const auto order = Compare(version, *span.low);
    return order == 0                                  ? Holds::kYes
           : order == std::partial_ordering::unordered ? Holds::kUnlike
                                                       : Holds::kNo;
  }
  if (span.low) {
    const auto order = Compare(version, *span.low);
    if (order == std::partial_ordering::unordered) {
      return Holds::kUnlike;
    }
    const bool of_first = span.low->series && IsOfSeries(version, *span.low);
    if (!of_first && (order < 0 || (order == 0 && !span.low_included))) {
      // "6.15.x prior to 6.15.6-4" is silent about 6.14.
      return span.low->series && !span.high_included ? Holds::kNo : Holds::kBelow;
    }
  }
  if (span.high) {
    const auto order = Compare(version, *span.high);
    if (order == std::partial_ordering::unordered) {
      return Holds::kUnlike;
    }
    if (order > 0 || (order == 0 && !span.high_included)) {
      // "through 24.03" holds 24.03.1 as well.
      const bool of_last = span.loose && span.high_included && span.high->revision.empty() &&
                           IsOfSeries(version, *span.high);
      return of_last ? Holds::kLoosely : Holds::kNo;
    }
  }
  return span.loose ? Holds::kLoosely : Holds::kYes;
}

VersionText ReadVersionText(std::string_view text) {
  VersionText result;
  if (text.size() > kTextMax) {
    return result;
  }
  std::string outside;
  std::vector<std::string> inside;
  if (!SplitBrackets(text, outside, inside)) {
    return result;
  }
  std::string plain = Plain(outside);
  if (plain.starts_with("vers ")) {  // "vers:generic/>=1.0|<2.0"
    plain.erase(0, std::min(plain.find_first_of("<>=0123456789*"), plain.size()));
  }
  std::vector<std::string> words = Words(plain);
  result.condition = CutCondition(words);
  result.understood = !Turns(Words(result.condition));
  const Sentence sentence = ReadSentence(words);
  result.component = sentence.component;
  result.understood = result.understood && !sentence.refused && ReadClauses(sentence, result.spans);
  for (const std::string& part : inside) {
    ReadBracket(part, result);
  }
  // "470.141.03(All versions prior to and including vGPU 13.6)": the number alone means all up to
  // it, as the words beside it say.
  const bool up_to = std::any_of(inside.begin(), inside.end(), [](const std::string& part) {
    const std::string small = Plain(part);
    return small.find("prior to") != std::string::npos || small.find("up to") != std::string::npos;
  });
  if (up_to && result.spans.size() == 1 && result.spans[0].low && result.spans[0].high &&
      result.condition.empty()) {
    result.spans[0] = UpTo(*result.spans[0].high, true);
  }
  return result;
}

std::vector<ProductVersion> FixesOf(const std::vector<VersionSpan>& spans) {
  std::vector<ProductVersion> fixes;
  for (const VersionSpan& span : spans) {
    const bool single = span.low && span.high && span.low->text == span.high->text;
    const bool onwards = span.low && !span.high;
    if (!(single || onwards) || !span.low_included) {
      return {};
    }
    fixes.push_back(*span.low);
  }
  return fixes;
}

}  // namespace ringfence::assure

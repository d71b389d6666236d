#pragma once

// Known-bad things: read from STIX 2.1 bundles and from plain lists.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "detect/pattern.h"

namespace ringfence::detect {

inline constexpr std::size_t kIndicatorFileBytesMax = std::size_t{1} << 30U;
inline constexpr std::size_t kIndicatorsMax = 10'000'000;
inline constexpr std::size_t kProblemsKept = 1000;

// What a line of a plain list names.
enum class Kind : std::uint8_t { kPattern, kIp, kDomain, kUrl, kHash, kEmail };
std::string_view Name(Kind kind);

struct Indicator {
  Kind kind = Kind::kPattern;
  std::string value;  // the pattern, or what the list's line says, in its usual form
  std::string id;     // of the STIX object; for a line of a list FILE:LINE
  std::string name;
  std::string source;  // who says so
  std::optional<Moment> valid_from;
  std::optional<Moment> valid_until;    // not valid from then on
  int confidence = -1;                  // 0 to 100; -1: not said
  std::vector<std::string> techniques;  // "T1496.001"

  bool ValidAt(Moment time) const {
    return (!valid_from || *valid_from <= time) && (!valid_until || time < *valid_until);
  }
};

struct Technique {
  std::string id;  // "T1496.001"
  std::string name;
};

struct Problem {
  std::string where;  // "FILE:LINE" or "FILE: objects[7].pattern"
  std::string what;
};

struct IndicatorFile {
  std::vector<Indicator> indicators;
  std::vector<Technique> techniques;
  std::size_t skipped = 0;  // revoked, or of a pattern language that is not STIX
  std::size_t problem_count = 0;
  std::vector<Problem> problems;  // the first of them

  void Add(Problem problem) {
    ++problem_count;
    if (problems.size() < kProblemsKept) {
      problems.push_back(std::move(problem));
    }
  }
};

// `path` is for messages and for the ids of lines. An error only when nothing can be made of the
// whole file; what is wrong with a single indicator is a problem, and the others count.
Result<IndicatorFile> ParseBundle(std::string_view text, const std::string& path);
Result<IndicatorFile> ParseList(std::string_view text, const std::string& path);
// A bundle when it begins with "{", otherwise a list.
Result<IndicatorFile> ReadIndicators(const std::string& path);

// "evil.example" -> kDomain and so on; none for what is nothing of the kind. `value` is
// brought to its usual form: lower case, no final dot, "hxxp" and "[.]" undone.
std::optional<Kind> KindOf(std::string& value);

}  // namespace ringfence::detect

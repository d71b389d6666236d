#pragma once

// A part of version_text: sentences of words already made plain.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assure/version_text.h"

namespace ringfence::assure {

// A word of a sentence: a version, or a word of the range's shape.
struct Token {
  std::string shape;  // empty for a version
  std::optional<ProductVersion> version;
  bool operator==(std::string_view word) const { return shape == word; }
  bool is_version() const { return version.has_value(); }
};

struct Sentence {
  std::vector<Token> tokens;
  std::string component;
  bool all = false;  // "all versions"
  bool refused = false;
};

Sentence ReadSentence(const std::vector<std::string>& words);
// False: not understood.
bool ReadClauses(const Sentence& sentence, std::vector<VersionSpan>& spans);

VersionSpan UpTo(const ProductVersion& high, bool included);

}  // namespace ringfence::assure

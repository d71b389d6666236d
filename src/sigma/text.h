#pragma once

// Text as Sigma compares it: without regard to case (Unicode simple folding), with the wildcards *
// and ? of rule values.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringfence::sigma {

// Appends `text`, which must be UTF-8, folded. The result may have another length: at most one and
// a half times the bytes.
void FoldTo(std::string_view text, std::string& out);
std::string Fold(std::string_view text);
// The same into memory of at least text.size() * 3 / 2 + 4 bytes; returns the end.
char* FoldInto(std::string_view text, char* out);

// A rule's string value: literal stretches, * (any text) and ? (one character).
struct Pattern {
  enum class Kind : std::uint8_t { kText, kAny, kOne };
  struct Part {
    Kind kind = Kind::kText;
    std::string text = {};
    auto operator<=>(const Part&) const = default;
  };
  std::vector<Part> parts;

  static Pattern Literal(std::string_view text);
  // Backslash escapes * and ? and itself; before anything else it stands for itself.
  static Pattern Parse(std::string_view text);

  void Add(Kind kind, std::string_view text = {});  // neighbours that are alike are joined
  void AnyBefore();
  void AnyAfter();
  bool HasWildcard() const;
  std::string LiteralText() const;  // without wildcards; what is literal, put together
  std::string Text() const;         // as a rule would write it
  Pattern Folded() const;
};

// Both folded, or neither. Linear in practice and at worst text times pattern: no backtracking
// blow-up.
bool Matches(const Pattern& pattern, std::string_view text);

}  // namespace ringfence::sigma

// Goal: folding and wildcards do what the specification says, for any text.
// Method: tables; and random patterns over a small alphabet against a matcher by dynamic
// programming that is kept here.

#include "sigma/text.h"

#include <gtest/gtest.h>

#include <random>

namespace ringfence::sigma {
namespace {

TEST(Fold, AsciiAndBeyond) {
  EXPECT_EQ(Fold("CMD.exe /C"), "cmd.exe /c");
  EXPECT_EQ(Fold("ÄÖÜ straße ΣΑΣ ЖЁ"), "äöü straße σασ жё");
  EXPECT_EQ(Fold("\u212a"), "k");       // the Kelvin sign
  EXPECT_EQ(Fold("\u023a"), "\u2c65");  // becomes longer
  EXPECT_EQ(Fold("[@`{"), "[@`{");      // around the letters
  EXPECT_EQ(Fold(std::string("A\0B", 3)), std::string("a\0b", 3));
  EXPECT_EQ(Fold("\xf0\x9f"), "\xf0\x9f");  // cut: kept as it is
}

TEST(Fold, FitsTheRoomThatIsPromised) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += "\u023a";
  }
  std::vector<char> room(text.size() * 3 / 2 + 4);
  const char* end = FoldInto(text, room.data());
  EXPECT_EQ(end - room.data(), 3000);
}

TEST(Pattern, Escapes) {
  const auto shown = [](std::string_view text) {
    std::string out;
    for (const auto& part : Pattern::Parse(text).parts) {
      out += part.kind == Pattern::Kind::kText  ? "[" + part.text + "]"
             : part.kind == Pattern::Kind::kAny ? "*"
                                                : "?";
    }
    return out;
  };
  EXPECT_EQ(shown(R"(a*b?c)"), "[a]*[b]?[c]");
  EXPECT_EQ(shown(R"(C:\Windows\cmd.exe)"), R"([C:\Windows\cmd.exe])");
  EXPECT_EQ(shown(R"(a\*b)"), "[a*b]");
  EXPECT_EQ(shown(R"(a\\*)"), R"([a\]*)");
  EXPECT_EQ(shown(R"(a\\\*)"), R"([a\*])");
  EXPECT_EQ(shown(R"(\\\\host)"), R"([\\host])");
  EXPECT_EQ(shown(R"(\\host)"), R"([\host])");
  EXPECT_EQ(shown("end\\"), "[end\\]");
  EXPECT_EQ(shown("**"), "*");
  EXPECT_EQ(shown("??"), "??");
  EXPECT_EQ(shown(""), "");
}

bool Slow(const Pattern& pattern, std::size_t part, std::string_view text) {
  if (part == pattern.parts.size()) {
    return text.empty();
  }
  const auto& one = pattern.parts[part];
  if (one.kind == Pattern::Kind::kText) {
    return text.starts_with(one.text) && Slow(pattern, part + 1, text.substr(one.text.size()));
  }
  if (one.kind == Pattern::Kind::kOne) {
    return !text.empty() && Slow(pattern, part + 1, text.substr(1));
  }
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (Slow(pattern, part + 1, text.substr(i))) {
      return true;
    }
  }
  return false;
}

TEST(Pattern, MatchesLikeTheSlowOne) {
  std::mt19937 dice(3);
  const auto random_text = [&](std::string_view alphabet, std::size_t most) {
    std::string text;
    for (std::size_t n = dice() % (most + 1); n > 0; --n) {
      text += alphabet[dice() % alphabet.size()];
    }
    return text;
  };
  int matched = 0;
  for (int i = 0; i < 200'000; ++i) {
    const Pattern pattern = Pattern::Parse(random_text("aab*?", 7));
    const std::string text = random_text("ab", 8);
    const bool slow = Slow(pattern, 0, text);
    matched += slow ? 1 : 0;
    ASSERT_EQ(Matches(pattern, text), slow) << pattern.Text() << " on " << text;
  }
  EXPECT_GT(matched, 10'000);
}

TEST(Pattern, QuestionMarkIsOneCharacter) {
  EXPECT_TRUE(Matches(Pattern::Parse("a?c"), "a\u00e9c"));
  EXPECT_TRUE(Matches(Pattern::Parse("a?c"), "a\U0001f600c"));
  EXPECT_FALSE(Matches(Pattern::Parse("a??c"), "a\u00e9c"));
}

TEST(Pattern, ManyStarsDoNotBlowUp) {
  std::string pattern;
  for (int i = 0; i < 40; ++i) {
    pattern += "*a";
  }
  EXPECT_FALSE(Matches(Pattern::Parse(pattern + "*b"), std::string(20'000, 'a')));
}

}  // namespace
}  // namespace ringfence::sigma

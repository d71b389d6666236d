// Goal: the patterning language is read whole, and what is not of it is refused with the place.
// Method: tables of patterns, good and bad; limits.

#include "detect/pattern.h"

#include <gtest/gtest.h>

namespace ringfence::detect {
namespace {

TEST(Pattern, ReadsTheLanguage) {
  for (const char* good : {"[file:name = 'a']",
                           "[file:name == 'a' OR file:size >= 3]",
                           "[file:size NOT < -3.5]",
                           "[a:b IN ('x', 'y', 'z')]",
                           "[a:b IN ()]",
                           "[a:b NOT IN (1, 2.5, true)]",
                           "[a:b LIKE '%x_']",
                           "[a:b MATCHES '^a+$']",
                           "[ipv4-addr:value ISSUBSET '10.0.0.0/8']",
                           "[ipv6-addr:value ISSUPERSET '2001:db8::1']",
                           "[EXISTS a:b.c]",
                           "[NOT EXISTS a:b]",
                           "[a:b[*].c[0].'d e'[-1] != false]",
                           "[a:'b-c'.d = h'0aFF']",
                           "[a:b = b'SGVsbG8=']",
                           "[a:b < t'2020-01-01T00:00:00.123456Z']",
                           "[a:b = 1] AND [c:d = 2] OR [e:f = 3]",
                           "([a:b = 1] FOLLOWEDBY [c:d = 2]) WITHIN 5.5 SECONDS",
                           "[a:b = 1] REPEATS 5 TIMES WITHIN 60 SECONDS",
                           "[a:b = 1] START t'2020-01-01T00:00:00Z' STOP t'2020-02-01T00:00:00Z'",
                           "[a:b = 1] START '2020-01-01T00:00:00Z' STOP '2020-02-01T00:00:00Z'",
                           "[(a:b = 1 OR c:d = 2) AND a:e = 3]",
                           "[a:b = 'it\\'s \\\\ there']",
                           "/* why */ [a:b = 1] // because\n",
                           "[a:b<>1]",
                           "[x-custom-type:some_prop = 'v']",
                           "[file:hashes.'SHA-256' = 'x' AND file:hashes.MD5 = 'y']",
                           "[a:true = true]"}) {
    const auto pattern = ParsePattern(good);
    EXPECT_TRUE(pattern.has_value())
        << good << ": " << (pattern.has_value() ? "" : pattern.error().message);
  }
}

TEST(Pattern, RefusesTheRestAndSaysWhere) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "column 1: expected \"[\""},
      {"[", "expected an object path"},
      {"[]", "expected an object path"},
      {"[a:b]", "column 5: expected a comparison"},
      {"[a:b = ]", "column 8: expected a constant"},
      {"[a:b = 'x", "does not end"},
      {"[a:b = 'x\\n']", "backslash"},
      {"[a:b = 1", "expected \"]\""},
      {"[a:b = 1]]", "column 10"},
      {"[a:b = 1] [c:d = 2]", "column 11"},
      {"[a:b = 1] and [c:d = 2]", "column 11"},
      {"[a:b = 1 AND c:d = 2]", "different types"},
      {"[a:b MATCHES '(?=x)']", "regular expression"},
      {"[a:b MATCHES '(']", "regular expression"},
      {"[a:b MATCHES 3]", "needs a text"},
      {"[a:b LIKE 3]", "needs a text"},
      {"[a:b ISSUBSET 'x']", "no address"},
      {"[a:b > true]", "no order"},
      {"[a:b = t'yesterday']", "not a time"},
      {"[a:b = h'0g']", "hexadecimal"},
      {"[a:b = b'%']", "Base64"},
      {"[a:b = 99999999999999999999]", "64 bits"},
      {"[a:b = 007]", "begin with 0"},
      {"[a:b = 1] WITHIN 0 SECONDS", "above 0"},
      {"[a:b = 1] WITHIN -5 SECONDS", "above 0"},
      {"[a:b = 1] WITHIN 5", "SECONDS"},
      {"[a:b = 1] REPEATS 0 TIMES", "how often"},
      {"[a:b = 1] REPEATS 1000000 TIMES", "how often"},
      {"[a:b = 1] REPEATS 2.5 TIMES", "how often"},
      {"[a:b = 1] START t'2020-01-02T00:00:00Z' STOP t'2020-01-01T00:00:00Z'", "not after"},
      {"[a:b = 1] START 5 STOP 6", "a time"},
      {"[AND:b = 1]", "object path"},
      {"[a.b = 1]", "expected \":\""},
      {"[a:b[x] = 1]", "a number or *"},
      {"[a:b = 1] /* x", "comment"},
      {"[a:b = 1] $", "no meaning"},
  };
  for (const auto& [text, words] : kCases) {
    const auto pattern = ParsePattern(text);
    ASSERT_FALSE(pattern.has_value()) << text;
    EXPECT_NE(pattern.error().message.find(words), std::string::npos)
        << text << " -> " << pattern.error().message;
  }
}

TEST(Pattern, PrecedenceIsAndThenOrThenFollowedBy) {
  const auto pattern = ParsePattern("[a:a = 1] FOLLOWEDBY [b:b = 2] OR [c:c = 3] AND [d:d = 4]");
  ASSERT_TRUE(pattern.has_value());
  using Kind = ObservationTest::Kind;
  ASSERT_EQ(pattern->root.kind, Kind::kFollowedBy);
  ASSERT_EQ(pattern->root.parts[1].kind, Kind::kOr);
  ASSERT_EQ(pattern->root.parts[1].parts[1].kind, Kind::kAnd);
  EXPECT_EQ(pattern->leaves, 4U);
  EXPECT_EQ(pattern->types, (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(Pattern, HasLimits) {
  std::string deep(10'000, '(');
  EXPECT_FALSE(ParsePattern(deep + "[a:b = 1]").has_value());
  EXPECT_FALSE(ParsePattern("[" + deep + "a:b = 1]").has_value());
  std::string wide = "[a:b = 1";
  for (int i = 0; i < 5000; ++i) {
    wide += " OR a:b = 1";
  }
  EXPECT_FALSE(ParsePattern(wide + "]").has_value());
  std::string path = "[a:b";
  for (int i = 0; i < 100; ++i) {
    path += ".c";
  }
  EXPECT_FALSE(ParsePattern(path + " = 1]").has_value());
  EXPECT_FALSE(ParsePattern(std::string(kPatternBytesMax + 1, ' ')).has_value());
  std::string qualified = "[a:b = 1]";
  for (int i = 0; i < 200; ++i) {
    qualified += " WITHIN 1 SECONDS";
  }
  EXPECT_FALSE(ParsePattern(qualified).has_value());
}

}  // namespace
}  // namespace ringfence::detect

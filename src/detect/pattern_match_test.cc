// Goal: a pattern matches what it should and nothing else.
// Method: published cases (tests/vectors/stix), each also with its constant changed; a table of
// objects; sequences in time.

#include "detect/pattern_match.h"

#include <gtest/gtest.h>

#include <fstream>

#include "detect/compare.h"

namespace ringfence::detect {
namespace {

// Whether the pattern matches the events, one JSON text each, at some point.
bool MatchesEvents(const std::string& text, const std::vector<std::string>& events) {
  auto pattern = ParsePattern(text);
  EXPECT_TRUE(pattern.has_value()) << text << (pattern.has_value() ? "" : pattern.error().message);
  if (!pattern.has_value()) {
    return false;
  }
  PatternMatcher matcher(std::move(*pattern));
  std::uint64_t number = 0;
  bool matched = false;
  for (const std::string& line : events) {
    auto json = ParseJson(line, 1'000'000);
    EXPECT_TRUE(json.has_value()) << line;
    const auto event = Event::FromStix(std::move(*json));
    EXPECT_TRUE(event.has_value()) << line;
    matched = matcher.Feed(event->observation(), number++) || matched;
  }
  return matched;
}

// The pattern with the last letter or digit of each constant changed.
std::string Changed(std::string pattern) {
  bool inside = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\'' || pattern[i - 1] == '\\') {
      continue;
    }
    inside = !inside;
    const bool key = i + 1 < pattern.size() && (pattern[i + 1] == '.' || pattern[i + 1] == ' ') &&
                     pattern.substr(0, i).rfind('\'') > 0 &&
                     pattern[pattern.substr(0, i).rfind('\'') - 1] == '.';
    if (!inside && !key) {
      std::size_t at = i - 1;
      while (!std::isalnum(static_cast<unsigned char>(pattern[at]))) {
        --at;
      }
      pattern[at] = pattern[at] == 'q' ? 'j' : 'q';
    }
  }
  return pattern;
}

TEST(PatternMatch, PublishedCases) {
  std::ifstream file(std::string(RINGFENCE_SOURCE_DIR) + "/tests/vectors/stix/patterns.jsonl");
  std::string line;
  int cases = 0;
  int changed = 0;
  while (std::getline(file, line)) {
    const auto json = ParseJson(line, 1'000'000);
    ASSERT_TRUE(json.has_value());
    const JsonObject& one = json->get_object();
    const std::string id(one.at("id").get_string());
    std::vector<std::string> events;
    for (const Json& observed : one.at("observed").get_array()) {
      JsonObject event = observed.get_object();
      event["others"] = one.at("others");
      events.push_back(PrettyJson(event));
    }
    const std::string pattern(one.at("pattern").get_string());
    EXPECT_EQ(MatchesEvents(pattern, events), one.at("matches").get_bool()) << id;
    ++cases;
    std::string other = pattern;
    if (pattern.find("MATCHES") == std::string::npos &&
        pattern.find("START") == std::string::npos && pattern.find("!=") == std::string::npos &&
        pattern.find('\'') != std::string::npos && pattern.find("entropy") == std::string::npos) {
      other = Changed(pattern);
    } else if (const std::size_t at = pattern.rfind("example"); at != std::string::npos) {
      other.replace(at, 7, "another");
    }
    if (other != pattern) {
      ++changed;
      EXPECT_FALSE(MatchesEvents(other, events)) << id << ": " << other;
    }
  }
  EXPECT_EQ(cases, 20);
  EXPECT_GE(changed, 8);
}

constexpr const char* kFile =
    R"({"at":"2024-01-01T00:00:00Z","objects":[{"type":"file","id":"file--1","name":"Ünix.exe","size":42,
    "ratio":0.5,"hidden":false,"made":"2020-05-05T12:00:00.5Z","magic_number_hex":"4D5A",
    "payload_bin":"SGVsbG8=","hashes":{"SHA-256":"ab","MD5":"cd"},"tags":["x","y","z"],
    "parent_directory_ref":"directory--1","contains_refs":["file--2"],"list":[{"n":1},{"n":2}]},
    {"type":"directory","id":"directory--1","path":"/tmp/a"},
    {"type":"file","id":"file--2","name":"inner","contains_refs":["file--1"]},
    {"type":"ipv4-addr","id":"i","value":"10.1.2.3"},{"type":"ipv4-addr","id":"j","value":"10.0.0.0/8"}]})";

TEST(PatternMatch, Comparisons) {
  const std::pair<const char*, bool> kCases[] = {
      {"[file:size = 42]", true},
      {"[file:size = 42.0]", true},
      {"[file:size = '42']", false},
      {"[file:size != '42']", true},
      {"[file:size > 41]", true},
      {"[file:size > 42]", false},
      {"[file:size >= 42]", true},
      {"[file:size < 42.5]", true},
      {"[file:size NOT < 42.5]", false},
      {"[file:ratio = 0.5]", true},
      {"[file:ratio > 1]", false},
      {"[file:hidden = false]", true},
      {"[file:hidden != false]", false},
      {"[file:hidden = 0]", false},
      {"[file:made = t'2020-05-05T12:00:00.500Z']", true},
      {"[file:made < t'2020-05-05T12:00:00.5001Z']", true},
      {"[file:made > t'2020-05-05T12:00:00.5001Z']", false},
      {"[file:magic_number_hex = h'4d5a']", true},
      {"[file:magic_number_hex = h'4d5b']", false},
      {"[file:payload_bin = b'SGVsbG8=']", true},
      {"[file:payload_bin = h'48656c6c6f']", true},
      {"[file:name = b'SGVsbG8=']", false},
      {"[file:name LIKE '%.exe']", true},
      {"[file:name LIKE '_nix.exe']", true},
      {"[file:name LIKE '__nix.exe']", false},
      {"[file:name LIKE 'nix']", false},
      {"[file:name NOT LIKE '%zzz%' AND file:size = 42]", true},
      {"[file:name MATCHES '^.nix\\\\.exe$']", true},
      {"[file:name MATCHES '^nix']", false},
      {"[file:name IN ('a', 'inner')]", true},
      {"[file:size IN (1, 42)]", true},
      {"[file:size NOT IN (1, 42)]", false},
      {"[file:size IN ()]", false},
      {"[file:hashes.'SHA-256' = 'ab']", true},
      {"[file:hashes.MD5 = 'ab']", false},
      {"[file:tags[0] = 'x']", true},
      {"[file:tags[-1] = 'z']", true},
      {"[file:tags[3] = 'x']", false},
      {"[file:tags[*] = 'y']", true},
      {"[file:tags[*] = 'w']", false},
      {"[file:tags = 'x']", false},
      {"[file:list[*].n = 2]", true},
      {"[file:list[0].n = 2]", false},
      {"[file:parent_directory_ref.path = '/tmp/a']", true},
      {"[file:parent_directory_ref.path = '/tmp/b']", false},
      {"[file:contains_refs[*].name = 'inner']", true},
      {"[file:contains_refs[0].contains_refs[0].contains_refs[0].name = 'inner']",
       true},  // a cycle
      {"[EXISTS file:hashes]", true},
      {"[EXISTS file:nothing]", false},
      {"[NOT EXISTS file:nothing]", true},
      {"[NOT EXISTS user-account:x]", false},
      {"[file:nothing = 1]", false},
      {"[file:nothing != 1]", false},
      {"[file:nothing NOT = 1]", false},
      {"[ipv4-addr:value ISSUBSET '10.0.0.0/8']", true},
      {"[ipv4-addr:value ISSUBSET '11.0.0.0/8']", false},
      {"[ipv4-addr:value ISSUPERSET '10.9.0.0/16']", true},
      {"[ipv4-addr:value ISSUPERSET '11.9.0.0/16']", false},
      {"[file:name ISSUBSET '10.0.0.0/8']", false},
      // AND is about one object; two brackets may be about two, but not of one observation.
      {"[file:name = 'inner' AND file:size = 42]", false},
      {"[file:name = 'inner' OR file:size = 41]", true},
      {"[file:name = 'inner'] AND [file:size = 42]", false},
      {"[directory:path = '/tmp/a'] OR [file:size = 1]", true},
  };
  for (const auto& [pattern, expected] : kCases) {
    EXPECT_EQ(MatchesEvents(pattern, {kFile}), expected) << pattern;
  }
}

// An event that is nothing but a letter at a second.
std::string At(int second, const char* letter) {
  const std::string two = (second % 60 < 10 ? "0" : "") + std::to_string(second % 60);
  return R"({"at":"2024-01-01T00:0)" + std::to_string(second / 60) + ":" + two +
         R"(Z","objects":[{"type":"e","v":")" + letter + R"("}]})";
}

TEST(PatternMatch, InTime) {
  const std::string a = "[e:v = 'a']";
  const std::string b = "[e:v = 'b']";
  EXPECT_TRUE(MatchesEvents(a + " AND " + b, {At(0, "b"), At(9, "a")}));
  EXPECT_FALSE(MatchesEvents(a + " AND " + b, {At(0, "a"), At(9, "a")}));
  EXPECT_FALSE(MatchesEvents(a + " AND " + a, {At(0, "a")}));
  EXPECT_TRUE(MatchesEvents(a + " AND " + a, {At(0, "a"), At(1, "a")}));
  EXPECT_TRUE(MatchesEvents(a + " FOLLOWEDBY " + b, {At(0, "a"), At(9, "b")}));
  EXPECT_FALSE(MatchesEvents(a + " FOLLOWEDBY " + b, {At(0, "b"), At(9, "a")}));
  EXPECT_TRUE(MatchesEvents(a + " FOLLOWEDBY " + b, {At(9, "b"), At(0, "a")}));  // came late
  const std::string near = "(" + a + " FOLLOWEDBY " + b + ") WITHIN 5 SECONDS";
  EXPECT_TRUE(MatchesEvents(near, {At(0, "a"), At(5, "b")}));
  EXPECT_FALSE(MatchesEvents(near, {At(0, "a"), At(6, "b")}));
  EXPECT_TRUE(MatchesEvents(near, {At(0, "a"), At(20, "a"), At(24, "b")}));
  const std::string often = a + " REPEATS 3 TIMES WITHIN 10 SECONDS";
  EXPECT_FALSE(MatchesEvents(often, {At(0, "a"), At(8, "a"), At(16, "a"), At(24, "a")}));
  EXPECT_TRUE(
      MatchesEvents(often, {At(0, "a"), At(8, "a"), At(16, "a"), At(17, "a"), At(18, "a")}));
  EXPECT_FALSE(MatchesEvents(often, {At(0, "a"), At(1, "a")}));
  const std::string chain =
      "(" + a + " FOLLOWEDBY " + b + " FOLLOWEDBY [e:v = 'c']) WITHIN 10 SECONDS";
  EXPECT_TRUE(MatchesEvents(chain, {At(0, "a"), At(30, "a"), At(31, "b"), At(40, "c")}));
  EXPECT_FALSE(MatchesEvents(chain, {At(0, "a"), At(31, "b"), At(40, "c")}));
  const std::string between = a + " START t'2024-01-01T00:00:10Z' STOP t'2024-01-01T00:00:20Z'";
  EXPECT_FALSE(MatchesEvents(between, {At(9, "a")}));
  EXPECT_TRUE(MatchesEvents(between, {At(10, "a")}));
  EXPECT_FALSE(MatchesEvents(between, {At(20, "a")}));
  // Without a time nothing can be said about time.
  const char* timeless = R"({"objects":[{"type":"e","v":"a"}]})";
  EXPECT_TRUE(MatchesEvents(a, {timeless}));
  EXPECT_FALSE(MatchesEvents(a + " WITHIN 5 SECONDS", {timeless}));
}

TEST(PatternMatch, MatchesAgainOnlyWithNewEvents) {
  PatternMatcher matcher(*ParsePattern("[e:v = 'a'] FOLLOWEDBY [e:v = 'b']"));
  const auto feed = [&](const std::string& text, std::uint64_t number) {
    const auto event = Event::FromStix(*ParseJson(text, 10'000));
    return matcher.Feed(event->observation(), number);
  };
  EXPECT_FALSE(feed(At(0, "a"), 0));
  EXPECT_TRUE(feed(At(1, "b"), 1));
  EXPECT_EQ(matcher.matched(), (std::vector<std::uint64_t>{0, 1}));
  EXPECT_FALSE(feed(At(2, "b"), 2));
  EXPECT_FALSE(feed(At(3, "a"), 3));
  EXPECT_TRUE(feed(At(4, "b"), 4));
}

TEST(PatternMatch, AFloodStaysBounded) {
  PatternMatcher matcher(*ParsePattern(
      "([e:v = 'a'] AND [e:v = 'b'] AND [e:v LIKE '%'] AND [e:v = 'c']) WITHIN 1 SECONDS"));
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto event =
        Event::FromStix(*ParseJson(At(static_cast<int>(i % 500), i % 2 == 0 ? "a" : "b"), 10'000));
    EXPECT_FALSE(matcher.Feed(event->observation(), i));
  }
}

TEST(Like, IsNotSlow) {
  const std::string text(20'000, 'a');
  EXPECT_FALSE(Like(text, "%a%a%a%a%a%a%a%a%b"));
  EXPECT_TRUE(Like("", "%%"));
  EXPECT_FALSE(Like("", "_"));
  EXPECT_TRUE(Like("a%b", "a%b"));
}

TEST(Event, RefusesWhatIsNone) {
  for (const char* bad :
       {"1", "[]", "{}", R"({"objects":1})", R"({"objects":[1]})", R"({"objects":[{}]})",
        R"({"type":"observed-data"})", R"({"at":"now","objects":[]})",
        R"({"type":"observed-data","first_observed":5,"objects":{}})"}) {
    EXPECT_FALSE(Event::FromStix(*ParseJson(bad, 1000)).has_value()) << bad;
  }
}

}  // namespace
}  // namespace ringfence::detect

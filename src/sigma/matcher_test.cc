// Goal: every modifier, condition and kind of value matches what the specification says, in the
// fast matcher and in the plain one; bad input is refused with the reason and does no harm.
// Method: a table of detections with events that match and that do not; a table of bad lines.

#include "sigma/matcher.h"

#include "sigma/test_support.h"

namespace ringfence::sigma {
namespace {

using testing::BothMatch;
using testing::RuleText;
using testing::SetOf;

struct Case {
  std::string selection;  // YAML of the selection "a"
  std::vector<std::string> matches;
  std::vector<std::string> others;
};

const Case kCases[] = {
    {"{F: Value}", {R"({"F":"value"})", R"({"F":["x","VALUE"]})"}, {R"({"F":"value2"})", "{}"}},
    {"{F: 'v*e'}", {R"({"F":"ve"})", R"({"F":"VALUE"})"}, {R"({"F":"values"})"}},
    {"{F: 'v?e'}", {R"({"F":"vae"})"}, {R"({"F":"ve"})", R"({"F":"vaae"})"}},
    {"{F: '*'}", {R"({"F":""})", R"({"F":1})"}, {R"({"F":null})", "{}"}},
    {"{F: ''}", {R"({"F":""})"}, {R"({"F":"x"})", R"({"F":null})", "{}"}},
    {"{F: null}", {R"({"F":null})", "{}", R"({"G":1})"}, {R"({"F":""})", R"({"F":0})"}},
    {"{F: 1}", {R"({"F":1})", R"({"F":"1"})", R"({"F":1.0})"}, {R"({"F":11})", R"({"F":"01"})"}},
    {"{F: 1.5}", {R"({"F":1.5})", R"({"F":"1.5"})"}, {R"({"F":1})"}},
    {"{F: -7}", {R"({"F":-7})"}, {R"({"F":7})"}},
    {"{F: 18446744073709551615}", {R"({"F":18446744073709551615})"}, {R"({"F":1})"}},
    {"{F: true}", {R"({"F":true})", R"({"F":"True"})"}, {R"({"F":false})", R"({"F":1})"}},
    {"{F: [a, b, 3]}", {R"({"F":"B"})", R"({"F":3})"}, {R"({"F":"c"})"}},
    {"{F: a, G: b}", {R"({"F":"a","G":"b"})"}, {R"({"F":"a"})", R"({"G":"b"})"}},
    {"[{F: a}, {G: b}]", {R"({"F":"a"})", R"({"G":"b"})"}, {R"({"F":"b","G":"a"})"}},
    {"{F|contains: ell}", {R"({"F":"Hello"})", R"({"F":"ELL"})"}, {R"({"F":"helo"})"}},
    {"{F|contains: e}", {R"({"F":"Hello"})"}, {R"({"F":"hallo"})"}},
    {"{F|contains: el}", {R"({"F":"Hello"})"}, {R"({"F":"hlleo"})"}},
    {"{F|contains: 'h*o w'}", {R"({"F":"Oh hello world"})"}, {R"({"F":"hello, world"})"}},
    {"{F|startswith: He}", {R"({"F":"hello"})", R"({"F":"he"})"}, {R"({"F":"ahe"})"}},
    {"{F|endswith: '\\cmd.exe'}", {R"({"F":"C:\\Windows\\CMD.EXE"})"}, {R"({"F":"cmd.exe"})"}},
    {"{F|endswith: o}", {R"({"F":"hello"})"}, {R"({"F":"hell"})", R"({"F":""})"}},
    {"{F|contains|all: [a1b2, c3d4]}", {R"({"F":"c3d4 a1b2"})"}, {R"({"F":"a1b2"})"}},
    {"{F|exists: true}", {R"({"F":null})", R"({"F":{}})", R"({"F":[]})"}, {"{}"}},
    {"{F|exists: false}", {R"({"G":1})"}, {R"({"F":null})"}},
    {"{F|cased: Ab}", {R"({"F":"Ab"})"}, {R"({"F":"ab"})"}},
    {"{F|contains|cased: Ab}", {R"({"F":"xAbx"})"}, {R"({"F":"xabx"})"}},
    {"{F|neq: a}", {R"({"F":"b"})", "{}"}, {R"({"F":"A"})", R"({"F":["b","a"]})"}},
    {"{F|neq: 5}", {R"({"F":6})"}, {R"({"F":5})", R"({"F":"5"})"}},
    {"{F|re: '^a[0-9]+$'}", {R"({"F":"a12"})", R"({"F":["x","a1"]})"}, {R"({"F":"A12"})"}},
    {"{F|re|i: '^a[0-9]+literal$'}", {R"({"F":"A12LITERAL"})"}, {R"({"F":"a12"})"}},
    {"{F|re: 'foo.bar'}", {R"({"F":"xfoo bary"})"}, {R"({"F":"foo\nbar"})", R"({"F":"FOO BAR"})"}},
    {"{F|re|s: 'foo.bar'}", {R"({"F":"foo\nbar"})"}, {R"({"F":"foobar"})"}},
    {"{F|re|m: '^bar$'}", {R"({"F":"foo\nbar"})"}, {R"({"F":"foobar"})"}},
    {"{F|re|i|m|s: '^BAR.x'}", {R"({"F":"foo\nbar\nx"})"}, {R"({"F":"foo"})"}},
    {"{F|base64: ab}", {R"({"F":"YWI="})"}, {R"({"F":"ab"})"}},
    {"{F|base64offset|contains: foobar}",
     {R"({"F":"Zm9vYmFy"})", R"({"F":"eGZvb2Jhcng="})", R"({"F":"eHhmb29iYXJ4"})"},
     {R"({"F":"Zm9v"})"}},
    {"{F|wide|base64offset|contains: ping}", {R"({"F":"cABpAG4AZwA="})"}, {R"({"F":"cGluZw=="})"}},
    {"{F|utf16le|base64: 'ö'}", {R"({"F":"9gA="})"}, {R"({"F":"w7Y="})"}},
    {"{F|utf16be|base64: cmd}", {R"({"F":"AGMAbQBk"})"}, {R"({"F":"YwBtAGQA"})"}},
    {"{F|utf16|base64: cmd}", {R"({"F":"//5jAG0AZAA="})"}, {R"({"F":"YwBtAGQA"})"}},
    {"{F|wide: ab}", {R"({"F":"a\u0000b\u0000"})"}, {R"({"F":"ab"})"}},
    {"{F|contains|windash: ' -foo'}",
     {R"({"F":"x -foo"})", R"({"F":"x /foo"})", "{\"F\":\"x \u2013foo\"}",
      "{\"F\":\"x \u2015FOO\"}"},
     {R"({"F":"x foo"})", R"({"F":"x _foo"})"}},
    {"{F|contains|windash: ' -a -b'}",
     {R"({"F":"x /a -b"})", "{\"F\":\" -a \u2014b\"}"},
     {R"({"F":" a -b"})"}},
    {"{F|windash|contains: 'co-op'}", {R"({"F":"co-op"})"}, {R"({"F":"co/op"})"}},
    {"{F|cidr: 10.0.0.0/8}",
     {R"({"F":"10.255.1.2"})", R"({"F":"::ffff:10.1.1.1"})"},
     {R"({"F":"11.0.0.1"})", R"({"F":"10.0.0"})", R"({"F":"x"})"}},
    {"{F|cidr: 192.168.4.0/23}", {R"({"F":"192.168.5.9"})"}, {R"({"F":"192.168.6.0"})"}},
    {"{F|cidr: 'fe80::/10'}",
     {R"({"F":"fe80::1%eth0"})", R"({"F":"febf:ffff::"})"},
     {R"({"F":"fec0::1"})"}},
    {"{F|cidr: 0.0.0.0/0}", {R"({"F":"1.2.3.4"})"}, {R"({"F":"::1"})"}},
    {"{F|lt: 5}", {R"({"F":4.9})", R"({"F":"-1"})"}, {R"({"F":5})", R"({"F":"x"})", "{}"}},
    {"{F|lte: 5}", {R"({"F":5})"}, {R"({"F":5.1})"}},
    {"{F|gt: 5}", {R"({"F":6})"}, {R"({"F":5})"}},
    {"{F|gte: 5}", {R"({"F":[1,5]})"}, {R"({"F":4})"}},
    {"{F|fieldref: G}",
     {R"({"F":"a","G":"A"})"},
     {R"({"F":"a","G":"b"})", R"({"F":"a"})", R"({"G":"a"})"}},
    {"{F|fieldref|cased: G}", {R"({"F":"a","G":"a"})"}, {R"({"F":"a","G":"A"})"}},
    {"{F|fieldref|startswith: G}", {R"({"F":"abc","G":"AB"})"}, {R"({"F":"abc","G":"bc"})"}},
    {"{F|fieldref|endswith: G}", {R"({"F":"abc","G":"bc"})"}, {R"({"F":"abc","G":"ab"})"}},
    {"{F|fieldref|contains: G}", {R"({"F":"abc","G":"b"})"}, {R"({"F":"abc","G":"x"})"}},
    {"{F|fieldref|neq: G}", {R"({"F":"a","G":"b"})"}, {R"({"F":"a","G":"a"})"}},
    {"{F|hour: 7}",
     {R"({"F":"2025-11-27T07:22:22.03Z"})", R"({"F":"2025-11-27 07:22"})"},
     {R"({"F":"2025-11-27T08:22:22Z"})", R"({"F":"2025-11-27"})", R"({"F":"x"})"}},
    {"{F|hour|gte: 22}", {R"({"F":"2025-11-27T23:00:00Z"})"}, {R"({"F":"2025-11-27T21:59:00Z"})"}},
    {"{F|minute: 22}", {R"({"F":"2025-11-27T07:22:00Z"})"}, {R"({"F":"2025-11-27T07:21:00Z"})"}},
    {"{F|day: 27}", {R"({"F":"2025-11-27"})"}, {R"({"F":"2025-11-26"})"}},
    {"{F|week: 48}", {R"({"F":"2025-11-27"})"}, {R"({"F":"2025-12-01"})"}},
    {"{F|week: 1}", {R"({"F":"2024-12-30"})", R"({"F":"2026-01-04"})"}, {R"({"F":"2027-01-01"})"}},
    {"{F|month: 11}", {R"({"F":"2025/11/27"})"}, {R"({"F":"2025-10-27"})"}},
    {"{F|year: 2023}",
     {R"({"F":1700000000})", R"({"F":1700000000000})"},
     {R"({"F":"2024-01-01"})"}},
    {"[one, 'two*three']",
     {R"({"x":"--ONE--"})", R"({"a":{"b":["q",{"c":"two and three"}]}})"},
     {R"({"one":"x"})", R"({"x":"two"})", "{}"}},
    {"[4104]", {R"({"x":4104})", R"({"x":"id 41045"})"}, {R"({"x":410})"}},
    {"{'|all': [one, two]}",
     {R"({"x":"one two"})", R"({"x":"one","y":"two"})"},
     {R"({"x":"one"})"}},
    {"{'|re': 'o[n]e+'}", {R"({"x":{"y":"onee"}})"}, {R"({"x":"ONE"})"}},
    {"{a.b.c: x}",
     {R"({"a":{"b":{"c":"x"}}})", R"({"a.b.c":"x"})", R"({"a":[{"b":{"c":"y"}},{"b":{"c":"x"}}]})"},
     {R"({"a":{"b.c":"x"}})", R"({"b":{"c":"x"}})"}},
    {"{F: 'ÄB*'}", {R"({"F":"äbx"})", R"({"F":"\u00c4b"})"}, {R"({"F":"ab"})"}},
    {"{Image|endswith: '\\x.exe', EventID: 1, Provider_Name: Sysmon}",
     {R"({"Event":{"System":{"EventID":1,"Provider":{"#attributes":{"Name":"Sysmon"}}},"EventData":{"Image":"C:\\X.exe"}}})",
      R"({"Event":{"System":{"EventID":{"#text":1},"Provider":{"#attributes":{"Name":"Sysmon"}}},"UserData":{"Any":{"Image":"C:\\X.exe"}}}})"},
     {R"({"Event":{"System":{"EventID":2,"Provider":{"#attributes":{"Name":"Sysmon"}}},"EventData":{"Image":"C:\\X.exe"}}})"}},
};

TEST(Matcher, EveryKindOfTest) {
  for (const Case& one : kCases) {
    const RuleSet set = SetOf(RuleText("    a: " + one.selection + "\n    condition: a\n"));
    const RuleSet negated = SetOf(RuleText("    a: " + one.selection + "\n    condition: not a\n"));
    ASSERT_EQ(set.rules.size(), 1U) << one.selection;
    for (const std::string& event : one.matches) {
      EXPECT_TRUE(BothMatch(set, event)) << one.selection << " on " << event;
      EXPECT_FALSE(BothMatch(negated, event)) << one.selection << " on " << event;
    }
    for (const std::string& event : one.others) {
      EXPECT_FALSE(BothMatch(set, event)) << one.selection << " on " << event;
      EXPECT_TRUE(BothMatch(negated, event)) << one.selection << " on " << event;
    }
  }
}

TEST(Matcher, Conditions) {
  struct Condition {
    std::string text;
    std::string needs;  // letters of selections that hold, in cases that match
    std::string fails;
  };
  const std::string selections =
      "    sel_a: {F|contains: aaaa}\n    sel_b: {F|contains: bbbb}\n    other: {F|contains: "
      "cccc}\n"
      "    _hidden: {F|contains: dddd}\n";
  const std::vector<std::pair<std::string, std::vector<std::pair<std::string, bool>>>> kTable = {
      {"sel_a and sel_b or other", {{"c", true}, {"ab", true}, {"a", false}}},
      {"sel_a and (sel_b or other)", {{"c", false}, {"ac", true}, {"ab", true}}},
      {"not sel_a and other", {{"c", true}, {"ac", false}, {"", false}}},
      {"not (sel_a or other)", {{"", true}, {"b", true}, {"c", false}}},
      {"1 of sel_*", {{"a", true}, {"b", true}, {"c", false}}},
      {"any of sel_*", {{"a", true}, {"c", false}}},
      {"all of sel_*", {{"ab", true}, {"a", false}}},
      {"all of them", {{"abc", true}, {"ab", false}}},
      {"1 of them", {{"c", true}, {"d", false}}},
      {"ALL OF sel_* AND NOT other", {{"ab", true}, {"abc", false}}},
      {"not not sel_a", {{"a", true}, {"b", false}}},
      {"1 of *_b", {{"b", true}, {"a", false}}},
      {"[sel_a, other]", {{"a", true}, {"c", true}, {"b", false}}},
  };
  for (const auto& [condition, cases] : kTable) {
    const RuleSet set = SetOf(RuleText(selections + "    condition: " + condition + "\n"));
    for (const auto& [letters, expected] : cases) {
      std::string value;
      for (const char c : letters) {
        value += std::string(4, c) + " ";
      }
      EXPECT_EQ(BothMatch(set, "{\"F\":\"" + value + "\"}"), expected)
          << condition << " with " << letters;
    }
  }
}

TEST(Matcher, BadInputIsRefusedAndTheNextEventStillMatches) {
  const RuleSet set = SetOf(RuleText("    a: {F: x}\n    condition: a\n"));
  const auto matcher = Matcher::Build(set);
  Matcher::Session session(*matcher);
  std::string deep;
  for (std::size_t i = 0; i < 100'000; ++i) {
    deep += "[";
  }
  std::string nested = "1";
  for (std::size_t i = 0; i < kEventDepthMax + 5; ++i) {
    nested = "{\"a\":" + nested + "}";
  }
  const std::string kBad[] = {"",
                              " ",
                              "x",
                              "{",
                              "[1]",
                              "1",
                              "\"F\"",
                              "null",
                              "{\"F\":\"x\"",
                              "{\"F\":\"x\"} {}",
                              "{\"F\":\"\xff\xfe\"}",
                              "{\"F\":\"\xc3\"}",
                              std::string("{\"F\":\"a\0b\"}", 12),
                              std::string("{\"F\":1}\0", 8),
                              "{\"F\":1,\"F\":2}",
                              "{\"a\":{\"b\":1,\"b\":1}}",
                              "{\"z\":[{\"k\":1,\"k\":2}]}",
                              "{F:1}",
                              "{\"F\":01}",
                              "{\"F\":1e999}",
                              "{\"F\":123456789012345678901234567890}",
                              deep,
                              "{\"a\":" + deep,
                              nested,
                              "{\"F\":\"" + std::string(kEventBytesMax, 'x') + "\"}",
                              "{\"F\":\"\\ud800\"}",
                              "{\"F\":\"a\nb\"}",
                              "{\"F\":nul}",
                              "\xef\xbb\xbf[]"};
  for (const std::string& bad : kBad) {
    EXPECT_FALSE(session.Match(bad).has_value()) << bad.substr(0, 80);
    const auto good = session.Match(R"({"F":"x"})");
    ASSERT_TRUE(good.has_value());
    EXPECT_EQ((*good)->size(), 1U);
  }
}

TEST(Matcher, ManyStrangeKeysFillNothingUp) {
  const RuleSet set = SetOf(RuleText("    a: {F: x, G.H: y}\n    condition: a\n"));
  const auto matcher = Matcher::Build(set);
  Matcher::Session session(*matcher);
  for (int i = 0; i < 40'000; ++i) {
    const std::string n = std::to_string(i);
    const auto matched = session.Match("{\"k" + n + "\":{\"a" + n +
                                       "\":1,\"b\":[{\"c\":2}]},\"F\":\"x\",\"G\":{\"H\":\"y\"}}");
    ASSERT_TRUE(matched.has_value());
    ASSERT_EQ((*matched)->size(), 1U);
    ASSERT_FALSE(session.Match("{\"q" + n + "\":1,\"q" + n + "\":2}").has_value());
    ASSERT_FALSE(session.Match("{\"o\":{\"q" + n + "\":1,\"q" + n + "\":2}}").has_value());
  }
}

TEST(Matcher, SeveralRulesShareTests) {
  std::string text;
  for (int i = 0; i < 50; ++i) {
    text += RuleText("    a: {F|contains: shared}\n    b: {N: " + std::to_string(i) +
                     "}\n    condition: a and b\n") +
            "---\n";
  }
  const RuleSet set = SetOf(text);
  const auto matcher = Matcher::Build(set);
  EXPECT_EQ(matcher->facts().atoms, 51U);
  EXPECT_EQ(matcher->facts().always, 0U);
  Matcher::Session session(*matcher);
  const auto matched = session.Match(R"({"F":"it is SHARED","N":17})");
  ASSERT_TRUE(matched.has_value());
  EXPECT_EQ(**matched, std::vector<std::uint32_t>{17});
}

TEST(Matcher, ValuesOfTheLastEvent) {
  const RuleSet set = SetOf(RuleText("    a: {F: x}\n    condition: a\n"));
  const auto matcher = Matcher::Build(set, {"user.name", "n"});
  Matcher::Session session(*matcher);
  ASSERT_TRUE(session.Match(R"({"user":{"name":["a","B"]},"n":1.50})").has_value());
  EXPECT_EQ(session.Values("user.name"), (std::vector<std::string>{"a", "B"}));
  EXPECT_EQ(session.Values("n"), std::vector<std::string>{"1.5"});
  ASSERT_TRUE(session.Match("{}").has_value());
  EXPECT_TRUE(session.Values("n").empty());
}

}  // namespace
}  // namespace ringfence::sigma

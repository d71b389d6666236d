// Goal: what is in a rule file is read as the specification means it, and what cannot be honoured
// is an error that names file, line and field.
// Method: tables of small rules; one damaged line each for the errors.

#include "sigma/rule.h"

#include "sigma/test_support.h"

namespace ringfence::sigma {
namespace {

using testing::FirstProblem;
using testing::RuleText;

constexpr std::string_view kGood = R"(title: A rule
id: 0e95725d-7320-415d-80f7-004da920fc11
name: a_rule
status: test
level: high
description: What it is for.
author: Ann
tags:
    - attack.execution
    - attack.t1059.001
logsource:
    product: windows
    category: process_creation
detection:
    selection:
        Image|endswith:
            - '\cmd.exe'
            - '\powershell.exe'
        EventID: 1
    filter:
        - User: SYSTEM
        - Parent: null
    keywords:
        - 'one'
        - two
    condition: selection and not filter or keywords
)";

TEST(ReadRules, AllOfIt) {
  std::vector<Problem> problems;
  const auto rules = ReadRules(kGood, "a.yml", problems);
  ASSERT_TRUE(problems.empty()) << problems.front().Text();
  ASSERT_EQ(rules.size(), 1U);
  const Rule& rule = rules.front();
  EXPECT_EQ(rule.Key(), "0e95725d-7320-415d-80f7-004da920fc11");
  EXPECT_EQ(rule.level, "high");
  EXPECT_EQ(rule.tags.size(), 2U);
  EXPECT_EQ(rule.logsource.Text(), "windows/process_creation");
  ASSERT_EQ(rule.detection.selections.size(), 3U);
  const Block& selection = rule.detection.selections[0].block;
  ASSERT_EQ(selection.blocks.size(), 2U);
  EXPECT_EQ(selection.blocks[0].item.Name(), "Image|endswith");
  EXPECT_EQ(selection.blocks[0].item.line, 16);
  EXPECT_EQ(selection.blocks[1].item.values[0].kind, Scalar::Kind::kNumber);
  EXPECT_EQ(rule.detection.selections[1].block.kind, Block::Kind::kAny);
  EXPECT_EQ(rule.detection.selections[1].block.blocks[1].blocks[0].item.values[0].kind,
            Scalar::Kind::kNull);
  EXPECT_EQ(rule.detection.selections[2].block.blocks[0].item.field, "");
}

TEST(ReadRules, SeveralDocumentsAndTheOldGlobalAction) {
  const std::string text = R"(action: global
title: Shared
logsource:
    product: x
---
detection:
    a:
        F: 1
    condition: a
---
title: Second
detection:
    a:
        F: 2
    condition: a
---
action: reset
title: Third
logsource:
    product: y
detection:
    a: {F: 3}
    condition: a
)";
  std::vector<Problem> problems;
  const auto rules = ReadRules(text, "a.yml", problems);
  ASSERT_TRUE(problems.empty()) << problems.front().Text();
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(rules[0].title, "Shared");
  EXPECT_EQ(rules[1].title, "Second");
  EXPECT_EQ(rules[1].logsource.product, "x");
  EXPECT_EQ(rules[2].logsource.product, "y");
}

struct Bad {
  std::string detection;
  std::string problem;  // the beginning of what must be said
};

TEST(ReadRules, ErrorsNameLineAndField) {
  const Bad kTable[] = {
      {"    a: {F|contain: x}\n    condition: a\n",
       "test.yml:5: detection.a.F|contain: the modifier \"contain\" is not in Sigma 2.1 (did you "
       "mean \"contains\"?)"},
      {"    a: {F: x}\n", "test.yml:5: detection.condition: is missing"},
      {"    a: {F: x}\n    condition: b\n",
       "test.yml:6: detection.condition: there is no selection \"b\""},
      {"    a: {F: x}\n    condition: a and\n",
       "test.yml:6: detection.condition: the condition ends where"},
      {"    a: {F: x}\n    condition: a | count() > 5\n",
       "test.yml:6: detection.condition: aggregation"},
      {"    a: {F: x}\n    timeframe: 5m\n    condition: a\n",
       "test.yml:6: detection.timeframe: is obsolete"},
      {"    a: {F: x}\n    condition: 2 of a*\n",
       "test.yml:6: detection.condition: \"2 of\" is not supported"},
      {"    a: {F: x}\n    condition: (a\n", "test.yml:6: detection.condition: a parenthesis"},
      {"    a: {F: x}\n    condition: 1 of b*\n",
       "test.yml:6: detection.condition: no selection is named like"},
      {"    a: {F|re: '(?=x)'}\n    condition: a\n",
       "test.yml:5: detection.a.F|re: the regular expression cannot be honoured: invalid perl "
       "operator"},
      {"    a: {F|re: '(a)\\1'}\n    condition: a\n",
       "test.yml:5: detection.a.F|re: the regular expression cannot be honoured"},
      {"    a: {F|cidr: 10.0.0.0/40}\n    condition: a\n",
       "test.yml:5: detection.a.F|cidr: \"10.0.0.0/40\" is no range"},
      {"    a: {F|gt: 'x'}\n    condition: a\n",
       "test.yml:5: detection.a.F|gt: \"x\" is no number"},
      {"    a: {F|re|cidr: x}\n    condition: a\n",
       "test.yml:5: detection.a.F|re|cidr: the modifiers re and cidr exclude"},
      {"    a: {F|base64|re: x}\n    condition: a\n",
       "test.yml:5: detection.a.F|base64|re: the modifiers base64 and re exclude"},
      {"    a: {F|contains|all: x}\n    condition: a\n",
       "test.yml:5: detection.a.F|contains|all: the modifier all needs"},
      {"    a: {F|base64: 'a*b'}\n    condition: a\n",
       "test.yml:5: detection.a.F|base64: the modifier base64 cannot encode"},
      {"    a: {F|exists: maybe}\n    condition: a\n",
       "test.yml:5: detection.a.F|exists: exists must be true or false"},
      {"    a: {F|i: x}\n    condition: a\n",
       "test.yml:5: detection.a.F|i: the modifier i has a meaning only after re"},
      {"    a: {F: []}\n    condition: a\n", "test.yml:5: detection.a.F: has no values"},
      {"    a: {F: {G: x}}\n    condition: a\n", "test.yml:5: detection.a.F: a value must be"},
      {"    a: []\n    condition: a\n", "test.yml:5: detection.a: is empty"},
      {"    a: {'|cidr': 10.0.0.0/8}\n    condition: a\n",
       "test.yml:5: detection.a.|cidr: the modifier cidr needs a field"},
      {"    condition: a\n", "test.yml:5: detection: has no selection"},
      {"    a: {F: x, F: y}\n    condition: a\n", "test.yml:5: "},
  };
  for (const Bad& bad : kTable) {
    EXPECT_TRUE(FirstProblem(RuleText(bad.detection)).starts_with(bad.problem))
        << FirstProblem(RuleText(bad.detection)) << "\n  wanted: " << bad.problem;
  }
}

TEST(ReadRules, HeadErrors) {
  const std::string rest = "detection:\n    a: {F: x}\n    condition: a\n";
  EXPECT_EQ(FirstProblem("logsource: {product: x}\n" + rest), "test.yml:1: title: is missing");
  EXPECT_TRUE(FirstProblem("title: x\n" + rest).starts_with("test.yml:1: logsource: is missing"));
  EXPECT_TRUE(FirstProblem("title: x\nlogsource: {definition: y}\n" + rest)
                  .starts_with("test.yml:2: logsource: names no"));
  EXPECT_TRUE(FirstProblem("title: x\nlevel: hihg\nlogsource: {product: x}\n" + rest)
                  .starts_with("test.yml:2: level: \"hihg\" is none of"));
  EXPECT_TRUE(FirstProblem("title: x\nid: 12\nlogsource: {product: x}\n" + rest)
                  .starts_with("test.yml:2: id: \"12\" is no UUID"));
  EXPECT_TRUE(FirstProblem("title: [\n").starts_with("test.yml:"));
  EXPECT_TRUE(FirstProblem("- a\n").starts_with("test.yml:1: a rule must be a map"));
}

TEST(MakeReady, IdsAndNamesAreUnique) {
  const std::string rule = RuleText("    a: {F: x}\n    condition: a\n");
  EXPECT_TRUE(FirstProblem("name: n\n" + rule + "---\nname: n\n" + rule)
                  .starts_with("test.yml:9: name: \"n\" is taken: test.yml:1"))
      << FirstProblem("name: n\n" + rule + "---\nname: n\n" + rule);
}

TEST(MakeReady, APlaceholderWithoutValuesLeavesTheRuleOut) {
  const RuleSet set =
      testing::SetOf(RuleText("    a: {'F|contains|expand': '%hosts%'}\n    condition: a\n"));
  EXPECT_TRUE(set.rules.empty());
  ASSERT_EQ(set.left_out.size(), 1U);
  EXPECT_EQ(set.left_out[0].why, "the placeholder %hosts% has no values");
}

}  // namespace
}  // namespace ringfence::sigma

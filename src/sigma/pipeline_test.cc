// Goal: pipelines change rules as they say, and only the rules, lines and fields that they name;
// what they cannot do is an error with line and field.
// Method: one small pipeline each, on one rule, seen through what then matches.

#include "sigma/pipeline.h"

#include "sigma/test_support.h"

namespace ringfence::sigma {
namespace {

using testing::BothMatch;

std::vector<Pipeline> PipelinesOf(std::string_view text) {
  std::vector<Problem> problems;
  auto pipeline = Pipeline::Read(text, "pipe.yml", problems);
  for (const Problem& problem : problems) {
    ADD_FAILURE() << problem.Text();
  }
  return pipeline ? std::vector<Pipeline>{*pipeline} : std::vector<Pipeline>{};
}

RuleSet SetWith(std::string_view pipeline, std::string_view detection,
                std::string_view logsource = "{product: windows, category: process_creation}") {
  return testing::SetOf("title: T\ntags: [attack.t1]\nlogsource: " + std::string(logsource) +
                            "\ndetection:\n" + std::string(detection),
                        PipelinesOf(pipeline));
}

constexpr std::string_view kRule = "    a: {Image: x, User: y}\n    condition: a\n";

TEST(Pipeline, FieldMapping) {
  const RuleSet set = SetWith(R"(
transformations:
  - type: field_name_mapping
    mapping:
      Image: process.executable
      User: [user.name, user.id]
)",
                              kRule);
  EXPECT_TRUE(BothMatch(set, R"({"process":{"executable":"x"},"user":{"id":"y"}})"));
  EXPECT_TRUE(BothMatch(set, R"({"process":{"executable":"x"},"user":{"name":"y"}})"));
  EXPECT_FALSE(BothMatch(set, R"({"Image":"x","User":"y"})"));
}

TEST(Pipeline, PrefixAndSuffixAndFieldConditions) {
  const RuleSet set = SetWith(R"(
transformations:
  - type: field_name_prefix
    prefix: win.
    field_name_conditions:
      - {type: include_fields, fields: [Image]}
  - type: field_name_suffix
    suffix: _s
    field_name_conditions:
      - {type: exclude_fields, fields: [win.Image]}
  - type: field_name_prefix_mapping
    mapping: {win.: host.}
)",
                              kRule);
  EXPECT_TRUE(BothMatch(set, R"({"host":{"Image":"x"},"User_s":"y"})"));
}

TEST(Pipeline, ConditionsForALogSource) {
  const std::string_view pipeline = R"(
transformations:
  - type: add_condition
    conditions: {EventID: [1, 4688], Channel|endswith: /Operational}
    rule_conditions:
      - {type: logsource, category: process_creation}
  - type: add_condition
    template: true
    negated: true
    conditions: {kind: 'not-$category'}
)";
  const RuleSet set = SetWith(pipeline, kRule);
  EXPECT_TRUE(BothMatch(set, R"({"Image":"x","User":"y","EventID":1,"Channel":"S/Operational"})"));
  EXPECT_FALSE(BothMatch(set, R"({"Image":"x","User":"y","EventID":2,"Channel":"S/Operational"})"));
  EXPECT_FALSE(BothMatch(
      set,
      R"({"Image":"x","User":"y","EventID":1,"Channel":"S/Operational","kind":"not-process_creation"})"));
  const RuleSet other = SetWith(pipeline, kRule, "{product: windows, category: dns}");
  EXPECT_TRUE(BothMatch(other, R"({"Image":"x","User":"y"})"));
}

TEST(Pipeline, PlaceholdersFromVarsAndAsWildcards) {
  const std::string_view rule = "    a: {'F|expand': '%hosts%.local'}\n    condition: a\n";
  const RuleSet values = SetWith(
      "vars: {hosts: [dc1, 'dc2*']}\ntransformations:\n"
      "  - type: value_placeholders\n",
      rule);
  EXPECT_TRUE(BothMatch(values, R"({"F":"DC1.local"})"));
  EXPECT_TRUE(BothMatch(values, R"({"F":"dc2x.local"})"));
  EXPECT_FALSE(BothMatch(values, R"({"F":"dc3.local"})"));
  const RuleSet any = SetWith("transformations:\n  - type: wildcard_placeholders\n", rule);
  EXPECT_TRUE(BothMatch(any, R"({"F":"anything.local"})"));
  const RuleSet plain = SetWith("transformations:\n  - type: wildcard_placeholders\n",
                                "    a: {'F|expand': '\\%x%'}\n    condition: a\n");
  EXPECT_TRUE(BothMatch(plain, R"({"F":"%x%"})"));
}

TEST(Pipeline, StringsDropsStateAndFailures) {
  const RuleSet set = SetWith(R"(
transformations:
  - id: dropped
    type: drop_detection_item
    field_name_conditions: [{type: include_fields, fields: [User]}]
  - type: replace_string
    regex: '^x$'
    replacement: z
    rule_conditions: [{type: processing_item_applied, processing_item_id: dropped}]
  - type: map_string
    mapping: {z: w}
    detection_item_conditions: [{type: match_string, pattern: '^z'}]
    rule_conditions: [{type: tag, tag: attack.t1}, {type: tag, tag: none}]
    rule_cond_op: or
  - type: rule_failure
    message: never
    rule_conditions: [{type: logsource, product: windows}]
    rule_cond_not: true
)",
                              kRule);
  EXPECT_TRUE(BothMatch(set, R"({"Image":"w"})"));
  EXPECT_FALSE(BothMatch(set, R"({"Image":"x","User":"y"})"));
  const RuleSet failed =
      SetWith("transformations:\n  - {type: rule_failure, message: not here}\n", kRule);
  ASSERT_EQ(failed.left_out.size(), 1U);
  EXPECT_EQ(failed.left_out[0].why, "not here");
}

TEST(Pipeline, PrioritiesAndChangedLogSources) {
  std::vector<Pipeline> pipelines = PipelinesOf(R"(
priority: 20
transformations:
  - type: field_name_prefix
    prefix: late.
    rule_conditions: [{type: logsource, product: other}]
)");
  pipelines.push_back(PipelinesOf("priority: 10\ntransformations:\n"
                                  "  - {type: change_logsource, product: other}\n")
                          .front());
  const RuleSet set =
      testing::SetOf(testing::RuleText("    a: {F: x}\n    condition: a\n"), pipelines);
  EXPECT_TRUE(BothMatch(set, R"({"late":{"F":"x"}})"));
}

TEST(Pipeline, ACustomTaxonomyNeedsAPipelineForIt) {
  const std::string rule =
      "taxonomy: mine\n" + testing::RuleText("    a: {F: x}\n    condition: a\n");
  EXPECT_EQ(testing::SetOf(rule).left_out.size(), 1U);
  const RuleSet set = testing::SetOf(
      rule, PipelinesOf(
                "taxonomies: [mine]\ntransformations:\n  - type: field_name_mapping\n"
                "    mapping: {F: G}\n    rule_conditions: [{type: taxonomy, taxonomy: mine}]\n"));
  EXPECT_TRUE(BothMatch(set, R"({"G":"x"})"));
}

TEST(Pipeline, Errors) {
  const auto first = [](std::string_view text) {
    std::vector<Problem> problems;
    EXPECT_FALSE(Pipeline::Read(text, "pipe.yml", problems));
    return problems.empty() ? std::string() : problems.front().Text();
  };
  EXPECT_TRUE(first("transformations:\n  - type: nest\n")
                  .starts_with("pipe.yml:2: transformations[0].type: \"nest\" is none of"))
      << first("transformations:\n  - type: nest\n");
  EXPECT_TRUE(first("postprocessing: []\n").starts_with("pipe.yml:1: postprocessing: is not"));
  EXPECT_TRUE(first("transformations:\n  - type: field_name_mapping\n")
                  .starts_with("pipe.yml:2: transformations[0].mapping: must be"));
  EXPECT_TRUE(first("- a\n").starts_with("pipe.yml: a pipeline is one YAML map"));
}

}  // namespace
}  // namespace ringfence::sigma

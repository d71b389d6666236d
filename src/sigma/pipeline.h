#pragma once

// Processing pipelines: YAML files in the form that pySigma introduced, which adapt rules to the
// events at hand before they are compiled: other field names, conditions added for a log source,
// values for placeholders.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sigma/expression.h"
#include "sigma/rule.h"

namespace ringfence::sigma {

inline constexpr std::size_t kTransformationsMax = 4096;

// A question about a rule, a line of it or a field, that decides whether a transformation applies.
struct PipelineCondition {
  enum class Kind : std::uint8_t {
    kLogSource,
    kHasField,
    kHasItem,
    kApplied,
    kTag,
    kTaxonomy,
    kIsRule,
    kIncludeFields,
    kExcludeFields,
    kMatchString,
  };
  Kind kind = Kind::kIsRule;
  LogSource logsource;
  std::string text;  // a field, tag, taxonomy, id or pattern
  std::string value;
  std::vector<std::string> fields;
};

struct PipelineConditions {
  std::vector<PipelineCondition> all;
  bool any = false;  // one suffices
  bool negated = false;
};

struct Transformation {
  enum class Kind : std::uint8_t {
    kFieldMapping,
    kFieldPrefixMapping,
    kFieldPrefix,
    kFieldSuffix,
    kDropItem,
    kAddCondition,
    kChangeLogSource,
    kReplaceString,
    kMapString,
    kValuePlaceholders,
    kWildcardPlaceholders,
    kRuleFailure,
    kItemFailure,
  };
  Kind kind = Kind::kFieldMapping;
  Place place;
  std::string id;
  PipelineConditions rule_conditions;
  PipelineConditions item_conditions;
  PipelineConditions field_conditions;
  std::map<std::string, std::vector<std::string>> mapping;  // fields, strings
  std::string text;                                         // prefix, suffix, regex, message
  std::string replacement;
  LogSource logsource;
  std::vector<Item> conditions;  // kAddCondition
  bool negated = false;
  bool templated = false;            // $category, $product and $service stand for the rule's
  std::vector<std::string> include;  // placeholders; empty: all
};

struct Pipeline {
  std::string name;
  double priority = 0;
  std::map<std::string, std::vector<std::string>> vars;
  std::vector<std::string> taxonomies;  // that it turns into ours
  std::vector<Transformation> transformations;

  // Every problem is added; nothing is returned with one.
  static std::optional<Pipeline> Read(std::string_view text, const std::string& file,
                                      std::vector<Problem>& problems);
};

// Changes `rule` as the pipelines say, lowest priority first, and collects placeholder values. An
// error is the message of a rule_failure or detection_item_failure.
Status Apply(const std::vector<Pipeline>& pipelines, Rule& rule, Placeholders& placeholders);

}  // namespace ringfence::sigma

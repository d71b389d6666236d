// The `correlation:` part of a rule.

#include <algorithm>
#include <charconv>

#include "sigma/yaml_value.h"

namespace ringfence::sigma {
namespace {

using wire::YamlMember;
using wire::YamlNode;

struct TypeName {
  std::string_view name;
  CorrelationType type;
  bool needs_field;
};
constexpr TypeName kTypes[] = {
    {"event_count", CorrelationType::kEventCount, false},
    {"value_count", CorrelationType::kValueCount, true},
    {"temporal", CorrelationType::kTemporal, false},
    {"temporal_ordered", CorrelationType::kTemporalOrdered, false},
    {"value_sum", CorrelationType::kValueSum, true},
    {"value_avg", CorrelationType::kValueAverage, true},
    {"value_percentile", CorrelationType::kValuePercentile, true},
};

struct OpName {
  std::string_view name;
  Bound::Op op;
};
constexpr OpName kOps[] = {
    {"lt", Bound::Op::kLess},    {"lte", Bound::Op::kLessOrEqual},
    {"gt", Bound::Op::kGreater}, {"gte", Bound::Op::kGreaterOrEqual},
    {"eq", Bound::Op::kEqual},   {"neq", Bound::Op::kNotEqual},
};

constexpr std::int64_t kTimespanSecondsMax = 366 * 86400;

void ReadTimespan(const YamlNode& node, Correlation& correlation, Reader& reader) {
  const std::string text = reader.Text(node, "timespan", "correlation", true, 32);
  if (text.empty()) {
    return;
  }
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::int64_t seconds = unit == "s"   ? 1
                               : unit == "m" ? 60
                               : unit == "h" ? 3600
                               : unit == "d" ? 86400
                               : unit == "w" ? 7 * 86400
                                             : 0;
  if (error != std::errc() || seconds == 0 || count <= 0 || count > kTimespanSecondsMax / seconds) {
    reader.Bad(LineOf(node, "timespan"), "correlation.timespan",
               "\"" + text + "\" is no time span of at most a year",
               "a number and s, m, h, d or w, as in 15m");
    return;
  }
  correlation.timespan = std::chrono::seconds(count * seconds);
}

void ReadBound(const YamlMember& member, Correlation& correlation, Reader& reader) {
  const std::string path = "correlation.condition." + member.key;
  const Scalar value = IsScalar(member.value) ? ScalarOf(member.value) : Scalar{};
  if (member.key == "field") {
    correlation.field = member.value.text;
    if (!IsScalar(member.value) || correlation.field.empty()) {
      reader.Bad(member.line, path, "must be one field's name");
    }
    return;
  }
  const auto* op = std::find_if(std::begin(kOps), std::end(kOps),
                                [&](const OpName& one) { return one.name == member.key; });
  if (op == std::end(kOps) && member.key != "percentile") {
    reader.Bad(member.line, path, "is not supported in a correlation's condition",
               "it has gt, gte, lt, lte, eq, neq, field and percentile");
    return;
  }
  if (value.kind != Scalar::Kind::kNumber) {
    reader.Bad(member.line, path, "must be a number");
    return;
  }
  if (op != std::end(kOps)) {
    correlation.bounds.push_back({op->op, value.number});
  } else if (value.number >= 0 && value.number <= 100) {
    correlation.percentile = value.number;
  } else {
    reader.Bad(member.line, path, "must lie between 0 and 100");
  }
}

void ReadAliases(const YamlNode& node, Correlation& correlation, Reader& reader) {
  for (const YamlMember& alias : node.members) {
    const std::string path = "correlation.aliases." + alias.key;
    if (alias.value.kind != YamlNode::Kind::kMap) {
      reader.Bad(alias.line, path, "must map each rule to its field");
      continue;
    }
    for (const YamlMember& rule : alias.value.members) {
      if (rule.value.kind != YamlNode::Kind::kText) {
        reader.Bad(rule.line, PathOf(path, rule.key), "must be a field's name");
      } else if (std::find(correlation.rules.begin(), correlation.rules.end(), rule.key) ==
                 correlation.rules.end()) {
        reader.Bad(rule.line, PathOf(path, rule.key), "is none of correlation.rules");
      } else {
        correlation.aliases[alias.key][rule.key] = rule.value.text;
      }
    }
  }
}

}  // namespace

Correlation ReadCorrelation(const YamlNode& node, Reader& reader) {
  Correlation correlation;
  if (node.kind != YamlNode::Kind::kMap) {
    reader.Bad(node.line, "correlation", "must be a map");
    return correlation;
  }
  static constexpr std::string_view kKeys[] = {"type",      "rules",   "group-by", "timespan",
                                               "condition", "aliases", "generate"};
  for (const YamlMember& member : node.members) {
    if (std::find(std::begin(kKeys), std::end(kKeys), member.key) == std::end(kKeys)) {
      reader.Bad(member.line, "correlation." + member.key, "is not supported");
    }
  }
  std::vector<std::string_view> names;
  for (const TypeName& type : kTypes) {
    names.push_back(type.name);
  }
  const std::string type = reader.Word(node, "type", "correlation", names, true);
  const auto* known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const TypeName& one) { return one.name == type; });
  if (known == std::end(kTypes)) {
    return correlation;
  }
  correlation.type = known->type;
  const bool temporal = correlation.type == CorrelationType::kTemporal ||
                        correlation.type == CorrelationType::kTemporalOrdered;
  correlation.rules = reader.Texts(node, "rules", "correlation");
  correlation.group_by = reader.Texts(node, "group-by", "correlation");
  correlation.generate = reader.Truth(node, "generate", "correlation", false);
  if (correlation.rules.empty() || correlation.rules.size() > 64) {
    reader.Bad(LineOf(node, "rules"), "correlation.rules", "must name one to 64 rules");
  }
  ReadTimespan(node, correlation, reader);
  if (const YamlNode* aliases = node.Find("aliases"); aliases != nullptr) {
    ReadAliases(*aliases, correlation, reader);
  }
  const YamlNode* condition = node.Find("condition");
  if (condition != nullptr && condition->kind != YamlNode::Kind::kMap) {
    reader.Bad(condition->line, "correlation.condition",
               "must be a map such as {gte: 10}: conditions over rule names are not in Sigma 2.1");
  } else if (condition != nullptr) {
    for (const YamlMember& member : condition->members) {
      ReadBound(member, correlation, reader);
    }
  }
  if (correlation.bounds.empty() && !temporal) {
    reader.Bad(LineOf(node, "condition"), "correlation.condition",
               "needs gt, gte, lt, lte, eq or neq");
  }
  if (known->needs_field && correlation.field.empty()) {
    reader.Bad(LineOf(node, "condition"), "correlation.condition.field",
               "is missing: " + type + " needs it");
  }
  if (!known->needs_field && !correlation.field.empty()) {
    reader.Bad(LineOf(node, "condition"), "correlation.condition.field",
               "has no meaning with " + type);
  }
  return correlation;
}

}  // namespace ringfence::sigma

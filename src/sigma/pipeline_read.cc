// Pipelines from YAML.

#include <re2/re2.h>

#include <algorithm>

#include "base/closest.h"
#include "sigma/pipeline.h"
#include "sigma/yaml_value.h"

namespace ringfence::sigma {
namespace {

using wire::YamlMember;
using wire::YamlNode;
using Kind = Transformation::Kind;

struct KindName {
  std::string_view name;
  Kind kind;
};
constexpr KindName kKinds[] = {
    {"field_name_mapping", Kind::kFieldMapping},
    {"field_name_prefix_mapping", Kind::kFieldPrefixMapping},
    {"field_name_prefix", Kind::kFieldPrefix},
    {"field_name_suffix", Kind::kFieldSuffix},
    {"drop_detection_item", Kind::kDropItem},
    {"add_condition", Kind::kAddCondition},
    {"change_logsource", Kind::kChangeLogSource},
    {"replace_string", Kind::kReplaceString},
    {"map_string", Kind::kMapString},
    {"value_placeholders", Kind::kValuePlaceholders},
    {"wildcard_placeholders", Kind::kWildcardPlaceholders},
    {"rule_failure", Kind::kRuleFailure},
    {"detection_item_failure", Kind::kItemFailure},
};

struct ConditionName {
  std::string_view name;
  PipelineCondition::Kind kind;
};
constexpr ConditionName kConditions[] = {
    {"logsource", PipelineCondition::Kind::kLogSource},
    {"contains_field", PipelineCondition::Kind::kHasField},
    {"contains_detection_item", PipelineCondition::Kind::kHasItem},
    {"processing_item_applied", PipelineCondition::Kind::kApplied},
    {"tag", PipelineCondition::Kind::kTag},
    {"taxonomy", PipelineCondition::Kind::kTaxonomy},
    {"is_sigma_rule", PipelineCondition::Kind::kIsRule},
    {"include_fields", PipelineCondition::Kind::kIncludeFields},
    {"exclude_fields", PipelineCondition::Kind::kExcludeFields},
    {"match_string", PipelineCondition::Kind::kMatchString},
};

template <typename Table>
auto Look(const Table& table, const YamlNode& node, const std::string& path, Reader& reader)
    -> std::optional<decltype(table[0].kind)> {
  std::vector<std::string_view> names;
  for (const auto& one : table) {
    names.push_back(one.name);
  }
  const std::string type = reader.Word(node, "type", path, names, true);
  for (const auto& one : table) {
    if (one.name == type) {
      return one.kind;
    }
  }
  return std::nullopt;
}

void CheckRegex(const std::string& text, const YamlNode& node, const std::string& path,
                Reader& reader) {
  const RE2 regex(text, RE2::Quiet);
  if (!regex.ok()) {
    reader.Bad(node.line, path, "the regular expression cannot be honoured: " + regex.error());
  }
}

PipelineConditions ReadConditions(const YamlNode& node, const std::string& prefix,
                                  const std::string& path, Reader& reader) {
  PipelineConditions conditions;
  conditions.any = reader.Word(node, prefix + "_cond_op", path, {"and", "or"}) == "or";
  conditions.negated = reader.Truth(node, prefix + "_cond_not", path, false);
  const YamlNode* list = node.Find(prefix + "_conditions");
  if (list == nullptr) {
    return conditions;
  }
  const std::string list_path = PathOf(path, prefix + "_conditions");
  for (const YamlNode& entry : list->items) {
    if (entry.kind != YamlNode::Kind::kMap) {
      reader.Bad(entry.line, list_path, "must be maps with a type");
      continue;
    }
    const auto kind = Look(kConditions, entry, list_path, reader);
    if (!kind) {
      continue;
    }
    PipelineCondition condition;
    condition.kind = *kind;
    condition.fields = reader.Texts(entry, "fields", list_path);
    condition.value = reader.Text(entry, "value", list_path);
    for (const char* key : {"field", "tag", "taxonomy", "processing_item_id", "pattern"}) {
      if (entry.Find(key) != nullptr) {
        condition.text = reader.Text(entry, key, list_path);
      }
    }
    if (*kind == PipelineCondition::Kind::kLogSource) {
      condition.logsource = ReadLogSource(entry, list_path, reader);
    }
    if (*kind == PipelineCondition::Kind::kMatchString) {
      CheckRegex(condition.text, entry, list_path, reader);
    }
    conditions.all.push_back(std::move(condition));
  }
  if (list->kind != YamlNode::Kind::kList) {
    reader.Bad(list->line, list_path, "must be a list");
  }
  return conditions;
}

void ReadMapping(const YamlNode& node, const std::string& path, Transformation& out,
                 Reader& reader) {
  const YamlNode* mapping = node.Find("mapping");
  if (mapping == nullptr || mapping->kind != YamlNode::Kind::kMap || mapping->members.empty()) {
    reader.Bad(LineOf(node, "mapping"), PathOf(path, "mapping"), "must be a map of names");
    return;
  }
  for (const YamlMember& member : mapping->members) {
    auto to = reader.Texts(*mapping, member.key, PathOf(path, "mapping"));
    if (to.empty()) {
      reader.Bad(member.line, PathOf(path, "mapping." + member.key), "maps to nothing");
    }
    out.mapping[member.key] = std::move(to);
  }
}

void ReadAdded(const YamlNode& node, const std::string& path, Transformation& out, Reader& reader) {
  out.negated = reader.Truth(node, "negated", path, false);
  out.templated = reader.Truth(node, "template", path, false);
  const YamlNode* conditions = node.Find("conditions");
  if (conditions == nullptr || conditions->kind != YamlNode::Kind::kMap ||
      conditions->members.empty()) {
    reader.Bad(LineOf(node, "conditions"), PathOf(path, "conditions"),
               "must be a map of fields and values");
    return;
  }
  YamlNode detection;
  detection.kind = YamlNode::Kind::kMap;
  detection.line = conditions->line;
  detection.members.push_back({"added", conditions->line, *conditions});
  YamlNode condition;
  condition.kind = YamlNode::Kind::kText;
  condition.text = "added";
  detection.members.push_back({"condition", conditions->line, condition});
  const Detection read = ReadDetection(detection, PathOf(path, "conditions"), reader);
  for (const Selection& selection : read.selections) {
    for (const Block& block : selection.block.blocks) {
      out.conditions.push_back(block.item);
    }
  }
}

Transformation ReadTransformation(const YamlNode& node, const std::string& path, Reader& reader) {
  Transformation out;
  out.place = {reader.file(), node.line};
  const auto kind = Look(kKinds, node, path, reader);
  if (!kind) {
    return out;
  }
  out.kind = *kind;
  out.id = reader.Text(node, "id", path, false, 256);
  out.rule_conditions = ReadConditions(node, "rule", path, reader);
  out.item_conditions = ReadConditions(node, "detection_item", path, reader);
  out.field_conditions = ReadConditions(node, "field_name", path, reader);
  switch (out.kind) {
    case Kind::kFieldMapping:
    case Kind::kFieldPrefixMapping:
    case Kind::kMapString:
      ReadMapping(node, path, out, reader);
      break;
    case Kind::kFieldPrefix:
      out.text = reader.Text(node, "prefix", path, true);
      break;
    case Kind::kFieldSuffix:
      out.text = reader.Text(node, "suffix", path, true);
      break;
    case Kind::kAddCondition:
      ReadAdded(node, path, out, reader);
      break;
    case Kind::kChangeLogSource:
      out.logsource = ReadLogSource(node, path, reader);
      break;
    case Kind::kReplaceString:
      out.text = reader.Text(node, "regex", path, true);
      out.replacement = reader.Text(node, "replacement", path);
      CheckRegex(out.text, node, PathOf(path, "regex"), reader);
      break;
    case Kind::kValuePlaceholders:
    case Kind::kWildcardPlaceholders:
      out.include = reader.Texts(node, "include", path);
      break;
    case Kind::kRuleFailure:
    case Kind::kItemFailure:
      out.text = reader.Text(node, "message", path, true);
      break;
    case Kind::kDropItem:
      break;
  }
  return out;
}

}  // namespace

std::optional<Pipeline> Pipeline::Read(std::string_view text, const std::string& file,
                                       std::vector<Problem>& problems) {
  Reader reader(file, problems);
  const std::vector<YamlNode> documents = ReadYaml(text, file, problems);
  if (documents.size() != 1 || documents.front().kind != YamlNode::Kind::kMap) {
    reader.Bad(0, "", "a pipeline is one YAML map");
    return std::nullopt;
  }
  const YamlNode& node = documents.front();
  Pipeline pipeline;
  pipeline.name = reader.Text(node, "name", "", false, 256);
  pipeline.taxonomies = reader.Texts(node, "taxonomies", "");
  if (const YamlNode* priority = node.Find("priority"); priority != nullptr) {
    const Scalar value = IsScalar(*priority) ? ScalarOf(*priority) : Scalar{};
    pipeline.priority = value.number;
    if (value.kind != Scalar::Kind::kNumber) {
      reader.Bad(priority->line, "priority", "must be a number");
    }
  }
  if (const YamlNode* vars = node.Find("vars"); vars != nullptr) {
    for (const YamlMember& member : vars->members) {
      pipeline.vars[member.key] = reader.Texts(*vars, member.key, "vars");
    }
  }
  for (const YamlMember& member : node.members) {
    static constexpr std::string_view kKeys[] = {
        "name", "priority", "vars", "taxonomies", "transformations", "allowed_backends"};
    if (std::find(std::begin(kKeys), std::end(kKeys), member.key) == std::end(kKeys)) {
      reader.Bad(member.line, member.key, "is not supported in a pipeline",
                 "it has name, priority, vars, taxonomies and transformations");
    }
  }
  if (const YamlNode* list = node.Find("transformations"); list != nullptr) {
    for (std::size_t i = 0; i < list->items.size() && i < kTransformationsMax; ++i) {
      pipeline.transformations.push_back(
          ReadTransformation(list->items[i], "transformations[" + std::to_string(i) + "]", reader));
    }
  }
  if (!reader.ok()) {
    return std::nullopt;
  }
  return pipeline;
}

}  // namespace ringfence::sigma

// Rules, correlations and filters from YAML.

#include <algorithm>

#include "base/closest.h"
#include "base/time.h"
#include "sigma/expression.h"
#include "sigma/yaml_value.h"

namespace ringfence::sigma {
namespace {

using wire::YamlMember;
using wire::YamlNode;

constexpr std::size_t kTitleBytesMax = 1024;  // 256 characters, each of up to four bytes

Item ReadItem(std::string_view key, int line, const YamlNode& node, const std::string& path,
              Reader& reader) {
  Item item;
  item.line = line;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = key.find('|', begin);
    const std::string_view word = key.substr(begin, end - begin);
    if (begin == 0) {
      item.field = word;
    } else if (word.empty()) {
      reader.Bad(line, path, "a modifier is empty", "take the extra | out");
    } else {
      item.modifiers.emplace_back(word);
    }
    if (end == std::string_view::npos) {
      break;
    }
    begin = end + 1;
  }
  if (IsScalar(node)) {
    item.values.push_back(ScalarOf(node));
  } else if (node.kind == YamlNode::Kind::kList) {
    for (const YamlNode& value : node.items) {
      if (!IsScalar(value)) {
        reader.Bad(value.line, path, "a value must be text, a number, true, false or null");
        return item;
      }
      item.values.push_back(ScalarOf(value));
    }
  } else {
    reader.Bad(node.line, path, "a value must be a scalar or a list, not a map");
    return item;
  }
  if (item.values.empty()) {
    reader.Bad(line, path, "has no values", "list at least one, or leave the line out");
  }
  if (item.values.size() > kValuesMax) {
    reader.Bad(line, path, "has more than " + std::to_string(kValuesMax) + " values");
  }
  return item;
}

Block Single(Item item) {
  Block block;
  block.kind = Block::Kind::kItem;
  block.item = std::move(item);
  return block;
}

Block ReadMap(const YamlNode& node, const std::string& path, Reader& reader) {
  Block all;
  for (const YamlMember& member : node.members) {
    all.blocks.push_back(
        Single(ReadItem(member.key, member.line, member.value, PathOf(path, member.key), reader)));
  }
  if (all.blocks.empty()) {
    reader.Bad(node.line, path, "is empty");
  }
  return all;
}

Block ReadBlock(const YamlNode& node, const std::string& path, Reader& reader) {
  if (node.kind == YamlNode::Kind::kMap) {
    return ReadMap(node, path, reader);
  }
  if (IsScalar(node)) {
    return Single(ReadItem("", node.line, node, path, reader));
  }
  Block any;
  any.kind = Block::Kind::kAny;
  Item keywords;
  keywords.line = node.line;
  for (const YamlNode& entry : node.items) {
    if (IsScalar(entry)) {
      keywords.values.push_back(ScalarOf(entry));
    } else if (entry.kind == YamlNode::Kind::kMap) {
      any.blocks.push_back(ReadMap(entry, path, reader));
    } else {
      reader.Bad(entry.line, path, "a list in a list has no meaning", "use a map or text");
    }
  }
  if (!keywords.values.empty()) {
    any.blocks.push_back(Single(std::move(keywords)));
  }
  if (any.blocks.empty()) {
    reader.Bad(node.line, path, "is empty");
  }
  return any;
}

// Compiling each line and the condition once finds what cannot be honoured where it is written.
void CheckBlock(const Block& block, const std::string& path, Reader& reader) {
  for (const Block& inner : block.blocks) {
    CheckBlock(inner, path, reader);
  }
  if (block.kind != Block::Kind::kItem) {
    return;
  }
  const auto compiled = Compile(block.item, {});
  if (!compiled.has_value() && compiled.error().code != Code::kFailedPrecondition) {
    reader.Bad(block.item.line, PathOf(path, block.item.Name()), compiled.error().message,
               compiled.error().hint);
  }
}

bool IsUuid(std::string_view text) {
  if (text.size() != 36) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (dash ? c != '-' : !hex) {
      return false;
    }
  }
  return true;
}

void ReadHead(const YamlNode& node, Rule& rule, Reader& reader) {
  rule.title = reader.Text(node, "title", "", true, kTitleBytesMax);
  rule.id = reader.Text(node, "id", "");
  if (!rule.id.empty() && !IsUuid(rule.id)) {
    reader.Bad(LineOf(node, "id"), "id", "\"" + rule.id + "\" is no UUID",
               "make one with uuidgen, or give the rule a name instead");
  }
  rule.name = reader.Text(node, "name", "", false, 256);
  rule.status = reader.Word(node, "status", "",
                            {"stable", "test", "experimental", "deprecated", "unsupported"});
  rule.level =
      reader.Word(node, "level", "", {"informational", "low", "medium", "high", "critical"});
  rule.description = reader.Text(node, "description", "");
  rule.author = reader.Text(node, "author", "");
  rule.taxonomy = reader.Text(node, "taxonomy", "", false, 256);
  rule.tags = reader.Texts(node, "tags", "");
  rule.false_positives = reader.Texts(node, "falsepositives", "");
  rule.fields = reader.Texts(node, "fields", "");
}

Rule ReadRule(const YamlNode& node, Reader& reader) {
  Rule rule;
  rule.place = {reader.file(), node.line};
  ReadHead(node, rule, reader);
  const YamlNode* correlation = node.Find("correlation");
  const YamlNode* filter = node.Find("filter");
  const YamlNode* detection = node.Find("detection");
  if (correlation != nullptr) {
    rule.kind = RuleKind::kCorrelation;
    rule.correlation = ReadCorrelation(*correlation, reader);
    // The specification has it beside `correlation`; many files have it inside.
    rule.correlation.generate = reader.Truth(node, "generate", "", rule.correlation.generate);
    return rule;
  }
  if (const YamlNode* source = node.Find("logsource"); source != nullptr) {
    rule.logsource = ReadLogSource(*source, "logsource", reader);
  } else {
    reader.Bad(node.line, "logsource", "is missing",
               "say which events the rule is for: product, category or service");
  }
  if (filter != nullptr) {
    rule.kind = RuleKind::kFilter;
    rule.filter.detection = ReadDetection(*filter, "filter", reader, {"rules"});
    rule.filter.rules = reader.Texts(*filter, "rules", "filter");
    if (rule.filter.rules.size() == 1 && rule.filter.rules.front() == "any") {
      rule.filter.rules.clear();
    } else if (rule.filter.rules.empty()) {
      reader.Bad(LineOf(*filter, "rules"), "filter.rules", "names no rule",
                 "list ids or names, or write \"any\" for every rule of the log source");
    }
  } else if (detection != nullptr) {
    rule.detection = ReadDetection(*detection, "detection", reader);
  } else {
    reader.Bad(node.line, "detection", "is missing", "a rule has detection, correlation or filter");
  }
  return rule;
}

void Overlay(YamlNode& under, const YamlNode& over) {
  for (const YamlMember& member : over.members) {
    const auto found = std::find_if(under.members.begin(), under.members.end(),
                                    [&](const YamlMember& m) { return m.key == member.key; });
    if (found == under.members.end()) {
      under.members.push_back(member);
    } else if (found->value.kind == YamlNode::Kind::kMap &&
               member.value.kind == YamlNode::Kind::kMap) {
      Overlay(found->value, member.value);
    } else {
      *found = member;
    }
  }
}

}  // namespace

Detection ReadDetection(const YamlNode& node, const std::string& path, Reader& reader,
                        const std::vector<std::string_view>& other_keys) {
  Detection detection;
  if (node.kind != YamlNode::Kind::kMap) {
    reader.Bad(node.line, path, "must be a map of selections and a condition");
    return detection;
  }
  std::vector<std::string> names;
  for (const YamlMember& member : node.members) {
    if (member.key == "condition" ||
        std::find(other_keys.begin(), other_keys.end(), member.key) != other_keys.end()) {
      continue;
    }
    if (member.key == "timeframe") {
      reader.Bad(member.line, path + ".timeframe", "is obsolete and not supported",
                 "write a correlation rule with a timespan");
      continue;
    }
    const std::string name_path = PathOf(path, member.key);
    Selection selection{member.key, ReadBlock(member.value, name_path, reader), member.line};
    CheckBlock(selection.block, name_path, reader);
    names.push_back(member.key);
    detection.selections.push_back(std::move(selection));
  }
  if (names.empty() || names.size() > kSelectionsMax) {
    reader.Bad(node.line, path,
               names.empty() ? "has no selection"
                             : "has more than " + std::to_string(kSelectionsMax) + " selections");
    return detection;
  }
  detection.condition_line = LineOf(node, "condition");
  detection.conditions = reader.Texts(node, "condition", path);
  if (detection.conditions.empty()) {
    reader.Bad(detection.condition_line, path + ".condition", "is missing");
  }
  for (const std::string& condition : detection.conditions) {
    const auto parsed = ParseCondition(condition, names);
    if (!parsed.has_value()) {
      reader.Bad(detection.condition_line, path + ".condition", parsed.error().message,
                 parsed.error().hint);
    }
  }
  return detection;
}

LogSource ReadLogSource(const YamlNode& node, const std::string& path, Reader& reader) {
  LogSource source;
  if (node.kind != YamlNode::Kind::kMap) {
    reader.Bad(node.line, path, "must be a map", "with product, category or service");
    return source;
  }
  source.category = reader.Text(node, "category", path, false, 256);
  source.product = reader.Text(node, "product", path, false, 256);
  source.service = reader.Text(node, "service", path, false, 256);
  if (source == LogSource{}) {
    reader.Bad(node.line, path, "names no product, category or service");
  }
  return source;
}

std::vector<Rule> ReadRules(std::string_view text, const std::string& file,
                            std::vector<Problem>& problems) {
  std::vector<Rule> rules;
  std::optional<YamlNode> global;
  for (const YamlNode& document : ReadYaml(text, file, problems)) {
    Reader reader(file, problems);
    if (document.kind != YamlNode::Kind::kMap) {
      reader.Bad(document.line, "", "a rule must be a map");
      continue;
    }
    const std::string action = reader.Word(document, "action", "", {"global", "reset"});
    YamlNode node = document;
    std::erase_if(node.members, [](const YamlMember& member) { return member.key == "action"; });
    if (action == "global") {
      global = std::move(node);
      continue;
    }
    if (action == "reset") {
      global.reset();
    }
    if (global) {
      YamlNode whole = *global;
      whole.line = node.line;
      Overlay(whole, node);
      node = std::move(whole);
    }
    Rule rule = ReadRule(node, reader);
    if (reader.ok()) {
      rules.push_back(std::move(rule));
    }
  }
  return rules;
}

}  // namespace ringfence::sigma

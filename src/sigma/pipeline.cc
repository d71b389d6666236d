#include "sigma/pipeline.h"

#include <re2/re2.h>

#include <algorithm>

namespace ringfence::sigma {
namespace {

using Kind = Transformation::Kind;

// One rule on its way through all transformations.
class Run {
 public:
  Run(Rule& rule, Placeholders& placeholders) : rule_(rule), placeholders_(placeholders) {}

  Status Apply(const Pipeline& pipeline, const Transformation& step) {
    if (!Holds(step.rule_conditions, nullptr)) {
      return {};
    }
    bool applied = true;
    switch (step.kind) {
      case Kind::kRuleFailure:
        return Error{Code::kFailedPrecondition, step.text, {}, {}};
      case Kind::kChangeLogSource:
        rule_.logsource = step.logsource;
        break;
      case Kind::kAddCondition:
        AddCondition(step);
        break;
      case Kind::kValuePlaceholders:
        for (const auto& [name, values] : pipeline.vars) {
          if (Included(step, name)) {
            placeholders_[name] = values;
          }
        }
        break;
      case Kind::kWildcardPlaceholders:
        if (step.include.empty()) {
          placeholders_[""] = {"*"};
        }
        for (const std::string& name : step.include) {
          placeholders_.emplace(name, std::vector<std::string>{"*"});
        }
        break;
      case Kind::kFieldMapping:
      case Kind::kFieldPrefixMapping:
      case Kind::kFieldPrefix:
      case Kind::kFieldSuffix:
      case Kind::kDropItem:
      case Kind::kReplaceString:
      case Kind::kMapString:
      case Kind::kItemFailure: {
        applied = false;
        for (Selection& selection : rule_.detection.selections) {
          RINGFENCE_TRY(Walk(step, selection.block, applied));
        }
        RINGFENCE_TRY(DropEmpty(step));
        break;
      }
    }
    if (applied && !step.id.empty()) {
      applied_.insert(step.id);
    }
    return {};
  }

 private:
  static bool Included(const Transformation& step, const std::string& name) {
    return step.include.empty() ||
           std::find(step.include.begin(), step.include.end(), name) != step.include.end();
  }

  template <typename F>
  static bool AnyItem(const Block& block, const F& f) {
    if (block.kind == Block::Kind::kItem) {
      return f(block.item);
    }
    return std::any_of(block.blocks.begin(), block.blocks.end(),
                       [&](const Block& inner) { return AnyItem(inner, f); });
  }
  template <typename F>
  bool AnyItem(const F& f) const {
    return std::any_of(rule_.detection.selections.begin(), rule_.detection.selections.end(),
                       [&](const Selection& one) { return AnyItem(one.block, f); });
  }

  bool Holds(const PipelineCondition& condition, const Item* item) const {
    const auto listed = [&](const std::string& field) {
      return std::find(condition.fields.begin(), condition.fields.end(), field) !=
             condition.fields.end();
    };
    switch (condition.kind) {
      case PipelineCondition::Kind::kLogSource:
        return rule_.logsource.Has(condition.logsource);
      case PipelineCondition::Kind::kHasField:
        return AnyItem([&](const Item& one) { return one.field == condition.text; });
      case PipelineCondition::Kind::kHasItem:
        return AnyItem([&](const Item& one) {
          return one.field == condition.text &&
                 std::any_of(one.values.begin(), one.values.end(),
                             [&](const Scalar& value) { return value.text == condition.value; });
        });
      case PipelineCondition::Kind::kApplied:
        return applied_.contains(condition.text);
      case PipelineCondition::Kind::kTag:
        return std::find(rule_.tags.begin(), rule_.tags.end(), condition.text) != rule_.tags.end();
      case PipelineCondition::Kind::kTaxonomy:
        return (rule_.taxonomy.empty() ? "sigma" : rule_.taxonomy) == condition.text;
      case PipelineCondition::Kind::kIsRule:
        return rule_.kind == RuleKind::kDetection;
      case PipelineCondition::Kind::kIncludeFields:
        return item != nullptr && listed(item->field);
      case PipelineCondition::Kind::kExcludeFields:
        return item != nullptr && !listed(item->field);
      case PipelineCondition::Kind::kMatchString:
        return item != nullptr &&
               std::any_of(item->values.begin(), item->values.end(), [&](const Scalar& value) {
                 return value.kind == Scalar::Kind::kText &&
                        RE2::PartialMatch(value.text, condition.text);
               });
    }
    return false;
  }

  bool Holds(const PipelineConditions& conditions, const Item* item) const {
    if (conditions.all.empty()) {
      return true;
    }
    const auto holds = [&](const PipelineCondition& one) { return Holds(one, item); };
    const bool result = conditions.any
                            ? std::any_of(conditions.all.begin(), conditions.all.end(), holds)
                            : std::all_of(conditions.all.begin(), conditions.all.end(), holds);
    return result != conditions.negated;
  }

  Status Walk(const Transformation& step, Block& block, bool& applied) {
    for (Block& inner : block.blocks) {
      RINGFENCE_TRY(Walk(step, inner, applied));
    }
    if (block.kind != Block::Kind::kItem || !Holds(step.item_conditions, &block.item) ||
        !Holds(step.field_conditions, &block.item)) {
      return {};
    }
    return Change(step, block, applied);
  }

  Status Change(const Transformation& step, Block& block, bool& applied) {
    Item& item = block.item;
    if (step.kind == Kind::kItemFailure) {
      return Error{Code::kFailedPrecondition, step.text, {}, {}};
    }
    if (step.kind == Kind::kReplaceString || step.kind == Kind::kMapString) {
      ChangeValues(step, item, applied);
      return {};
    }
    if (item.field.empty() && step.kind != Kind::kDropItem) {
      return {};
    }
    if (step.kind == Kind::kFieldMapping) {
      MapField(step, block, applied);
    } else if (step.kind == Kind::kFieldPrefixMapping) {
      MapPrefix(step, item, applied);
    } else {
      applied = true;
      if (step.kind == Kind::kFieldPrefix) {
        item.field = step.text + item.field;
      } else if (step.kind == Kind::kFieldSuffix) {
        item.field += step.text;
      } else {
        block = Block{};  // an empty "all of": taken out by DropEmpty
      }
    }
    return {};
  }

  static void ChangeValues(const Transformation& step, Item& item, bool& applied) {
    for (Scalar& value : item.values) {
      if (value.kind != Scalar::Kind::kText) {
        continue;
      }
      if (step.kind == Kind::kReplaceString) {
        applied |= RE2::GlobalReplace(&value.text, step.text, step.replacement) > 0;
      } else if (const auto found = step.mapping.find(value.text); found != step.mapping.end()) {
        value.text = found->second.front();
        applied = true;
      }
    }
  }

  static void MapField(const Transformation& step, Block& block, bool& applied) {
    for (Scalar& value : block.item.values) {  // a field that is referred to is one too
      const auto& modifiers = block.item.modifiers;
      if (std::find(modifiers.begin(), modifiers.end(), "fieldref") != modifiers.end()) {
        if (const auto to = step.mapping.find(value.text); to != step.mapping.end()) {
          value.text = to->second.front();
        }
      }
    }
    const auto found = step.mapping.find(block.item.field);
    if (found == step.mapping.end()) {
      return;
    }
    applied = true;
    if (found->second.size() == 1) {
      block.item.field = found->second.front();
      return;
    }
    Block any;  // several fields: any of them
    any.kind = Block::Kind::kAny;
    for (const std::string& field : found->second) {
      any.blocks.push_back(block);
      any.blocks.back().item.field = field;
    }
    block = std::move(any);
  }

  static void MapPrefix(const Transformation& step, Item& item, bool& applied) {
    for (const auto& [prefix, to] : step.mapping) {
      if (item.field.starts_with(prefix)) {
        item.field = to.front() + item.field.substr(prefix.size());
        applied = true;
        return;
      }
    }
  }

  static bool Prune(Block& block) {  // whether nothing is left
    if (block.kind == Block::Kind::kItem) {
      return false;
    }
    std::erase_if(block.blocks, [](Block& inner) { return Prune(inner); });
    return block.blocks.empty();
  }

  Status DropEmpty(const Transformation& step) {
    if (step.kind != Kind::kDropItem) {
      return {};
    }
    for (Selection& selection : rule_.detection.selections) {
      if (Prune(selection.block)) {
        return Error{Code::kFailedPrecondition,
                     "drop_detection_item leaves nothing of the selection " + selection.name,
                     {},
                     {}};
      }
    }
    return {};
  }

  static void FillIn(std::string_view name, const std::string& value, std::string& text) {
    for (std::size_t at = text.find(name); at != std::string::npos;
         at = text.find(name, at + value.size())) {
      text.replace(at, name.size(), value);
    }
  }

  void AddCondition(const Transformation& step) {
    Selection selection;
    selection.name = "_added_" + std::to_string(++added_);
    for (const Item& item : step.conditions) {
      Block block;
      block.kind = Block::Kind::kItem;
      block.item = item;
      for (Scalar& value : block.item.values) {
        if (step.templated && value.kind == Scalar::Kind::kText) {
          FillIn("$category", rule_.logsource.category, value.text);
          FillIn("$product", rule_.logsource.product, value.text);
          FillIn("$service", rule_.logsource.service, value.text);
        }
      }
      selection.block.blocks.push_back(std::move(block));
    }
    for (std::string& condition : rule_.detection.conditions) {
      condition = (step.negated ? "not " : "") + selection.name + " and (" + condition + ")";
    }
    rule_.detection.selections.push_back(std::move(selection));
  }

  Rule& rule_;
  Placeholders& placeholders_;
  std::set<std::string> applied_;
  int added_ = 0;
};

}  // namespace

Status Apply(const std::vector<Pipeline>& pipelines, Rule& rule, Placeholders& placeholders) {
  std::vector<const Pipeline*> order;
  for (const Pipeline& pipeline : pipelines) {
    order.push_back(&pipeline);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Pipeline* a, const Pipeline* b) { return a->priority < b->priority; });
  if (!rule.taxonomy.empty() && rule.taxonomy != "sigma") {
    const bool known = std::any_of(order.begin(), order.end(), [&](const Pipeline* one) {
      return std::find(one->taxonomies.begin(), one->taxonomies.end(), rule.taxonomy) !=
             one->taxonomies.end();
    });
    if (!known) {
      return Error{Code::kFailedPrecondition,
                   "no pipeline turns the taxonomy \"" + rule.taxonomy + "\" into ours",
                   "give one that lists it under taxonomies",
                   {}};
    }
  }
  Run run(rule, placeholders);
  for (const Pipeline* pipeline : order) {
    for (const Transformation& step : pipeline->transformations) {
      RINGFENCE_TRY(run.Apply(*pipeline, step));
    }
  }
  return {};
}

}  // namespace ringfence::sigma

#include <algorithm>

#include "cedar/json.h"
#include "cedar/policy_json.h"
#include "cedar/policy_json_ops.h"

namespace ringfence::cedar {
namespace {

template <std::size_t N>
const NamedOp* ByOp(const std::array<NamedOp, N>& table, Op op) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const NamedOp& entry) { return entry.op == op; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

Json ToJson(const Expr& expr) {
  const auto wrap = [](std::string_view name, Json body) {
    return JsonObject{{name, std::move(body)}};
  };
  const auto all = [&] {
    JsonArray array;
    for (const Expr* arg : expr.args) {
      array.push_back(ToJson(*arg));
    }
    return array;
  };
  if (const NamedOp* op = ByOp(kBinary, expr.op)) {
    return wrap(op->name,
                JsonObject{{"left", ToJson(*expr.args[0])}, {"right", ToJson(*expr.args[1])}});
  }
  if (const NamedOp* op = ByOp(kUnary, expr.op)) {
    return wrap(op->name, JsonObject{{"arg", ToJson(*expr.args[0])}});
  }
  if (expr.op == Op::kLiteral) {
    return wrap("Value", ToJson(expr.value));
  }
  if (expr.op == Op::kVar) {
    return wrap("Var", Json(std::string(Name(expr.var))));
  }
  if (expr.op == Op::kSlot) {
    return wrap("Slot", Json(std::string(Name(expr.slot))));
  }
  if (expr.op == Op::kIf) {
    return wrap("if-then-else", JsonObject{{"if", ToJson(*expr.args[0])},
                                           {"then", ToJson(*expr.args[1])},
                                           {"else", ToJson(*expr.args[2])}});
  }
  if (expr.op == Op::kSet) {
    return wrap("Set", all());
  }
  if (expr.op == Op::kCall) {
    return wrap(expr.text, all());
  }
  if (expr.op == Op::kRecord) {
    JsonObject record;
    for (std::size_t i = 0; i < expr.args.size(); ++i) {
      record.emplace(expr.keys[i], ToJson(*expr.args[i]));
    }
    return wrap("Record", std::move(record));
  }
  JsonObject body{{"left", ToJson(*expr.args[0])}};
  if (expr.op == Op::kLike) {
    JsonArray pattern;
    for (const PatternPart& part : expr.pattern) {
      std::string text;
      std::string bad;
      const std::string quoted = ToText(Pattern{part});
      (void)Unescape(quoted == "\"\\*\"" ? "*" : quoted.substr(1, quoted.size() - 2), text, bad);
      pattern.push_back(part.star ? Json("Wildcard") : Json(JsonObject{{"Literal", text}}));
    }
    body.emplace("pattern", std::move(pattern));
    return wrap("like", std::move(body));
  }
  if (expr.op == Op::kIs) {
    body.emplace("entity_type", expr.text);
    if (expr.args.size() > 1) {
      body.emplace("in", ToJson(*expr.args[1]));
    }
    return wrap("is", std::move(body));
  }
  if (expr.op == Op::kHasPath) {
    body.emplace("attr", JsonArray(expr.keys.begin(), expr.keys.end()));
    return wrap("has", std::move(body));
  }
  body.emplace("attr", expr.text);
  return wrap(expr.op == Op::kGetAttribute ? "." : "has", std::move(body));
}

namespace {

void AddReference(JsonObject& out, Slot slot, const ScopeClause& clause) {
  if (clause.slot) {
    out.emplace("slot", std::string(Name(slot)));
  } else {
    out.emplace("entity", ToJson(clause.entity));
  }
}

Json ScopeToJson(Slot slot, const ScopeClause& clause) {
  using Kind = ScopeClause::Kind;
  JsonObject out;
  switch (clause.kind) {
    case Kind::kAny:
      out.emplace("op", "All");
      break;
    case Kind::kEqual:
    case Kind::kIn:
      out.emplace("op", clause.kind == Kind::kEqual ? "==" : "in");
      AddReference(out, slot, clause);
      break;
    case Kind::kIs:
    case Kind::kIsIn:
      out.emplace("op", "is");
      out.emplace("entity_type", clause.type);
      if (clause.kind == Kind::kIsIn) {
        JsonObject in;
        AddReference(in, slot, clause);
        out.emplace("in", std::move(in));
      }
      break;
  }
  return out;
}

Json ActionToJson(const ActionClause& clause) {
  using Kind = ActionClause::Kind;
  if (clause.kind == Kind::kAny) {
    return JsonObject{{"op", "All"}};
  }
  JsonObject out{{"op", clause.kind == Kind::kEqual ? "==" : "in"}};
  if (clause.kind != Kind::kInList) {
    out.emplace("entity", ToJson(clause.actions.front()));
    return out;
  }
  JsonArray list;
  for (const EntityUid& uid : clause.actions) {
    list.push_back(ToJson(uid));
  }
  out.emplace("entities", std::move(list));
  return out;
}

}  // namespace

Json ToJson(const PolicyBody& body) {
  JsonArray conditions;
  for (const Condition& condition : body.conditions) {
    conditions.push_back(JsonObject{{"kind", condition.when ? "when" : "unless"},
                                    {"body", ToJson(*condition.body)}});
  }
  JsonObject out{{"effect", body.effect == Effect::kPermit ? "permit" : "forbid"},
                 {"principal", ScopeToJson(Slot::kPrincipal, body.principal)},
                 {"action", ActionToJson(body.action)},
                 {"resource", ScopeToJson(Slot::kResource, body.resource)},
                 {"conditions", std::move(conditions)}};
  if (!body.annotations.empty()) {
    JsonObject annotations;
    for (const Annotation& annotation : body.annotations) {
      annotations.emplace(annotation.name,
                          annotation.has_value ? Json(annotation.value) : Json(nullptr));
    }
    out.emplace("annotations", std::move(annotations));
  }
  return out;
}

Json ToJson(const PolicySet& policies) {
  JsonObject statics;
  JsonObject templates;
  JsonArray links;
  for (const auto& body : policies.templates()) {
    templates.emplace(body->id, ToJson(*body));
  }
  for (const Policy& policy : policies.policies()) {
    if (!policy.body->is_template()) {
      statics.emplace(policy.id, ToJson(*policy.body));
      continue;
    }
    JsonObject values;
    for (const auto& [slot, uid] : policy.slots) {
      values.emplace(std::string(Name(slot)), JsonObject{{"__entity", ToJson(uid)}});
    }
    links.push_back(JsonObject{
        {"templateId", policy.body->id}, {"newId", policy.id}, {"values", std::move(values)}});
  }
  return JsonObject{{"staticPolicies", std::move(statics)},
                    {"templates", std::move(templates)},
                    {"templateLinks", std::move(links)}};
}

}  // namespace ringfence::cedar

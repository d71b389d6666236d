#include "cedar/validator.h"

#include <algorithm>
#include <functional>

#include "base/closest.h"
#include "cedar/typechecker.h"

namespace ringfence::cedar {
namespace {

void Walk(const Expr& expr, const std::function<void(const Expr&)>& visit) {
  visit(expr);
  for (const Expr* arg : expr.args) {
    Walk(*arg, visit);
  }
}

// The types that are the given one or may be in it.
std::set<std::string> TypesIn(const Schema& schema, const std::string& type) {
  const EntityTypeInfo* info = schema.Find(type);
  if (info == nullptr) {
    return {};
  }
  std::set<std::string> out = info->descendants;
  out.insert(type);
  return out;
}

class PolicyValidator {
 public:
  PolicyValidator(const Schema& schema, ValidationMode mode, ValidationResult& result)
      : schema_(schema), mode_(mode), result_(result) {}

  void CheckBody(const PolicyBody& body) {
    CheckNames(body);
    CheckApplication(body.id, body, body.principal, body.resource);
    Typecheck(body);
    CheckConfusables(body);
  }

  void CheckLink(const Policy& policy) {
    for (const auto& [slot, uid] : policy.slots) {
      CheckType(policy.id, policy.body->begin, uid.type);
    }
    const auto fill = [&](ScopeClause clause, Slot slot) {
      if (clause.slot) {
        clause.slot = false;
        clause.entity = policy.slots.at(slot);
      }
      return clause;
    };
    CheckApplication(policy.id, *policy.body, fill(policy.body->principal, Slot::kPrincipal),
                     fill(policy.body->resource, Slot::kResource));
  }

 private:
  void Wrong(const std::string& policy, std::size_t offset, std::string message) {
    Finding finding{policy, offset, std::move(message)};
    auto& errors = result_.errors;
    if (std::find(errors.begin(), errors.end(), finding) == errors.end()) {
      errors.push_back(std::move(finding));
    }
  }

  void CheckType(const std::string& policy, std::size_t offset, const std::string& type) {
    if (IsActionType(type) || schema_.Find(type) != nullptr) {
      return;
    }
    std::vector<std::string_view> names;
    for (const auto& [name, info] : schema_.entities) {
      names.push_back(name);
    }
    const auto near = Closest(type, names);
    Wrong(policy, offset,
          "the schema has no entity type " + type + (near ? "; did you mean " + *near + "?" : ""));
  }

  void CheckUid(const std::string& policy, std::size_t offset, const EntityUid& uid) {
    CheckType(policy, offset, uid.type);
    if (IsActionType(uid.type)) {
      if (schema_.FindAction(uid) == nullptr) {
        Wrong(policy, offset, "the schema has no action " + ToText(uid));
      }
    } else if (!EnumAllows(schema_, uid)) {
      Wrong(policy, offset, ToText(uid) + " is not in its type's enumeration");
    }
  }

  void CheckNames(const PolicyBody& body) {
    Walk(*body.condition, [&](const Expr& expr) {
      if (expr.op == Op::kLiteral && expr.value.is(Value::Kind::kEntity)) {
        CheckUid(body.id, expr.offset, expr.value.entity());
      } else if (expr.op == Op::kIs) {
        CheckType(body.id, expr.offset, expr.text);
      }
    });
  }

  std::set<std::string> AllTypes() const {
    std::set<std::string> out;
    for (const auto& [name, info] : schema_.entities) {
      out.insert(name);
    }
    return out;
  }

  std::set<std::string> TypesFor(const ScopeClause& clause) const {
    using Kind = ScopeClause::Kind;
    const auto known = [&](const std::string& type) {
      const bool is = IsActionType(type) || schema_.Find(type) != nullptr;
      return is ? std::set<std::string>{type} : std::set<std::string>{};
    };
    switch (clause.kind) {
      case Kind::kAny:
        return AllTypes();
      case Kind::kEqual:
        return clause.slot ? AllTypes() : std::set<std::string>{clause.entity.type};
      case Kind::kIn:
        return clause.slot ? AllTypes() : TypesIn(schema_, clause.entity.type);
      case Kind::kIs:
        return known(clause.type);
      case Kind::kIsIn:
        if (clause.slot) {
          return known(clause.type);
        }
        return TypesIn(schema_, clause.entity.type).contains(clause.type)
                   ? std::set<std::string>{clause.type}
                   : std::set<std::string>{};
    }
    return {};
  }

  std::vector<const ActionInfo*> ActionsFor(const ActionClause& clause) const {
    std::vector<const ActionInfo*> out;
    if (clause.kind == ActionClause::Kind::kAny) {
      for (const auto& [uid, info] : schema_.actions) {
        out.push_back(&info);
      }
      return out;
    }
    for (const EntityUid& uid : clause.actions) {
      const ActionInfo* info = schema_.FindAction(uid);
      if (info == nullptr) {
        return {};
      }
      out.push_back(info);
      if (clause.kind != ActionClause::Kind::kEqual) {
        for (const EntityUid& below : info->descendants) {
          out.push_back(schema_.FindAction(below));
        }
      }
    }
    return out;
  }

  // Some action of the scope must apply to some principal and resource of the scope.
  void CheckApplication(const std::string& id, const PolicyBody& body, const ScopeClause& principal,
                        const ScopeClause& resource) {
    const std::set<std::string> principals = TypesFor(principal);
    const std::set<std::string> resources = TypesFor(resource);
    const auto meet = [](const std::set<std::string>& a, const std::set<std::string>& b) {
      return std::any_of(a.begin(), a.end(), [&](const auto& type) { return b.contains(type); });
    };
    for (const ActionInfo* action : ActionsFor(body.action)) {
      if (meet(action->principals, principals) && meet(action->resources, resources)) {
        return;
      }
    }
    Wrong(id, body.begin,
          "no action of the scope applies to a principal and a resource of the scope");
  }

  std::vector<std::optional<std::string>> SlotTypes(const ScopeClause& clause,
                                                    const std::string& type) const {
    if (!clause.slot) {
      return {std::nullopt};
    }
    std::vector<std::optional<std::string>> out = {type};
    if (clause.kind != ScopeClause::Kind::kEqual) {
      for (const auto& [name, info] : schema_.entities) {
        if (info.descendants.contains(type) && name != type) {
          out.emplace_back(name);
        }
      }
    }
    return out;
  }

  void Typecheck(const PolicyBody& body) {
    bool possible = false;
    for (const auto& [uid, action] : schema_.actions) {
      for (const std::string& principal : action.principals) {
        for (const std::string& resource : action.resources) {
          for (const auto& principal_slot : SlotTypes(body.principal, principal)) {
            for (const auto& resource_slot : SlotTypes(body.resource, resource)) {
              const RequestEnv env{principal, &action, resource, principal_slot, resource_slot};
              Typechecker checker(schema_, env, mode_, body.id, result_.errors);
              possible = !checker.AlwaysFalse(*body.condition) || possible;
            }
          }
        }
      }
    }
    if (!possible) {
      result_.warnings.push_back({body.id, body.begin, "this policy can never apply"});
    }
  }

  // Text that looks like other text, or like nothing.
  void CheckConfusables(const PolicyBody& body) {
    const auto check = [&](std::size_t offset, const std::string& text) {
      for (std::size_t i = 0; i + 2 < text.size(); ++i) {
        const auto a = static_cast<unsigned char>(text[i]);
        const auto b = static_cast<unsigned char>(text[i + 1]);
        const auto c = static_cast<unsigned char>(text[i + 2]);
        // U+200E, U+200F, U+202A..U+202E, U+2066..U+2069: they reorder what is shown.
        if (a == 0xe2 && ((b == 0x80 && (c == 0x8e || c == 0x8f || (c >= 0xaa && c <= 0xae))) ||
                          (b == 0x81 && c >= 0xa6 && c <= 0xa9))) {
          result_.warnings.push_back(
              {body.id, offset, "text with characters that change the direction of writing"});
          return;
        }
      }
    };
    Walk(*body.condition, [&](const Expr& expr) {
      if (expr.op == Op::kLiteral && expr.value.is(Value::Kind::kString)) {
        check(expr.offset, expr.value.string());
      } else if (expr.op == Op::kLiteral && expr.value.is(Value::Kind::kEntity)) {
        check(expr.offset, expr.value.entity().id);
      }
    });
  }

  const Schema& schema_;
  ValidationMode mode_;
  ValidationResult& result_;
};

}  // namespace

ValidationResult Validate(const PolicySet& policies, const Schema& schema, ValidationMode mode) {
  ValidationResult result;
  PolicyValidator validator(schema, mode, result);
  for (const auto& body : policies.templates()) {
    validator.CheckBody(*body);
  }
  for (const Policy& policy : policies.policies()) {
    if (policy.body->is_template()) {
      validator.CheckLink(policy);
    } else {
      validator.CheckBody(*policy.body);
    }
  }
  return result;
}

}  // namespace ringfence::cedar

#include <algorithm>
#include <array>
#include <atomic>
#include <unordered_map>

#include "cedar/engine_data.h"

namespace ringfence::cedar {
namespace {

class Compiler {
 public:
  explicit Compiler(Engine::Data& engine)
      : engine_(engine), compactor_(engine.table, engine.bump) {}

  void Run() {
    for (const Policy& policy : engine_.set.policies()) {
      Add(policy);
    }
    Index();
  }

 private:
  void Add(const Policy& policy) {
    const PolicyBody& body = *policy.body;
    CompiledPolicy out;
    out.effect = body.effect;
    out.principal = Test(body.principal, Slot::kPrincipal, policy.slots);
    out.resource = Test(body.resource, Slot::kResource, policy.slots);
    out.action = body.action.kind;
    out.actions = static_cast<std::uint32_t>(engine_.actions.size());
    for (const EntityUid& uid : body.action.actions) {
      engine_.actions.push_back(compactor_.Entity(uid));
    }
    out.action_count = static_cast<std::uint32_t>(body.action.actions.size());
    std::vector<CompiledCondition> conditions;
    for (const Condition& condition : body.conditions) {
      const std::uint32_t node = Emit(*condition.body);
      const Compact& value = engine_.nodes[node].value;
      const bool certain = engine_.nodes[node].op == Op::kLiteral && value.is(Compact::Kind::kBool);
      if (!certain || (value.number != 0) != condition.when) {  // else it holds always
        conditions.push_back({node, condition.when});
      }
    }
    out.conditions = static_cast<std::uint32_t>(engine_.conditions.size());
    out.condition_count = static_cast<std::uint32_t>(conditions.size());
    engine_.conditions.insert(engine_.conditions.end(), conditions.begin(), conditions.end());
    engine_.policies.push_back(out);
  }

  ScopeTest Test(const ScopeClause& clause, Slot slot, const SlotValues& slots) {
    using Kind = ScopeClause::Kind;
    ScopeTest out;
    out.kind = clause.kind;
    if (clause.kind == Kind::kIs || clause.kind == Kind::kIsIn) {
      out.type = engine_.table.AddType(clause.type, engine_.bump);
    }
    if (clause.kind != Kind::kAny && clause.kind != Kind::kIs) {
      out.entity = compactor_.Entity(clause.slot ? slots.at(slot) : clause.entity);
    }
    return out;
  }

  std::uint32_t Push(Node node, const std::vector<std::uint32_t>& args) {
    node.args = static_cast<std::uint32_t>(engine_.args.size());
    node.count = static_cast<std::uint32_t>(args.size());
    engine_.args.insert(engine_.args.end(), args.begin(), args.end());
    engine_.nodes.push_back(node);
    return static_cast<std::uint32_t>(engine_.nodes.size() - 1);
  }

  std::uint32_t Emit(const Expr& expr) {
    Node node;
    node.op = expr.op;
    node.var = expr.var;
    if (Constant(expr)) {
      // Nothing here depends on the request, so it is worked out now; an error stays one.
      static const Request kNobody;
      static const Entities kNothing;
      const auto value = Evaluate(expr, kNobody, kNothing);
      node.op = Op::kLiteral;
      node.value = value.has_value() ? compactor_.Of(*value) : Compact();
      return Push(node, {});
    }
    std::vector<std::uint32_t> order(expr.args.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    if (expr.op == Op::kRecord) {
      std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return NameLess(expr.keys[a], expr.keys[b]);
      });
      auto* keys = engine_.bump.Array<std::string_view>(expr.keys.size());
      for (std::size_t i = 0; i < order.size(); ++i) {
        new (&keys[i]) std::string_view(engine_.bump.Copy(expr.keys[order[i]]));
      }
      node.keys = keys;
    }
    if (expr.op == Op::kHasPath) {
      auto* keys = engine_.bump.Array<std::string_view>(expr.keys.size());
      for (std::size_t i = 0; i < expr.keys.size(); ++i) {
        new (&keys[i]) std::string_view(engine_.bump.Copy(expr.keys[i]));
      }
      node.keys = keys;
      node.key_count = static_cast<std::uint32_t>(expr.keys.size());
    }
    std::vector<std::uint32_t> args;
    args.reserve(order.size());
    for (const std::uint32_t index : order) {
      args.push_back(Emit(*expr.args[index]));
    }
    node.text = engine_.bump.Copy(expr.text);
    if (expr.op == Op::kIs) {
      node.type = engine_.table.AddType(expr.text, engine_.bump);
    }
    if (expr.op == Op::kLike) {
      node.pattern = &expr.pattern;  // lives in the policy set, which the engine keeps
    }
    if (expr.op == Op::kCall) {
      const ExtensionFunction* function = FindExtensionFunction(expr.text);
      node.function = static_cast<std::uint32_t>(function - ExtensionFunctions().data());
    }
    return Push(node, args);
  }

  // Independent of request and entities. `in`, attributes and tags look at entities.
  static bool Constant(const Expr& expr) {
    constexpr std::array kDepends = {Op::kVar,          Op::kSlot,         Op::kIn,
                                     Op::kGetTag,       Op::kHasTag,       Op::kIs,
                                     Op::kGetAttribute, Op::kHasAttribute, Op::kHasPath};
    return std::find(kDepends.begin(), kDepends.end(), expr.op) == kDepends.end() &&
           std::all_of(expr.args.begin(), expr.args.end(),
                       [](const Expr* arg) { return Constant(*arg); });
  }

  static Buckets Sorted(std::vector<std::pair<std::uint32_t, std::uint32_t>>& entries) {
    std::sort(entries.begin(), entries.end());
    entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
    Buckets out;
    if (entries.empty()) {
      return out;
    }
    out.begin.assign(entries.back().first + 2, 0);
    for (const auto& [key, policy] : entries) {
      ++out.begin[key + 1];
      out.policies.push_back(policy);
    }
    for (std::size_t i = 1; i < out.begin.size(); ++i) {
      out.begin[i] += out.begin[i - 1];
    }
    return out;
  }

  // Each policy goes under the rarest thing that its scope asks for.
  void Index() {
    std::unordered_map<std::uint64_t, std::uint32_t> counts;
    const auto key = [](std::uint64_t kind, std::uint32_t number) { return kind << 32U | number; };
    const auto key_of = [&](std::uint64_t kind, const ScopeTest& test) {
      return test.entity != kNone ? key(kind, test.entity) : key(kind + 1, test.type);
    };
    for (const CompiledPolicy& policy : engine_.policies) {
      ++counts[key_of(0, policy.principal)];
      ++counts[key_of(2, policy.resource)];
    }
    using Entries = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
    Entries principals;
    Entries resources;
    Entries principal_types;
    Entries resource_types;
    Entries actions;
    for (std::uint32_t i = 0; i < engine_.policies.size(); ++i) {
      const CompiledPolicy& policy = engine_.policies[i];
      const bool by_principal = policy.principal.kind != ScopeClause::Kind::kAny;
      const bool by_resource = policy.resource.kind != ScopeClause::Kind::kAny;
      const bool principal_rarer =
          counts[key_of(0, policy.principal)] <= counts[key_of(2, policy.resource)];
      if (by_principal && (!by_resource || principal_rarer)) {
        const ScopeTest& test = policy.principal;
        test.entity != kNone ? principals.emplace_back(test.entity, i)
                             : principal_types.emplace_back(test.type, i);
      } else if (by_resource) {
        const ScopeTest& test = policy.resource;
        test.entity != kNone ? resources.emplace_back(test.entity, i)
                             : resource_types.emplace_back(test.type, i);
      } else if (policy.action != ActionClause::Kind::kAny) {
        for (std::uint32_t k = 0; k < policy.action_count; ++k) {
          actions.emplace_back(engine_.actions[policy.actions + k], i);
        }
      } else {
        engine_.unscoped.push_back(i);
      }
    }
    engine_.by_principal = Sorted(principals);
    engine_.by_resource = Sorted(resources);
    engine_.by_principal_type = Sorted(principal_types);
    engine_.by_resource_type = Sorted(resource_types);
    engine_.by_action = Sorted(actions);
  }

  Engine::Data& engine_;
  Compactor compactor_;
};

}  // namespace

void Compile(Engine::Data& engine) {
  static std::atomic<std::uint64_t> generations{0};
  engine.generation = ++generations;
  Compiler(engine).Run();
}

}  // namespace ringfence::cedar

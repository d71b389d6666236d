#include <algorithm>
#include <array>
#include <atomic>
#include <unordered_map>

#include "cedar/engine_data.h"
#include "cedar/typechecker.h"

namespace ringfence::cedar {
namespace {

class Compiler {
 public:
  explicit Compiler(Engine::Data& engine)
      : engine_(engine), compactor_(engine.table, engine.bump, Compactor::Text::kCopied, &names_) {}

  void Run() {
    const std::vector<Policy>& policies = engine_.set.policies();
    std::vector<CompiledPolicy> scopes;
    scopes.reserve(policies.size());
    for (const Policy& policy : policies) {
      CompiledPolicy scope;
      scope.number = static_cast<std::uint32_t>(scopes.size());
      scope.effect = policy.body->effect;
      scope.principal = Test(policy.body->principal, Slot::kPrincipal, policy.slots);
      scope.resource = Test(policy.body->resource, Slot::kResource, policy.slots);
      scopes.push_back(scope);
    }
    // Compiled in the order of the index: what is tried together lies together.
    for (const Filed& filed : File(scopes)) {
      Add(filed, scopes[filed.number], *policies[filed.number].body);
    }
    for (std::size_t i = 0; i < kFilings; ++i) {
      Finish(engine_.index[i], entries_[i]);
    }
    for (std::size_t i = 0; i < engine_.nodes.size(); ++i) {
      Node& node = engine_.nodes[i];
      if (uses_[i] > 1 && node.op != Op::kLiteral && node.op != Op::kVar) {
        node.memo = engine_.memos++;
      }
    }
  }

 private:
  struct Filed {
    Filing filing = kByNothing;
    std::uint32_t key = 0;
    std::uint32_t number = 0;
    auto operator<=>(const Filed&) const = default;
  };
  struct Entry {
    std::uint32_t key = 0;
    Candidate candidate;
  };

  // Each policy goes under the rarest thing that its scope asks for.
  std::vector<Filed> File(const std::vector<CompiledPolicy>& scopes) const {
    std::unordered_map<std::uint64_t, std::uint32_t> counts;
    const auto filed = [](const ScopeTest& test, Filing entity, Filing type) {
      return test.entity != kNone ? Filed{entity, test.entity, 0} : Filed{type, test.type, 0};
    };
    const auto count = [&](const Filed& at) -> std::uint32_t& {
      return counts[std::uint64_t{at.filing} << 32U | at.key];
    };
    const auto by_principal = [&](const CompiledPolicy& scope) {
      return filed(scope.principal, kByPrincipal, kByPrincipalType);
    };
    const auto by_resource = [&](const CompiledPolicy& scope) {
      return filed(scope.resource, kByResource, kByResourceType);
    };
    for (const CompiledPolicy& scope : scopes) {
      ++count(by_principal(scope));
      ++count(by_resource(scope));
    }
    std::vector<Filed> out;
    out.reserve(scopes.size());
    for (const CompiledPolicy& scope : scopes) {
      const bool principal = scope.principal.kind != ScopeClause::Kind::kAny;
      const bool resource = scope.resource.kind != ScopeClause::Kind::kAny;
      const Filed first = by_principal(scope);
      const Filed second = by_resource(scope);
      Filed at;
      if (principal && (!resource || count(first) <= count(second))) {
        at = first;
      } else if (resource) {
        at = second;
      } else if (engine_.set.policies()[scope.number].body->action.kind !=
                 ActionClause::Kind::kAny) {
        at.filing = kByAction;
      }
      at.number = scope.number;
      out.push_back(at);
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  void Add(const Filed& filed, CompiledPolicy policy, const PolicyBody& body) {
    for (const Condition& condition : body.conditions) {
      std::uint32_t node = Emit(*condition.body);
      if (!condition.when) {
        node = Push({.op = Op::kNot}, {node}, "");
      }
      policy.condition =
          policy.condition == kNone ? node : Push({.op = Op::kAnd}, {policy.condition, node}, "");
    }
    if (policy.condition != kNone) {
      const Node& all = engine_.nodes[policy.condition];
      if (all.op == Op::kLiteral && all.value.is(Compact::Kind::kBool) && all.value.number != 0) {
        policy.condition = kNone;
      }
    }
    const auto index = static_cast<std::uint32_t>(engine_.policies.size());
    if (body.action.kind == ActionClause::Kind::kAny) {
      entries_[filed.filing].push_back({filed.key, {kNone, index}});
    }
    for (const EntityUid& uid : body.action.actions) {
      const std::uint32_t action = compactor_.Entity(uid);
      const bool below = body.action.kind != ActionClause::Kind::kEqual;
      entries_[filed.filing].push_back({filed.filing == kByAction ? action : filed.key,
                                        {below ? action | Candidate::kBelow : action, index}});
    }
    policy.repeated = body.action.actions.size() > 1;
    engine_.policies.push_back(policy);
  }

  static void Finish(Buckets& out, std::vector<Entry>& entries) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.key < b.key; });
    if (entries.empty()) {
      return;
    }
    out.begin.assign(entries.back().key + 2, 0);
    for (const Entry& entry : entries) {
      ++out.begin[entry.key + 1];
      out.candidates.push_back(entry.candidate);
    }
    for (std::size_t i = 1; i < out.begin.size(); ++i) {
      out.begin[i] += out.begin[i - 1];
    }
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

  // One node for all expressions that are the same, so that a request works each out once.
  std::uint32_t Push(Node node, const std::vector<std::uint32_t>& args, std::string key) {
    key += static_cast<char>(node.op);
    key += static_cast<char>(node.var);
    for (const std::uint32_t arg : args) {
      key += ',' + std::to_string(arg);
    }
    const auto [found, fresh] =
        known_.emplace(std::move(key), static_cast<std::uint32_t>(engine_.nodes.size()));
    if (fresh) {
      const bool listed = node.op == Op::kIf || node.op == Op::kSet || node.op == Op::kRecord ||
                          node.op == Op::kCall;
      if (listed) {
        node.first = static_cast<std::uint32_t>(engine_.args.size());
        node.second = static_cast<std::uint32_t>(args.size());
        engine_.args.insert(engine_.args.end(), args.begin(), args.end());
      } else {
        node.first = args.empty() ? kNone : args[0];
        node.second = args.size() < 2 ? kNone : args[1];
      }
      engine_.nodes.push_back(node);
      uses_.push_back(0);
    }
    ++uses_[found->second];
    return found->second;
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
      return Push(node, {}, "=" + ExprKey(expr));
    }
    std::string key = Quoted(expr.text);
    for (const std::string& name : expr.keys) {
      key += Quoted(name);
    }
    key += expr.op == Op::kLike ? ToText(expr.pattern) : std::string();
    std::vector<std::uint32_t> order(expr.args.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    if (expr.op == Op::kRecord) {
      std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return NameLess(expr.keys[a], expr.keys[b]);
      });
    }
    std::vector<std::uint32_t> args;
    args.reserve(order.size());
    for (const std::uint32_t index : order) {
      args.push_back(Emit(*expr.args[index]));
    }
    node.value = Extra(expr, order);
    return Push(node, args, std::move(key));
  }

  // What an operator needs besides its arguments.
  Compact Extra(const Expr& expr, const std::vector<std::uint32_t>& order) {
    const auto number = [](std::size_t value) {
      return Compact::Number(Compact::Kind::kLong, static_cast<std::int64_t>(value));
    };
    if (expr.op == Op::kIs) {
      return number(engine_.table.AddType(expr.text, engine_.bump));
    }
    if (expr.op == Op::kLike) {
      engine_.patterns.push_back(&expr.pattern);
      return number(engine_.patterns.size() - 1);
    }
    if (expr.op == Op::kCall) {
      return number(
          static_cast<std::size_t>(FindExtensionFunction(expr.text) - ExtensionFunctions().data()));
    }
    if (expr.op == Op::kRecord || expr.op == Op::kHasPath) {
      Compact out = number(engine_.names.size());
      out.size = static_cast<std::uint32_t>(expr.keys.size());
      for (std::size_t i = 0; i < expr.keys.size(); ++i) {
        engine_.names.push_back(
            engine_.bump.Copy(expr.keys[expr.op == Op::kRecord ? order[i] : i]));
      }
      return out;
    }
    return Compact::Text(engine_.bump.Copy(expr.text));
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

  Engine::Data& engine_;
  Compactor::NameMap names_;
  Compactor compactor_;
  std::array<std::vector<Entry>, kFilings> entries_;
  std::unordered_map<std::string, std::uint32_t> known_;
  std::vector<std::uint32_t> uses_;
};

}  // namespace

void Compile(Engine::Data& engine) {
  static std::atomic<std::uint64_t> generations{0};
  engine.generation = ++generations;
  Compiler(engine).Run();
}

}  // namespace ringfence::cedar

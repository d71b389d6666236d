#include <algorithm>
#include <array>
#include <atomic>
#include <tuple>
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
      leading_.push_back(Leading(*policy.body, scope));
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
    // What its condition compares with a constant first; kNone: nothing.
    std::uint32_t node = kNone;
    Op op = Op::kEqual;
    Compact constant = {};

    bool Together(const Entry& other) const {
      return key == other.key && candidate.action == other.candidate.action && node == other.node &&
             op == other.op;
    }
  };

  // What must hold, in the order in which it is looked at.
  static void Conjuncts(const Expr& expr, std::vector<const Expr*>& out) {
    if (expr.op == Op::kAnd) {
      Conjuncts(*expr.args[0], out);
      Conjuncts(*expr.args[1], out);
    } else {
      out.push_back(&expr);
    }
  }

  // Whether it is a test as scopes have them: then it cannot fail, and `test` is it.
  bool ScopeLike(const Expr& expr, Var& var, ScopeTest& test) {
    using Kind = ScopeClause::Kind;
    if ((expr.op != Op::kEqual && expr.op != Op::kIn && expr.op != Op::kIs) ||
        expr.args[0]->op != Op::kVar || expr.args[0]->var == Var::kContext) {
      return false;
    }
    const Expr* entity = expr.args.size() > 1 ? expr.args[1] : nullptr;
    if (entity != nullptr &&
        (entity->op != Op::kLiteral || !entity->value.is(Value::Kind::kEntity))) {
      return false;
    }
    var = expr.args[0]->var;
    test.kind = expr.op == Op::kEqual ? Kind::kEqual
                : expr.op == Op::kIn  ? Kind::kIn
                : entity == nullptr   ? Kind::kIs
                                      : Kind::kIsIn;
    test.type =
        expr.op == Op::kIs ? engine_.table.AddType(expr.text, engine_.bump) : std::uint32_t{kNone};
    test.entity =
        entity == nullptr ? std::uint32_t{kNone} : compactor_.Entity(entity->value.entity());
    return true;
  }

  // Moves what the conditions begin with into a scope that asks nothing of the same variable, so
  // that the index can use it. Returns what comes next, if that compares with a constant.
  const Expr* Leading(const PolicyBody& body, CompiledPolicy& scope) {
    std::vector<const Expr*> conjuncts;
    for (const Condition& condition : body.conditions) {
      if (!condition.when) {
        break;
      }
      Conjuncts(*condition.body, conjuncts);
    }
    for (const Expr* one : conjuncts) {
      Var var = Var::kContext;
      ScopeTest test;
      if (!ScopeLike(*one, var, test)) {
        const bool compares = one->op == Op::kEqual || one->op == Op::kLess ||
                              one->op == Op::kLessEqual || one->op == Op::kGreater ||
                              one->op == Op::kGreaterEqual;
        return compares && Constant(*one->args[1]) && !Constant(*one->args[0]) ? one : nullptr;
      }
      ScopeTest* of = var == Var::kPrincipal  ? &scope.principal
                      : var == Var::kResource ? &scope.resource
                                              : nullptr;
      if (of != nullptr && of->kind == ScopeClause::Kind::kAny) {
        *of = test;
      }
    }
    return nullptr;
  }

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
    Entry entry{filed.key, {kNone, index}};
    if (const Expr* leading = leading_[filed.number]) {
      const Compact constant = engine_.nodes[Emit(*leading->args[1])].value;
      if (leading->op == Op::kEqual ? !constant.is(Compact::Kind::kError)
                                    : constant.is(Compact::Kind::kLong)) {
        entry.node = Emit(*leading->args[0]);
        entry.op = leading->op;
        entry.constant = constant;
      }
    }
    if (body.action.kind == ActionClause::Kind::kAny) {
      entries_[filed.filing].push_back(entry);
    }
    for (const EntityUid& uid : body.action.actions) {
      const std::uint32_t action = compactor_.Entity(uid);
      const bool below = body.action.kind != ActionClause::Kind::kEqual;
      entry.key = filed.filing == kByAction ? action : filed.key;
      entry.candidate.action = below ? action | Candidate::kBelow : action;
      entries_[filed.filing].push_back(entry);
    }
    policy.repeated = body.action.actions.size() > 1;
    engine_.policies.push_back(policy);
  }

  void Finish(Buckets& out, std::vector<Entry>& entries) {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.key, a.node, a.op, a.candidate.action) <
             std::tie(b.key, b.node, b.op, b.candidate.action);
    });
    if (entries.empty()) {
      return;
    }
    out.begin.assign(entries.back().key + 2, 0);
    for (std::size_t i = 0; i < entries.size();) {
      std::size_t end = i + 1;
      while (end < entries.size() && entries[i].Together(entries[end])) {
        ++end;
      }
      const bool fan = entries[i].node != kNone && end - i >= kFanLeast;
      if (fan) {
        out.candidates.push_back(
            {entries[i].candidate.action,
             static_cast<std::uint32_t>(engine_.fans.size()) | Candidate::kFan});
        AddFan(std::span(entries).subspan(i, end - i));
      }
      for (std::size_t k = i; !fan && k < end; ++k) {
        out.candidates.push_back(entries[k].candidate);
      }
      out.begin[entries[i].key + 1] += static_cast<std::uint32_t>(fan ? 1 : end - i);
      i = end;
    }
    for (std::size_t i = 1; i < out.begin.size(); ++i) {
      out.begin[i] += out.begin[i - 1];
    }
  }

  void AddFan(std::span<Entry> entries) {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return Compare(a.constant, b.constant) < 0;
    });
    engine_.fans.push_back({entries.front().node, entries.front().op,
                            static_cast<std::uint32_t>(engine_.spokes.size()),
                            static_cast<std::uint32_t>(entries.size())});
    for (const Entry& entry : entries) {
      engine_.spokes.push_back({entry.constant, entry.candidate.policy});
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
  static constexpr std::size_t kFanLeast = 4;  // fewer are tried one by one
  std::array<std::vector<Entry>, kFilings> entries_;
  std::vector<const Expr*> leading_;  // of each policy, by its place in the set
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

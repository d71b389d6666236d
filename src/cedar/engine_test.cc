// Goal: the engine answers as the plain evaluator does, and does not allocate while it decides.
// Method: thousands of random policies, entities and requests to both; allocations are counted by
// operator new.

#include "cedar/engine.h"

#include <array>
#include <random>

#include "cedar/test_support.h"

namespace ringfence::cedar {

std::size_t Allocations();  // allocations_test.cc: of this thread so far

namespace {

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  std::size_t Below(std::size_t count) { return random_() % count; }
  template <std::size_t N>
  std::string Of(const std::array<std::string_view, N>& choices) {
    return std::string(choices[Below(N)]);
  }

  std::string Entity() {
    static constexpr std::array<std::string_view, 3> kTypes = {"User", "Group", "N::Doc"};
    return Of(kTypes) + "::\"" + std::to_string(Below(6)) + "\"";
  }
  std::string Action() { return "Action::\"" + std::to_string(Below(4)) + "\""; }
  std::string Name() {
    static constexpr std::array<std::string_view, 5> kNames = {"a", "b", "c", "if", "long name"};
    return Of(kNames);
  }
  std::string Atom() {
    static constexpr std::array<std::string_view, 19> kAtoms = {"true",
                                                                "false",
                                                                "0",
                                                                "1",
                                                                "-1",
                                                                "9223372036854775807",
                                                                "\"\"",
                                                                "\"x\"",
                                                                "principal",
                                                                "action",
                                                                "resource",
                                                                "context",
                                                                "ip(\"10.0.0.1\")",
                                                                "ip(\"::/0\")",
                                                                "decimal(\"1.5\")",
                                                                "datetime(\"2024-02-03\")",
                                                                "duration(\"1h\")",
                                                                "ip(\"bad\")",
                                                                "[]"};
    return Below(4) == 0 ? Entity() : Of(kAtoms);
  }

  std::string Expr(int depth) {
    if (depth == 0) {
      return Atom();
    }
    const auto e = [&] { return "(" + Expr(depth - 1) + ")"; };
    static constexpr std::array<std::string_view, 13> kOps = {
        "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "&&", "||", "in", "in"};
    static constexpr std::array<std::string_view, 5> kMethods = {"contains", "containsAll",
                                                                 "containsAny", "getTag", "hasTag"};
    static constexpr std::array<std::string_view, 6> kUnary = {
        "isIpv4", "isLoopback", "toTime", "toDate", "toHours", "isMulticast"};
    static constexpr std::array<std::string_view, 4> kBinary = {"isInRange", "offset",
                                                                "durationSince", "lessThan"};
    switch (Below(14)) {
      case 0:
        return "!" + e();
      case 1:
        return "if " + e() + " then " + e() + " else " + e();
      case 2:
        return "[" + Expr(depth - 1) + ", " + Expr(depth - 1) + "]";
      case 3:
        return "{\"" + Name() + "x\": " + Expr(depth - 1) + ", b: " + Expr(depth - 1) + "}";
      case 4:
        return e() + "[\"" + Name() + "\"]";
      case 5:
        return e() + " has \"" + Name() + "\"";
      case 6:
        return e() + " is " + (Below(2) == 0 ? "User" : "N::Doc") +
               (Below(2) == 0 ? " in " + e() : "");
      case 7:
        return e() + " like \"*" + Name() + "*\"";
      case 8:
        return e() + "." + Of(kMethods) + e();
      case 9:
        return e() + "." + Of(kUnary) + "()";
      case 10:
        return e() + "." + Of(kBinary) + e();
      case 11:
        return e() + ".isEmpty() || -" + e() + " < 0";
      default:
        return e() + " " + Of(kOps) + " " + e();
    }
  }

  std::string Scope(std::string_view variable) {
    switch (Below(6)) {
      case 0:
        return std::string(variable) + " == " + Entity();
      case 1:
        return std::string(variable) + " in " + Entity();
      case 2:
        return std::string(variable) + " is User";
      case 3:
        return std::string(variable) + " is N::Doc in " + Entity();
      default:
        return std::string(variable);
    }
  }

  std::string Policy() {
    std::string action = "action";
    switch (Below(5)) {
      case 0:
        action += " == " + Action();
        break;
      case 1:
        action += " in " + Action();
        break;
      case 2:
        action += " in [" + Action() + ", " + Action() + "]";
        break;
      default:
        break;
    }
    std::string out = Below(3) == 0 ? "forbid(" : "permit(";
    out += Scope("principal") + ", " + action + ", " + Scope("resource") + ")";
    for (std::size_t i = Below(3); i > 0; --i) {
      out += (Below(4) == 0 ? " unless { " : " when { ") + Expr(static_cast<int>(Below(4))) + " }";
    }
    return out + ";\n";
  }

  // Conditions that begin with what the index uses: tests as in scopes, then a comparison of one of
  // a few things with a constant.
  std::string AlikePolicy() {
    static constexpr std::array<std::string_view, 5> kThings = {
        "principal.a", "resource.b", "context.a", "context.b", "principal"};
    static constexpr std::array<std::string_view, 6> kOps = {"==", "<", "<=", ">", ">=", "!="};
    static constexpr std::array<std::string_view, 8> kConstants = {
        "0", "1", "2", "1 + 1", "\"a\"", "User::\"1\"", "true", "ip(\"bad\")"};
    std::string out = Below(3) == 0 ? "forbid(" : "permit(";
    out += (Below(3) == 0 ? Scope("principal") : "principal") + std::string(", action") +
           (Below(3) == 0 ? " in [" + Action() + ", " + Action() + "]" : "") +
           ", resource) when { ";
    for (std::size_t i = Below(3); i > 0; --i) {
      const std::string test = Scope(Below(2) == 0 ? "principal" : "resource");
      out += test.find(' ') == std::string::npos ? "" : test + " && ";
    }
    out += Of(kThings) + " " + Of(kOps) + " " + Of(kConstants);
    return out + (Below(3) == 0 ? " && (" + Expr(1) + ")" : "") + " };\n";
  }

  Value Data(int depth) {
    const auto uid = ParseEntityUid(Entity());
    switch (Below(depth == 0 ? 5 : 8)) {
      case 0:
        return Value::Bool(Below(2) == 0);
      case 1:
        return Value::Long(static_cast<std::int64_t>(Below(3)));
      case 2:
        return Value::String(Name());
      case 3:
        return Value::Entity(*uid);
      case 4:
        return Value::Extended({.type = Extension::kDuration, .number = 3'600'000});
      case 5:
        return Value::Set({Data(depth - 1), Data(depth - 1)});
      case 6:
        return Value::Record({{Name(), Data(depth - 1)}, {"b", Data(depth - 1)}});
      default:
        return Value::Set({});
    }
  }

  Entities Store() {
    std::vector<Entity_> list;
    for (const char* type : {"User", "Group", "N::Doc", "Action"}) {
      for (int id = 0; id < 5; ++id) {
        Entity_ entity{.uid = {type, std::to_string(id)}};
        for (std::size_t i = Below(4); i > 0; --i) {
          entity.attributes.emplace(Name(), Data(2));
        }
        if (Below(2) == 0) {
          entity.tags.emplace("x", Data(1));
        }
        for (std::size_t i = Below(3); i > 0; --i) {
          const int above = id + 1 + static_cast<int>(Below(3));
          entity.parents.push_back(
              {std::string(type) == "Action" ? "Action" : "Group", std::to_string(above)});
        }
        if (std::string(type) != "Group" || !entity.parents.empty() || Below(2) == 0) {
          list.push_back(std::move(entity));
        }
      }
    }
    return Entities::Make(std::move(list)).value();
  }

  Request Ask() {
    return {*ParseEntityUid(Entity()), *ParseEntityUid(Action()), *ParseEntityUid(Entity()),
            Value::Record({{Name(), Data(2)}, {Name(), Data(1)}})};
  }

 private:
  using Entity_ = cedar::Entity;
  std::mt19937 random_;
};

struct Totals {
  std::size_t errors = 0;
  std::size_t reasons = 0;
  std::size_t decisions = 0;
};

void AskBoth(Dice& dice, const std::string& text, Totals& totals) {
  const PolicySet policies = Policies(text);
  const Entities entities = dice.Store();
  const auto engine = Engine::Make(policies, EntityStore::Make(entities));
  Engine::Scratch scratch;
  for (int i = 0; i < 20; ++i) {
    const Request request = dice.Ask();
    const Response plain = IsAuthorized(policies, request, entities);
    const Response fast = engine->Answer(request, scratch);
    ASSERT_EQ(fast.decision, plain.decision);
    ASSERT_EQ(fast.reasons, plain.reasons);
    ASSERT_EQ(fast.errors.size(), plain.errors.size());
    for (std::size_t k = 0; k < plain.errors.size(); ++k) {
      ASSERT_EQ(fast.errors[k].policy, plain.errors[k].policy);
      ASSERT_EQ(fast.errors[k].message, plain.errors[k].message);
    }
    totals.errors += plain.errors.size();
    totals.reasons += plain.reasons.size();
    ++totals.decisions;
  }
}

TEST(Engine, AnswersAsThePlainEvaluatorDoes) {
  Totals totals;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    std::string text;
    for (int i = 0; i < 20; ++i) {
      text += dice.Policy();
    }
    ASSERT_NO_FATAL_FAILURE(AskBoth(dice, text, totals));
  }
  EXPECT_EQ(totals.decisions, 8000U);
  EXPECT_GT(totals.errors, 1000U);  // the dice do throw everything
  EXPECT_GT(totals.reasons, 1000U);
}

TEST(Engine, PoliciesThatBeginAlikeAreAnsweredTheSame) {
  Totals totals;
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    std::string text;
    for (int i = 0; i < 80; ++i) {
      text += dice.AlikePolicy();
    }
    ASSERT_NO_FATAL_FAILURE(AskBoth(dice, text, totals));
  }
  EXPECT_EQ(totals.decisions, 2000U);
  EXPECT_GT(totals.errors, 1000U);
  EXPECT_GT(totals.reasons, 1000U);
}

TEST(Engine, OneScratchServesManyEngines) {
  const auto store = EntityStore::Make({});
  const auto all = Engine::Make(Policies("permit(principal, action, resource);"), store);
  const Request request{{"User", "unknown"},
                        {"Action", "a"},
                        {"User", "unknown"},
                        Value::Record({{"a", Value::Entity({"Strange", "x"})}})};
  Engine::Scratch scratch;
  EXPECT_EQ(all->Decide(request, scratch).decision, Decision::kAllow);
  for (int i = 0; i < 50; ++i) {  // engines come and go, perhaps at the same address
    const auto some = Engine::Make(
        Policies(i % 2 == 0 ? "permit(principal == User::\"a\", action, resource);"
                            : "permit(principal, action, resource) when { principal == "
                              "resource && context.a is Strange };"),
        store);
    EXPECT_EQ(some->Decide(request, scratch).decision == Decision::kAllow, i % 2 == 1);
  }
}

TEST(Engine, DecidingAllocatesNothing) {
  const PolicySet policies = Policies(R"(
    permit(principal in Group::"g", action in [Action::"view", Action::"edit"], resource is Doc)
      when { resource.owner == principal && context.mfa && resource.labels.contains("x") &&
             [principal, resource].contains(resource) && {a: 1, b: principal}.b == principal &&
             context.from.isInRange(ip("10.0.0.0/8")) && resource.name like "*.txt" };
    forbid(principal, action, resource) unless { context.level >= 1 && principal has boss };
    permit(principal, action, resource) when { principal.nope };
  )");
  const Entities entities = EntitiesOf(R"([
    {"uid": {"type": "User", "id": "a"}, "attrs": {"boss": 1}, "parents": [{"type": "Group", "id": "g"}]},
    {"uid": {"type": "Doc", "id": "d"}, "attrs": {"name": "read me.txt", "labels": ["x", "y"],
      "owner": {"__entity": {"type": "User", "id": "a"}}}, "parents": []}])");
  const auto engine = Engine::Make(policies, EntityStore::Make(entities));
  const ExtensionValue from{.type = Extension::kIp, .ip = {.address = {10, 1, 2, 3}, .prefix = 32}};
  const Request request{{"User", "a"},
                        {"Action", "view"},
                        {"Doc", "d"},
                        Value::Record({{"mfa", Value::Bool(true)},
                                       {"level", Value::Long(2)},
                                       {"from", Value::Extended(from)}})};
  Engine::Scratch scratch;
  (void)engine->Decide(request, scratch);
  const std::size_t before = Allocations();
  Engine::Outcome outcome;
  for (int i = 0; i < 1000; ++i) {
    outcome = engine->Decide(request, scratch);
  }
  EXPECT_EQ(Allocations(), before);
  EXPECT_EQ(outcome.decision, Decision::kAllow);
  ASSERT_EQ(outcome.reasons.size(), 1U);
  ASSERT_EQ(outcome.errors.size(), 1U);
  EXPECT_EQ(outcome.errors[0], 2U);
}

}  // namespace
}  // namespace ringfence::cedar

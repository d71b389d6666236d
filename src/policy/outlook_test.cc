// Goal: who-can and what-can agree with `can` on every point: yes is yes and no is no in every
// context, and "if" is exactly the condition that it shows.
// Method: small policies with conditions of every kind; every principal, action and tenant in every
// one of a set of contexts, with nothing known of them beforehand and with each member known.

#include "policy/outlook.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/query.h"
#include "policy/roles.h"
#include "policy/rulebook.h"

namespace ringfence::policy {
namespace {

using Answer = cedar::Outlook::Answer;

constexpr std::string_view kFolder = R"(
apiVersion: ringfence.dev/v1
kind: Tenant
metadata: {name: acme}
spec: {}
---
apiVersion: ringfence.dev/v1
kind: Tenant
metadata: {name: acme/lab}
spec: {}
---
apiVersion: ringfence.dev/v1
kind: Principal
metadata: {name: root}
spec: {kind: user}
---
apiVersion: ringfence.dev/v1
kind: Principal
metadata: {name: ann}
spec: {kind: user}
---
apiVersion: ringfence.dev/v1
kind: Principal
metadata: {name: robot}
spec: {kind: service}
---
apiVersion: ringfence.dev/v1
kind: Binding
metadata: {name: root}
spec: {principal: root, role: admin, tenant: /}
---
apiVersion: ringfence.dev/v1
kind: Binding
metadata: {name: ann}
spec: {principal: ann, role: developer, tenant: acme/lab}
)";

// Conditions with members that are absent, that are not bool, that fail, that are nested.
constexpr std::string_view kCedar[] = {
    R"(permit(principal, action, resource) when { context.weekday == "mon" };)",
    R"(permit(principal is Service, action, resource)
when { context has purpose && context.purpose == "billing" };
forbid(principal, action, resource) when { context has class && context.class == "mps" };)",
    R"(forbid(principal, action, resource)
unless { context has mfa && (context.mfa.age < duration("10m") || context.mfa.kind == "webauthn") };)",
    R"(permit(principal, action, resource in Tenant::"acme")
when { if context has network then context.network.isInRange(ip("10.0.0.0/8")) else principal.name like "a*" };
forbid(principal, action == Action::"lease.end", resource) when { !(context.weekday == "sun" && resource in Tenant::"acme/lab") };)",
    R"(permit(principal, action, resource) when { context.weekday == "tue" || principal.name == "robot" };
permit(principal, action, resource) when { principal.name == "ann" && context.weekday != "mon" }
unless { context has purpose };
permit(principal, action, resource) when { false && context.weekday == "mon" };
forbid(principal, action, resource)
when { context has mfa && context.mfa.age > duration("1h") && 9223372036854775807 + 1 > 0 };)",
};

std::vector<cedar::ValueRecord> Contexts() {
  std::vector<std::vector<std::string>> assignments = {{}};
  const std::vector<std::vector<std::string>> choices[] = {
      {{"weekday=mon"}, {"weekday=sun"}},
      {{}, {"purpose=billing"}, {"purpose=play"}},
      {{}, {"class=mps"}},
      {{}, {"mfa.age=5m", "mfa.kind=totp"}, {"mfa.age=2h", "mfa.kind=webauthn"}},
      {{}, {"network=10.1.1.1"}, {"network=192.168.1.1"}},
  };
  for (const auto& choice : choices) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& so_far : assignments) {
      for (const auto& more : choice) {
        longer.push_back(so_far);
        longer.back().insert(longer.back().end(), more.begin(), more.end());
      }
    }
    assignments = std::move(longer);
  }
  std::vector<cedar::ValueRecord> contexts;
  for (const auto& list : assignments) {
    cedar::ValueRecord context = ContextOf({.now = Timestamp(Milliseconds(1'789'000'000'000))});
    for (const std::string& assignment : list) {
      EXPECT_TRUE(AddContext(assignment, context).has_value());
    }
    contexts.push_back(std::move(context));
  }
  return contexts;
}

bool Holds(const cedar::OpenRule& rule, const cedar::Request& request,
           const cedar::Entities& entities) {
  if (rule.condition == nullptr) {
    return true;
  }
  const auto value = cedar::Evaluate(*rule.condition, request, entities);
  return value.has_value() && value->is(cedar::Value::Kind::kBool) && value->boolean();
}

struct Tally {
  std::size_t yes = 0;
  std::size_t no = 0;
  std::size_t open = 0;
};

// Every point in every context that has what is known.
void Compare(const Policy& policy, const std::vector<cedar::ValueRecord>& contexts,
             const cedar::ValueRecord& known, Tally& tally) {
  cedar::Outlooks outlooks(policy.rulebook().engine(), known);
  const cedar::Entities& entities = policy.rulebook().engine().store().entities();
  const auto conforms = [&](const cedar::ValueRecord& context) {
    return std::all_of(known.begin(), known.end(), [&](const auto& member) {
      const auto found = context.find(member.first);
      return found != context.end() && found->second == member.second;
    });
  };
  std::vector<model::TenantPath> tenants = {model::TenantPath::Root()};
  for (const Tenant& tenant : policy.tenants()) {
    tenants.push_back(tenant.path);
  }
  for (const Principal& principal : policy.principals()) {
    for (const Action action : {Action::kLeaseRequest, Action::kLeaseEnd, Action::kStatusRead}) {
      for (const model::TenantPath& tenant : tenants) {
        const Query query{principal.name, action, tenant};
        cedar::Request request = RequestOf(policy, query, {});
        const cedar::Outlook outlook =
            outlooks.At(request.principal, request.action, request.resource);
        ++(outlook.answer == Answer::kYes  ? tally.yes
           : outlook.answer == Answer::kNo ? tally.no
                                           : tally.open);
        for (const cedar::ValueRecord& context : contexts) {
          if (!conforms(context)) {
            continue;
          }
          request.context = cedar::Value::Record(context);
          const auto holds = [&](const cedar::OpenRule& rule) {
            return Holds(rule, request, entities);
          };
          const bool expected =
              outlook.answer == Answer::kYes ||
              (outlook.answer == Answer::kIf &&
               std::any_of(outlook.permits.begin(), outlook.permits.end(), holds) &&
               std::none_of(outlook.forbids.begin(), outlook.forbids.end(), holds));
          ASSERT_EQ(policy.DecideIn(query, context).allowed, expected)
              << principal.name << ' ' << Name(action) << ' ' << tenant.text() << ": "
              << Name(outlook.answer) << ' '
              << (outlook.answer == Answer::kIf ? ConditionText(outlook) : "") << " in "
              << cedar::ToText(request.context);
        }
      }
    }
  }
}

TEST(Outlook, AgreesWithDecisionsOnEveryPoint) {
  const auto contexts = Contexts();
  Tally tally;
  for (const std::string_view cedar : kCedar) {
    const auto policy =
        Policy::Parse({{"all.yaml", std::string(kFolder)}, {"x.cedar", std::string(cedar) + "\n"}});
    ASSERT_TRUE(policy.has_value()) << policy.error().message;
    Compare(**policy, contexts, {}, tally);
    cedar::ValueRecord whole = contexts.back();
    for (const auto& [name, value] : whole) {
      Compare(**policy, contexts, {{name, value}}, tally);
    }
    Compare(**policy, contexts, whole, tally);
  }
  EXPECT_GT(tally.yes, 50U);
  EXPECT_GT(tally.no, 50U);
  EXPECT_GT(tally.open, 50U);
}

TEST(Outlook, ListsEverybodyAndEverythingWithConditions) {
  const auto policy =
      Policy::Parse({{"all.yaml", std::string(kFolder)},
                     {"x.cedar",
                      "forbid(principal, action == Action::\"lease.request\", resource)\n"
                      "when { context.weekday == \"sun\" };\n"}});
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  const auto lab = model::TenantPath::Create("acme/lab").value();
  const auto who = WhoCan(**policy, Action::kLeaseRequest, lab, {});
  ASSERT_EQ(who.size(), 3U);
  EXPECT_EQ(who[0].principal, "ann");
  EXPECT_EQ(who[0].answer, Answer::kIf);
  EXPECT_EQ(who[0].condition, "not (context.weekday == \"sun\")");
  EXPECT_EQ(who[1].answer, Answer::kNo);
  const auto monday = ContextOf({.now = ParseTime("2026-11-16T00:00:00Z").value()});
  EXPECT_EQ(WhoCan(**policy, Action::kLeaseRequest, lab, monday)[0].answer, Answer::kYes);
  const auto what = WhatCan(**policy, "ann", {});
  ASSERT_TRUE(what.has_value());
  EXPECT_EQ(std::count_if(what->begin(), what->end(),
                          [](const Point& point) {
                            return point.action == Action::kLeaseRequest &&
                                   point.answer != Answer::kNo;
                          }),
            1);
  EXPECT_EQ(WhatCan(**policy, "anne", {}).error().hint, "did you mean ann?");
}

}  // namespace
}  // namespace ringfence::policy

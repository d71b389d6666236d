// Goal: the example policies are good and their cases pass; a case that should fail does; a plan
// says what changes, once, and nothing else.
// Method: every folder under examples/policies; one of them with an expectation turned round, and
// with a binding, a rule and a person more or less.

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/case.h"
#include "policy/plan.h"
#include "policy/policy.h"
#include "policy/rulebook.h"

namespace ringfence::policy {
namespace {

constexpr Timestamp kNow{Milliseconds(1'794'800'000'000)};

std::unique_ptr<Policy> Example(const std::string& name) {
  auto policy = Policy::Load(std::string(RINGFENCE_SOURCE_DIR) + "/examples/policies/" + name);
  EXPECT_TRUE(policy.has_value()) << (policy.has_value() ? "" : policy.error().message);
  return policy.has_value() ? std::move(policy).value() : nullptr;
}

TEST(Examples, TheirCasesPass) {
  for (const std::string name : {"startup", "university", "hospital", "gpu-cloud"}) {
    const auto policy = Example(name);
    ASSERT_NE(policy, nullptr) << name;
    EXPECT_TRUE(policy->rulebook().warnings().empty());
    EXPECT_GE(policy->cases().size(), 7U) << name;
    for (const PolicyCase& one : policy->cases()) {
      const CaseResult result = RunCase(*policy, one, kNow);
      EXPECT_TRUE(result.passed) << name << ' ' << one.name << ": " << result.why;
      PolicyCase other = one;
      other.allow = !one.allow;
      EXPECT_FALSE(RunCase(*policy, other, kNow).passed) << one.name;
      other = one;
      other.rule = "no-such-rule";
      EXPECT_FALSE(RunCase(*policy, other, kNow).passed) << one.name;
    }
  }
}

TEST(Plan, SaysEachChangeOnceAtTheTop) {
  const auto before = Example("startup");
  ASSERT_NE(before, nullptr);
  EXPECT_TRUE(PlanChange(*before, *before).empty());
  auto files = before->files();
  files["more.yaml"] =
      "apiVersion: ringfence.dev/v1\nkind: Binding\nmetadata: {name: chi-ends}\n"
      "spec: {principal: chi@lumen.example, role: service, tenant: lumen}\n";
  const auto bound = Policy::Parse(files);
  ASSERT_TRUE(bound.has_value()) << bound.error().message;
  const auto changes = PlanChange(*before, **bound);
  // Four actions of service at lumen, and each again at lumen/models; at lumen/product chi could
  // all of it but what is said at lumen.
  ASSERT_FALSE(changes.empty());
  for (const Change& change : changes) {
    EXPECT_EQ(change.after.principal, "chi@lumen.example");
    EXPECT_EQ(change.after.tenant.text(), "lumen") << Name(change.after.action);
    EXPECT_EQ(change.before.answer, cedar::Outlook::Answer::kNo);
    EXPECT_EQ(change.after.answer, cedar::Outlook::Answer::kYes);
  }
  EXPECT_EQ(changes.size(), 5U);
  files["stop.cedar"] =
      "forbid(principal == User::\"ben@lumen.example\", action == Action::\"lease.end\", "
      "resource)\n"
      "when { context.weekday == \"sun\" };\n";
  const auto forbidden = Policy::Parse(files);
  ASSERT_TRUE(forbidden.has_value()) << forbidden.error().message;
  const auto stopped = PlanChange(**bound, **forbidden);
  ASSERT_EQ(stopped.size(), 1U);
  EXPECT_EQ(stopped[0].after.condition, "not (context.weekday == \"sun\")");
  // Back again.
  EXPECT_EQ(PlanChange(**forbidden, *before).size(), 6U);
}

TEST(Cases, MistakesAreRefused) {
  const auto refused = [](const std::string& spec) {
    auto files = Example("startup")->files();
    files["x.yaml"] =
        "apiVersion: ringfence.dev/v1\nkind: Case\nmetadata: {name: x}\nspec: " + spec + "\n";
    const auto policy = Policy::Parse(files);
    return policy.has_value() ? "accepted" : policy.error().message.substr(0, 7);
  };
  const std::string good =
      "principal: ben@lumen.example, action: lease.read, resource: lumen/models, expect: allow";
  EXPECT_EQ(refused("{" + good + "}"), "accepted");
  for (const std::string& bad :
       {"{" + good + ", at: noon}", "{" + good + ", context: [clas=mig]}",
        "{" + good + ", context: [mfa.age=1m]}", "{" + good + ", mood: good}",
        std::string(
            "{principal: bem@lumen.example, action: lease.read, resource: /, expect: deny}"),
        std::string("{principal: nightly, action: lease.reed, resource: /, expect: deny}"),
        std::string("{principal: nightly, action: lease.read, resource: lumin, expect: deny}"),
        std::string("{principal: nightly, action: lease.read, resource: /, expect: maybe}"),
        std::string("{}")}) {
    EXPECT_EQ(refused(bad), "x.yaml:") << bad;
  }
}

}  // namespace
}  // namespace ringfence::policy

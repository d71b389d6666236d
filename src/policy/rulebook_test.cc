// Goal: the Cedar that a folder compiles to means what the folder means, *.cedar files count, and
// every answer names its rules.
// Method: the text of the compiled sample is read again, validated, and asked by the plain
// evaluator for every principal, action and tenant; then small folders with Cedar files, good and
// broken.

#include "policy/rulebook.h"

#include <gtest/gtest.h>

#include "cedar/parser.h"
#include "cedar/validator.h"
#include "policy/query.h"
#include "policy/roles.h"

namespace ringfence::policy {
namespace {

using model::TenantPath;

TenantPath Path(std::string_view text) {
  return text == "/" ? TenantPath::Root() : TenantPath::Create(text).value();
}

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
kind: Tenant
metadata: {name: acme/shop}
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

Result<std::unique_ptr<Policy>> WithCedar(const std::string& cedar) {
  std::map<std::string, std::string> files = {{"all.yaml", std::string(kFolder)}};
  if (!cedar.empty()) {
    files.emplace("extra.cedar", cedar);
  }
  return Policy::Parse(files);
}

Explanation Ask(const Policy& policy, std::string principal, Action action,
                std::string_view tenant) {
  return Explain(policy, {std::move(principal), action, Path(tenant)},
                 ContextOf({.now = Timestamp(Milliseconds(1'789'000'000'000))}));
}

TEST(Rulebook, CompiledTextDecidesAsTheFolderDoes) {
  const auto policy = Policy::Load(std::string(RINGFENCE_SOURCE_DIR) + "/content/sample-policy");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  const Rulebook& book = (*policy)->rulebook();
  auto again = cedar::ParsePolicies(book.Text(), {.id_annotations = true});
  ASSERT_TRUE(again.has_value()) << again.error().message;
  ASSERT_EQ(again->policies().size(), book.rules().size());
  const cedar::ValidationResult valid = cedar::Validate(*again, CedarSchema());
  EXPECT_TRUE(valid.passed()) << valid.errors.front().message;
  const auto entities = cedar::Entities::FromJson(
      cedar::ToJsonText(book.engine().store().entities()), &CedarSchema());
  ASSERT_TRUE(entities.has_value()) << entities.error().message;
  std::vector<TenantPath> tenants = {TenantPath::Root()};
  for (const Tenant& tenant : (*policy)->tenants()) {
    tenants.push_back(tenant.path);
  }
  std::size_t allowed = 0;
  for (const Principal& principal : (*policy)->principals()) {
    for (const Action action : AllActions()) {
      for (const TenantPath& tenant : tenants) {
        const Query query{principal.name, action, tenant};
        const cedar::Response response =
            cedar::IsAuthorized(*again, RequestOf(**policy, query, {}), *entities);
        const Decision decision = (*policy)->Decide(query);
        EXPECT_EQ(response.decision == cedar::Decision::kAllow, decision.allowed)
            << principal.name << ' ' << Name(action) << ' ' << tenant.text();
        allowed += decision.allowed ? 1 : 0;
      }
    }
  }
  EXPECT_GT(allowed, 100U);
}

TEST(Rulebook, CedarFilesForbidAndPermit) {
  const auto policy = WithCedar(R"(@description("nobody asks for leases at weekends")
forbid(principal, action == Action::"lease.request", resource)
when { context.weekday == "sat" || context.weekday == "sun" };

@id("robots-look")
permit(principal is Service, action == Action::"status.read", resource);
)");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  using enum Action;
  const auto at = [&](std::string_view time) {
    return (*policy)->Decide(
        {"ann", kLeaseRequest, Path("acme/lab"), {.now = ParseTime(time).value()}});
  };
  EXPECT_TRUE(at("2026-11-16T12:00:00Z").allowed);
  const Decision saturday = at("2026-11-14T12:00:00Z");
  EXPECT_FALSE(saturday.allowed);
  EXPECT_EQ(saturday.reason,
            "forbidden: forbid: nobody asks for leases at weekends (extra.cedar:1)");
  const Explanation robot = Ask(**policy, "robot", kStatusRead, "/");
  EXPECT_TRUE(robot.allowed) << robot.reason;
  ASSERT_EQ(robot.rules.size(), 1U);
  EXPECT_EQ(robot.rules[0].id, "extra.cedar#robots-look");
  EXPECT_EQ(robot.rules[0].where, "extra.cedar:5");
  // Nobody whom the policy does not declare, whatever a rule says of everybody.
  EXPECT_FALSE((*WithCedar("permit(principal, action, resource);\n"))
                   ->Decide({"stranger", kStatusRead, Path("/")})
                   .allowed);
}

TEST(Rulebook, BrokenCedarFilesAreRefusedWithTheirLine) {
  const auto refused = [](const std::string& cedar) {
    const auto policy = WithCedar(cedar);
    return policy.has_value() ? std::string("accepted") : policy.error().message;
  };
  EXPECT_EQ(refused("\npermit(principal, action, resource)\nwhen { 1 + };\n").substr(0, 14),
            "extra.cedar:3:");
  EXPECT_NE(refused("permit(principal, action == Action::\"lease.reqest\", resource);\n")
                .find("extra.cedar:1:"),
            std::string::npos);
  EXPECT_NE(refused("permit(principal, action, resource)\nwhen { context.mood == \"good\" };\n")
                .find("mood"),
            std::string::npos);
  EXPECT_NE(refused("permit(principal == ?principal, action, resource);\n").find("template"),
            std::string::npos);
  EXPECT_NE(refused("permit(principal, action, resource);").find("cut short"), std::string::npos);
  EXPECT_EQ(refused("@id(\"a\\nb\")\npermit(principal, action, resource);\n").substr(0, 18),
            "extra.cedar:1: @id");
  const auto useless = WithCedar("permit(principal is User, action, resource is User);\n");
  EXPECT_FALSE(useless.has_value() && (*useless)->rulebook().warnings().empty());
}

TEST(Rulebook, ANoNamesTheNearestRuleAndWhatItLacks) {
  using enum Action;
  const auto policy = WithCedar(
      "permit(principal == Service::\"robot\", action == Action::\"lease.read\", "
      "resource)\nwhen { context has purpose && context.purpose == \"billing\" };\n");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  const Explanation elsewhere = Ask(**policy, "ann", kLeaseRequest, "acme/shop");
  EXPECT_FALSE(elsewhere.allowed);
  ASSERT_TRUE(elsewhere.nearest.has_value());
  EXPECT_EQ(elsewhere.nearest->words, "role developer at acme/lab");
  EXPECT_EQ(elsewhere.nearest->where, "all.yaml:37");
  EXPECT_EQ(
      elsewhere.missing,
      std::vector<std::string>{R"(the rule is about Tenant::"acme/lab", not Tenant::"acme/shop")"});
  const Explanation robot = Ask(**policy, "robot", kLeaseRead, "acme/lab");
  ASSERT_TRUE(robot.nearest.has_value());
  EXPECT_EQ(robot.nearest->where, "extra.cedar:1");
  ASSERT_FALSE(robot.missing.empty());
  EXPECT_EQ(robot.missing[0], "must hold: context has purpose");
  cedar::ValueRecord context;
  ASSERT_TRUE(AddContext("purpose=billing", context).has_value());
  EXPECT_TRUE(Explain(**policy, {"robot", kLeaseRead, Path("acme/lab")}, context).allowed);
  EXPECT_FALSE(Explain(**policy, {"stranger", kLeaseRead, Path("acme")}, context).allowed);
}

TEST(Rulebook, ContextIsReadAsTheSchemaHasIt) {
  cedar::ValueRecord context;
  for (const std::string_view good :
       {"class=mig", "network=10.1.2.3", "mfa.age=10m", "mfa.kind=webauthn", "node.attested=true",
        "now=2026-11-16T08:00:00Z"}) {
    EXPECT_TRUE(AddContext(good, context).has_value()) << good;
  }
  const auto whole = ReadContext({"node.attested=true"}, {});
  ASSERT_FALSE(whole.has_value());
  EXPECT_EQ(whole.error().hint, "give node.attested, node.patched together");
  EXPECT_TRUE(ReadContext({"node.attested=true", "node.patched=false"}, {}).has_value());
  for (const std::string_view bad : {"class", "clas=mig", "network=here", "mfa.age=soon", "mfa=1",
                                     "node.attested=yes", "class.x=1", "=", ""}) {
    EXPECT_FALSE(AddContext(bad, context).has_value()) << bad;
  }
  EXPECT_EQ(FindAction("lease.reqest").error().hint, "did you mean lease.request?");
}

TEST(Rulebook, WhatNoRequestCanHaveIsRefusedByName) {
  const Timestamp monday = ParseTimeOrDay("2026-11-16").value();
  const auto why = [&](const std::vector<std::string>& said, const WhenAsked& when) {
    const auto read = ReadContext(said, when);
    return read.has_value() ? std::string() : read.error().message;
  };
  EXPECT_EQ(why({"weekday=sat"}, {.at = monday}),
            "context: weekday \"sat\" is not the day of 2026-11-16T00:00:00.000Z");
  EXPECT_NE(why({"weekday=mon"}, {.usual = monday}), "") << "today's day is no promise";
  EXPECT_EQ(why({"weekday=mon"}, {.at = monday}), "");
  EXPECT_EQ(why({"weekday=mon"}, {}), "");
  EXPECT_NE(why({"now=2026-11-17T00:00:00Z"}, {.at = monday}).find("context: now"),
            std::string::npos);
  EXPECT_EQ(ReadContext({"now=2026-11-17T00:00:00Z"}, {.usual = monday})->at("weekday").string(),
            "tue");
  for (const auto& [field, said] : std::map<std::string, std::vector<std::string>>{
           {"mfa.age", {"mfa.age=-10m", "mfa.kind=totp"}},
           {"mfa.kind", {"mfa.age=10m", "mfa.kind=pigeon"}},
           {"class", {"class=migg"}},
           {"weekday", {"weekday=friday"}},
           {"network", {"network=10.0.0.0/8"}}}) {
    EXPECT_TRUE(why(said, {}).starts_with("context: " + field + " ")) << why(said, {});
  }
  EXPECT_FALSE(ParseTimeOrDay("2026-11-31").has_value());
  EXPECT_FALSE(ParseTimeOrDay("monday").has_value());
}

TEST(Rulebook, NamesInConditionsAreLookedUp) {
  for (const std::string_view lost :
       {"resource in Tenant::\"acme/lap\"", "principal == User::\"anne\"",
        "principal in Holders::\"develper@acme\"", "principal in Holders::\"developer@acme/lap\"",
        "[Tenant::\"acme\", Tenant::\"acmee\"].contains(resource)",
        "if context has purpose then resource == Tenant::\"x\" else false"}) {
    for (const char* word : {"when", "unless"}) {
      const auto policy = WithCedar("\nforbid(principal, action, resource) " + std::string(word) +
                                    " { " + std::string(lost) + " };\n");
      ASSERT_FALSE(policy.has_value()) << lost;
      EXPECT_NE(policy.error().message.find("extra.cedar:2: "), std::string::npos)
          << policy.error().message;
      EXPECT_NE(policy.error().message.find("is not in this policy"), std::string::npos);
    }
  }
  EXPECT_TRUE(WithCedar(R"(forbid(principal, action == Action::"lease.end", resource)
when { resource in Tenant::"acme/lab" && principal in Holders::"auditor@acme" && principal != User::"root" };
)")
                  .has_value());
}

}  // namespace
}  // namespace ringfence::policy

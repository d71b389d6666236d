// Goal: conditions of bindings hold when they say and never when something is not known; duties
// that must be apart, broken conditions and lock-outs are refused with file and line.
// Method: one binding with each condition, asked just inside and just outside of it; folders with
// one mistake each.

#include "policy/condition.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "policy/outlook.h"
#include "policy/permissions.h"
#include "policy/query.h"
#include "policy/roles.h"

namespace ringfence::policy {
namespace {

std::string Doc(const std::string& kind, const std::string& name, const std::string& spec) {
  return "apiVersion: ringfence.dev/v1\nkind: " + kind + "\nmetadata: {name: " + name +
         "}\nspec: " + spec + "\n---\n";
}

std::string Base() {
  return Doc("Tenant", "acme", "{}") + Doc("Principal", "root", "{kind: user}") +
         Doc("Principal", "ann", "{kind: user}") +
         Doc("Binding", "root", "{principal: root, role: admin, tenant: /}");
}

Result<std::unique_ptr<Policy>> Make(const std::string& more, const std::string& cedar = {}) {
  std::map<std::string, std::string> files = {{"x.yaml", Base() + more}};
  if (!cedar.empty()) {
    files.emplace("y.cedar", cedar);
  }
  return Policy::Parse(files);
}

std::string Refusal(const std::string& more, const std::string& cedar = {}) {
  const auto policy = Make(more, cedar);
  return policy.has_value() ? "accepted" : policy.error().message;
}

std::string When(const std::string& when) {
  return Doc("Binding", "ann",
             "{principal: ann, role: developer, tenant: acme, when: " + when + "}");
}

bool Allowed(const Policy& policy, const std::vector<std::string>& context,
             std::string_view at = "2026-11-16T12:00:00Z") {
  cedar::ValueRecord record = ContextOf({.now = ParseTime(at).value()});
  for (const std::string& assignment : context) {
    EXPECT_TRUE(AddContext(assignment, record).has_value()) << assignment;
  }
  const Query query{"ann", Action::kLeaseRequest, model::TenantPath::Create("acme").value()};
  return policy.DecideIn(query, record).allowed;
}

TEST(Condition, HoldsInsideAndNotOutside) {
  struct Row {
    std::string when;
    std::vector<std::string> good;
    std::vector<std::vector<std::string>> bad;
  };
  const Row rows[] = {
      {"{mfaWithin: 15m}",
       {"mfa.age=15m", "mfa.kind=totp"},
       {{}, {"mfa.age=16m", "mfa.kind=totp"}}},
      {"{mfa: [webauthn]}",
       {"mfa.age=9h", "mfa.kind=webauthn"},
       {{}, {"mfa.age=1m", "mfa.kind=totp"}}},
      {"{network: [10.0.0.0/8, \"fd00::/8\"]}",
       {"network=fd00::7"},
       {{}, {"network=11.0.0.1"}, {"network=fe00::7"}}},
      {"{class: [mig, gpu]}", {"class=gpu"}, {{}, {"class=mps"}}},
      {"{purpose: [training]}", {"purpose=training"}, {{}, {"purpose=play"}}},
      {"{classification: [public]}", {"classification=public"}, {{}, {"classification=secret"}}},
      {"{node: [attested, patched]}",
       {"node.attested=true", "node.patched=true"},
       {{}, {"node.attested=true", "node.patched=false"}}},
      {"{class: [mig], purpose: [training]}",
       {"class=mig", "purpose=training"},
       {{"class=mig"}, {"purpose=training"}}},
  };
  for (const Row& row : rows) {
    const auto policy = Make(When(row.when));
    ASSERT_TRUE(policy.has_value()) << row.when << ": " << policy.error().message;
    EXPECT_TRUE(Allowed(**policy, row.good)) << row.when;
    for (const auto& bad : row.bad) {
      EXPECT_FALSE(Allowed(**policy, bad)) << row.when;
    }
  }
}

TEST(Condition, TimesAreUtcAndHalfOpen) {
  struct Row {
    std::string when;
    std::vector<std::string_view> good;
    std::vector<std::string_view> bad;
  };
  const Row rows[] = {
      {"{days: [mon, fri]}",
       {"2026-11-16T00:00:00Z", "2026-11-20T23:59:59.999Z"},
       {"2026-11-15T23:59:59.999Z", "2026-11-17T00:00:00Z"}},
      {"{hours: \"08:00-18:30\"}",
       {"2026-11-16T08:00:00Z", "2026-11-16T18:29:59.999Z"},
       {"2026-11-16T07:59:59.999Z", "2026-11-16T18:30:00Z"}},
      {"{hours: \"22:00-06:00\"}",
       {"2026-11-16T22:00:00Z", "2026-11-16T05:59:00Z"},
       {"2026-11-16T06:00:00Z", "2026-11-16T21:59:00Z"}},
      {"{from: 2026-11-16T08:00:00Z, until: 2026-11-17T00:00:00Z}",
       {"2026-11-16T08:00:00Z", "2026-11-16T23:59:59.999Z"},
       {"2026-11-16T07:59:59Z", "2026-11-17T00:00:00Z"}},
  };
  for (const Row& row : rows) {
    const auto policy = Make(When(row.when));
    ASSERT_TRUE(policy.has_value()) << row.when << ": " << policy.error().message;
    for (const std::string_view time : row.good) {
      EXPECT_TRUE(Allowed(**policy, {}, time)) << row.when << ' ' << time;
    }
    for (const std::string_view time : row.bad) {
      EXPECT_FALSE(Allowed(**policy, {}, time)) << row.when << ' ' << time;
    }
    EXPECT_FALSE(
        (*policy)
            ->Decide({"ann", Action::kLeaseRequest, model::TenantPath::Create("acme").value()})
            .allowed)
        << "without a time";
  }
}

TEST(Condition, ARefusalSaysWhichConditionIsMissing) {
  const auto policy = Make(When("{mfaWithin: 15m, class: [mig]}"));
  ASSERT_TRUE(policy.has_value());
  cedar::ValueRecord context = ContextOf({.now = ParseTime("2026-11-16T12:00:00Z").value()});
  ASSERT_TRUE(AddContext("class=mig", context).has_value());
  const Explanation no = Explain(
      **policy, {"ann", Action::kLeaseRequest, model::TenantPath::Create("acme").value()}, context);
  EXPECT_FALSE(no.allowed);
  EXPECT_EQ(
      no.reason,
      "role developer at acme (x.yaml:21) counts only when context has mfa && context.mfa.age "
      "<= duration(\"900000ms\") && context has class && [\"mig\"].contains(context.class)");
  ASSERT_TRUE(no.nearest.has_value());
  EXPECT_EQ(no.nearest->words, "role developer at acme under the condition of ann");
  ASSERT_FALSE(no.missing.empty());
  EXPECT_EQ(no.missing[0], "must hold: context has mfa");
  const auto who =
      WhoCan(**policy, Action::kLeaseRequest, model::TenantPath::Create("acme").value(), context);
  EXPECT_EQ(who[0].condition, "context has mfa && context.mfa.age <= duration(\"900000ms\")");
}

TEST(Condition, MistakesAreRefused) {
  for (const std::string when :
       {"{}", "{days: [monday]}", "{days: []}", "{hours: \"8-18\"}", "{hours: \"08:00-08:00\"}",
        "{hours: \"25:00-26:00\"}", "{from: tomorrow}", "{mfa: [sms]}", "{mfaWithin: soon}",
        "{network: [here]}", "{class: [strong]}", "{node: [clean]}", "{moon: full}",
        "{from: 2026-11-17T00:00:00Z, until: 2026-11-16T00:00:00Z}", "soon"}) {
    EXPECT_EQ(Refusal(When(when)).substr(0, 7), "x.yaml:") << when;
  }
}

TEST(Duties, MustBeApartAtOnePlace) {
  const auto held = [](const std::string& name, const std::string& role, const std::string& at) {
    return Doc("Binding", name, "{principal: ann, role: " + role + ", tenant: " + at + "}");
  };
  EXPECT_EQ(Refusal(held("a", "auditor", "/") + held("b", "operator", "acme")),
            "x.yaml:29: spec.role: ann holds auditor at / already, at x.yaml:21, and operator must "
            "be apart from it (give one of the two to somebody else)");
  EXPECT_EQ(Refusal(Doc("Tenant", "globex", "{}") + held("a", "auditor", "globex") +
                    held("b", "operator", "acme")),
            "accepted");
  EXPECT_EQ(Refusal(held("a", "developer", "acme") + held("b", "operator", "acme")), "accepted");
  const std::string reviewer =
      Doc("Role", "reviewer", "{allows: [lease.read], apartFrom: [developer]}");
  EXPECT_NE(Refusal(reviewer + held("a", "developer", "acme") + held("b", "reviewer", "/"))
                .find("must be apart"),
            std::string::npos);
  EXPECT_NE(Refusal(Doc("Role", "r", "{allows: [lease.read], apartFrom: [develper]}"))
                .find("unknown role"),
            std::string::npos);
}

TEST(Duties, NobodyIsLockedOut) {
  const std::string forbid = "forbid(principal, action == Action::\"policy.apply\", resource)";
  EXPECT_NE(Refusal("", forbid + ";\n").find("locked out"), std::string::npos);
  EXPECT_EQ(Refusal("", forbid + " unless { context has mfa };\n"), "accepted");
  EXPECT_EQ(Refusal("", forbid + " unless { principal == User::\"root\" };\n"), "accepted");
  EXPECT_NE(Policy::Parse({{"x.yaml", Doc("Principal", "a", "{kind: user}") +
                                          Doc("Binding", "a",
                                              "{principal: a, role: admin, tenant: /, when: {days: "
                                              "[mon]}}")}})
                .error()
                .message.find("only under conditions"),
            std::string::npos);
}

TEST(Permissions, RolesKeepTheirPromises) {
  for (const Role& role : BuiltInRoles()) {
    for (const Action action : role.allows) {
      if (role.name == "auditor") {
        EXPECT_EQ(PermissionOf(action).kind, ActionKind::kRead) << Name(action);
      }
      if (role.name == "admin") {
        EXPECT_FALSE(Name(action).starts_with("asset.")) << Name(action);
      }
    }
  }
}

TEST(Permissions, ThePageIsWhatTheCodeSays) {
  std::ifstream file(std::string(RINGFENCE_SOURCE_DIR) + "/docs/permissions.md", std::ios::binary);
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), PermissionsMarkdown())
      << "run: ringfence __permissions > docs/permissions.md";
}

}  // namespace
}  // namespace ringfence::policy

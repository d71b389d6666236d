// Goal: what lies between two tenants follows from every kind of boundary together, with its file
// and line; rules that cannot both be meant are refused, both named.
// Method: a tree of tenants and one document at a time; exact words.

#include "policy/boundary.h"

#include <gtest/gtest.h>

namespace ringfence::policy {
namespace {

using model::IsolationClass;

// Line 1 of b.yaml is the first boundary, line 2 the second.
Result<std::unique_ptr<Policy>> With(const std::vector<std::string>& specs) {
  const std::string head = "--- {apiVersion: ringfence.dev/v1, kind: ";
  std::string tenants =
      head + "Principal, metadata: {name: a}, spec: {kind: user}}\n" + head +
      "Binding, metadata: {name: b}, spec: {principal: a, role: admin, tenant: /}}\n";
  for (const std::string name :
       {"acme", "acme/a", "acme/a/x", "acme/a/y", "acme/b", "acme/b/z", "globex", "globex/c"}) {
    tenants += head + "Tenant, metadata: {name: " + name + "}, spec: {" +
               (name == "acme/b" ? "classification: restricted" : "") + "}}\n";
  }
  std::string boundaries;
  for (const std::string& spec : specs) {
    boundaries += head + "Boundary, metadata: {name: b" + std::to_string(boundaries.size()) +
                  "}, spec: {" + spec + "}}\n";
  }
  return Policy::Parse({{"t.yaml", tenants}, {"b.yaml", boundaries}});
}

model::TenantPath Path(std::string_view text) { return model::TenantPath::Create(text).value(); }

struct Row {
  std::vector<std::string> specs;
  std::string_view a, b;
  IsolationClass least;
  std::string_view reason;
};

TEST(BoundaryTest, EveryKindOfBoundaryHoldsWhereItShouldAndNowhereElse) {
  using enum IsolationClass;
  const std::string mig_teams = "between: teams, least: mig";
  const Row rows[] = {
      {{"between: departments, least: gpu"},
       "acme/a",
       "globex",
       kGpu,
       "boundary between departments (b.yaml:1)"},
      {{"between: departments, least: gpu"}, "acme/a", "acme/b", kMig, "default between teams"},
      {{"between: teams, least: gpu"},
       "acme/a/x",
       "acme/b/z",
       kGpu,
       "boundary between teams (b.yaml:1)"},
      {{"between: teams, least: gpu"},
       "acme/a/x",
       "acme/a/y",
       kTime,
       "default between projects of one team"},
      {{"between: projects, least: mig"},
       "acme/a/x",
       "acme/a/y",
       kMig,
       "boundary between projects of one team (b.yaml:1)"},
      {{"between: projects, least: mig"},
       "acme/a/x",
       "acme/a/x",
       kMps,
       "default within one tenant"},
      // Teams that are named may trust each other more than others do.
      {{mig_teams, "between: [acme/a, acme/b], least: time"},
       "acme/a/x",
       "acme/b/z",
       kTime,
       "boundary between acme/a and acme/b (b.yaml:2)"},
      {{"tenant: acme/a, least: node"},
       "acme/a/x",
       "acme/b",
       kNode,
       "boundary around acme/a (b.yaml:1)"},
      {{"tenant: acme/a, least: node"},
       "globex",
       "acme/a",
       kNode,
       "boundary around acme/a (b.yaml:1)"},
      {{"tenant: acme/a, least: node"},
       "acme/a/x",
       "acme/a/y",
       kTime,
       "default between projects of one team"},
      {{"tenant: acme/a, least: node"}, "acme/b", "globex", kMig, "default between departments"},
      {{"classification: restricted, least: gpu"},
       "acme/b/z",
       "globex",
       kGpu,
       "boundary around what is restricted (b.yaml:1)"},
      {{"classification: restricted, least: gpu"},
       "acme/b/z",
       "acme/b",
       kTime,
       "default between projects of one team"},
      {{"classification: restricted, least: gpu"},
       "acme/a",
       "globex",
       kMig,
       "default between departments"},
      {{"between: [acme, globex/c], sharing: never"},
       "acme/a/x",
       "globex/c",
       kNode,
       "conflict of interest between acme and globex/c (b.yaml:1)"},
      {{"between: [acme, globex], nvlink: one-tenant"},
       "acme",
       "globex",
       kMig,
       "default between departments"},
      {{"between: departments, least: gpu", "tenant: acme/a, least: mig"},
       "acme/a",
       "globex",
       kGpu,
       "boundary between departments (b.yaml:1)"},
  };
  for (const Row& row : rows) {
    const auto policy = With(row.specs);
    ASSERT_TRUE(policy.has_value()) << policy.error().message;
    for (const auto& [a, b] : {std::pair(row.a, row.b), std::pair(row.b, row.a)}) {
      const BetweenTenants between = Between(**policy, Path(a), Path(b));
      EXPECT_EQ(between.least.least, row.least) << row.specs[0] << ' ' << a << ' ' << b;
      EXPECT_EQ(between.least.reason, row.reason);
    }
  }
}

TEST(BoundaryTest, NvlinkProofAndConflictAreSaidWithTheirReasons) {
  const auto policy =
      With({"between: [acme, globex], nvlink: one-tenant, provenWithin: 7d",
            "tenant: acme/a, provenWithin: 24h", "between: [acme/b, globex/c], sharing: never"});
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  const BetweenTenants between = Between(**policy, Path("acme/a"), Path("globex"));
  EXPECT_EQ(between.nvlink_apart, "boundary between acme and globex (b.yaml:1)");
  EXPECT_EQ(between.proven_within, std::chrono::hours(24));
  EXPECT_EQ(between.proven_reason, "boundary around acme/a (b.yaml:2)");
  EXPECT_FALSE(between.never_together);
  EXPECT_TRUE(Between(**policy, Path("acme/b/z"), Path("globex/c")).never_together);
  EXPECT_EQ(ProofFor(**policy, Path("acme/a/x"))->within, std::chrono::hours(24));
  EXPECT_FALSE(ProofFor(**policy, Path("globex")).has_value());
  const JsonObject json = ToJson(between, Path("acme/a"), Path("globex"));
  EXPECT_EQ(json.at("rules").get_array().size(), 2U);
  EXPECT_EQ(json.at("rules").get_array()[1].at("line"), 2);
}

TEST(BoundaryTest, WhatContradictsIsRefusedAndBothAreNamed) {
  struct Bad {
    std::vector<std::string> specs;
    std::string_view what;
  };
  const Bad all[] = {
      {{"between: teams, least: mig", "between: teams, least: gpu"},
       "b.yaml:2: spec.between: a second boundary between teams contradicts the one at b.yaml:1, "
       "which says mig"},
      {{"tenant: acme, least: gpu", "tenant: acme, least: node"},
       "a second boundary around \"acme\" contradicts the one at b.yaml:1, which says gpu"},
      {{"classification: restricted, least: gpu", "classification: restricted, least: gpu"},
       "a second boundary around what is \"restricted\"; the first is at b.yaml:1"},
      {{"between: departments, least: gpu", "between: [acme, globex], least: mig"},
       "b.yaml:2: spec.least: mig between \"acme\" and \"globex\" contradicts the boundary between "
       "departments at b.yaml:1, which says gpu"},
      {{"tenant: acme/a, least: node", "between: [acme/a/x, acme/b], least: time"},
       "b.yaml:2: spec.least: time between \"acme/a/x\" and \"acme/b\" contradicts the boundary "
       "around acme/a at b.yaml:1, which says node"},
      {{"between: [acme/b, acme/a], least: mig", "classification: restricted, least: gpu"},
       "contradicts the boundary around what is restricted at b.yaml:2, which says gpu"},
      {{"between: [acme, globex], sharing: never", "between: [acme/a, globex/c], least: gpu"},
       "b.yaml:2: spec.least: gpu between \"acme/a\" and \"globex/c\" contradicts the boundary of "
       "acme and globex, who never share a node, at b.yaml:1"},
      {{"between: [acme, globex], sharing: never, least: mig"},
       "mig contradicts sharing: never, which keeps them on different nodes"},
      {{"between: teams, sharing: never"}, "is for two tenants that are named"},
      {{"between: [acme, globex], sharing: rarely, least: gpu"}, "write never, or leave it out"},
      {{"between: friends, least: gpu"}, "\"friends\" is nothing to lie between"},
      {{"classification: restrictd, least: gpu"},
       "no tenant is classified \"restrictd\" (did you mean \"restricted\"?)"},
      {{"tenant: acme, between: teams, least: gpu"}, "names more than one of between, tenant"},
      {{"tenant: acme, provenWithin: soon"}, "\"soon\" is no time from 1m to 366d"},
      {{"tenant: acme"}, "b.yaml:1: spec.least: missing"},
      {{"least: gpu"}, "b.yaml:1: spec.between: missing"},
      {{"tenant: acmee, least: gpu"}, "unknown tenant \"acmee\""},
  };
  for (const Bad& bad : all) {
    const auto policy = With(bad.specs);
    ASSERT_FALSE(policy.has_value()) << bad.specs[0];
    EXPECT_NE(policy.error().message.find(bad.what), std::string::npos) << policy.error().message;
    EXPECT_EQ(policy.error().message.find('\n'), std::string::npos)
        << "one mistake, one line: " << policy.error().message;
  }
}

}  // namespace
}  // namespace ringfence::policy

// Goal: network rules say what their author meant or are refused by file and line; what no rule
// names is closed; the same rules come out as objects that other systems take.
// Method: tables of faulty rules beside a good folder with their exact messages; questions about
// flows; exports held against the shape of the published schemas (network_shape_test.h).

#include "policy/network.h"

#include <gtest/gtest.h>

#include <map>

#include "policy/network_export.h"
#include "policy/network_shape_test.h"

namespace ringfence::policy {
namespace {

std::string Doc(std::string_view kind, std::string_view name, std::string_view spec) {
  return "apiVersion: ringfence.dev/v1\nkind: " + std::string(kind) +
         "\nmetadata: {name: " + std::string(name) + "}\nspec: " + std::string(spec) + "\n---\n";
}

Result<std::unique_ptr<Policy>> Parse(const std::string& rules) {
  return Policy::Parse(
      {{"base.yaml", Doc("Tenant", "acme", "{}") + Doc("Tenant", "acme/research", "{}") +
                         Doc("Tenant", "acme/research/vision", "{}") +
                         Doc("Tenant", "acme/data", "{}") + Doc("Tenant", "globex", "{}") +
                         Doc("Principal", "admin", "{kind: user}") +
                         Doc("Binding", "root", "{principal: admin, role: admin, tenant: /}")},
       {"x.yaml", rules}});
}

std::unique_ptr<Policy> Good(const std::string& rules) {
  auto policy = Parse(rules);
  EXPECT_TRUE(policy.has_value()) << policy.error().message;
  return std::move(policy).value();
}

std::string ErrorOf(const std::string& rules) {
  const auto policy = Parse(rules);
  return policy.has_value() ? "" : policy.error().message;
}

std::string Rule(std::string_view name, std::string_view spec) {
  return Doc("NetworkRule", name, spec);
}

const std::string kAllKinds =
    Rule("vision-to-data", "{from: acme/research, to: {tenant: acme/data}, ports: [tcp/443]}") +
    Rule("out", "{from: acme, to: {cidr: 0.0.0.0/0}, ports: [tcp/443, udp/5000-5100, icmp]}") +
    Rule("pypi", "{from: acme/research/vision, to: {name: pypi.org}, ports: [tcp/443]}") +
    Rule("ranks", "{from: acme/research, to: {lease: own}, ports: [tcp/1024-65535]}");

TEST(NetworkRuleTest, Reads) {
  const auto policy = Good(kAllKinds);
  const auto& rules = policy->network_rules();
  ASSERT_EQ(rules.size(), 4U);
  EXPECT_EQ(rules[0].To(), "tenant acme/data");
  EXPECT_EQ(rules[1].To(), "0.0.0.0/0");
  EXPECT_EQ(rules[1].ports.size(), 3U);
  EXPECT_EQ(rules[2].To(), "pypi.org");
  EXPECT_EQ(rules[3].To(), "its own lease");
  EXPECT_EQ(rules[3].Where(), "x.yaml:16");
}

TEST(NetworkRuleTest, WhatIsWrongIsSaidByFileAndLine) {
  const struct {
    std::string rules;
    std::string message;
  } cases[] = {
      {Rule("a", "{from: acme/reserch, to: {tenant: acme}, ports: [tcp/1]}"),
       "x.yaml:4: spec.from: unknown tenant \"acme/reserch\" (did you mean \"acme/research\"?)"},
      {Rule("a", "{from: acme, to: {tenant: globx}, ports: [tcp/1]}"),
       "x.yaml:4: spec.to.tenant: unknown tenant \"globx\" (did you mean \"globex\"?)"},
      {Rule("a", "{from: acme, to: {}, ports: [tcp/1]}"),
       "x.yaml:4: spec.to: names nobody (write exactly one of tenant, cidr, name and lease; "
       "several are several rules)"},
      {Rule("a", "{from: acme, to: {tenant: acme, cidr: 10.0.0.0/8}, ports: [tcp/1]}"),
       "x.yaml:4: spec.to: names more than one (write exactly one of tenant, cidr, name and lease; "
       "several are several rules)"},
      {Rule("a", "{from: acme, ports: [tcp/1]}"),
       "x.yaml:4: spec.to: missing (write \"name: value\" lines below it, or {} for none)"},
      {Rule("a", "{from: acme, to: {cidr: 10.0.0.1/8}, ports: [tcp/1]}"),
       "x.yaml:4: spec.to.cidr: \"10.0.0.1/8\" has bits set behind its prefix (write 10.0.0.0/8)"},
      {Rule("a", "{from: acme, to: {cidr: 169.254.169.254/32}, ports: [tcp/80]}"),
       "x.yaml:4: spec.to.cidr: 169.254.169.254/32 lies in 169.254.0.0/16, which no rule opens "
       "(this machine, link-local (metadata services), multicast and reserved addresses stay "
       "closed)"},
      {Rule("a", "{from: acme, to: {cidr: \"::/0\"}, ports: [tcp/80]}"),
       "x.yaml:4: spec.to.cidr: \"::/0\" is IPv6, and boxes speak IPv4 only (name the IPv4 "
       "addresses)"},
      {Rule("a", "{from: acme, to: {name: \"*.org\"}, ports: [tcp/80]}"),
       "x.yaml:4: spec.to.name: \"*.org\" is no DNS name (write a whole name in small letters, "
       "without a dot at the end: pypi.org)"},
      {Rule("a", "{from: acme, to: {lease: any}, ports: [tcp/80]}"),
       "x.yaml:4: spec.to.lease: \"any\" is not what a rule can name (write own: the other boxes "
       "of the same lease)"},
      {Rule("a", "{from: acme, to: {tenant: acme}, ports: [http]}"),
       "x.yaml:4: spec.ports: \"http\" is no port (write tcp/443, udp/5000-5100 or icmp)"},
      {Rule("a", "{from: acme, to: {tenant: acme}, ports: [tcp/1, tcp/1]}"),
       "x.yaml:4: spec.ports: \"tcp/1\" is there twice (keep one of the two)"},
      {Rule("a.b", "{from: acme, to: {tenant: acme}, ports: [tcp/1]}"),
       "x.yaml:3: metadata.name: \"a.b\" is no name of a network rule (use up to 48 of a-z, 0-9 "
       "and '-', with a letter or digit at both ends)"},
      {Rule("a", "{from: acme, to: {tennant: acme}, ports: [tcp/1]}"),
       "x.yaml:4: spec.to.tennant: unknown field (did you mean \"tenant\"?)"},
  };
  for (const auto& [rules, message] : cases) {
    EXPECT_EQ(ErrorOf(rules), message) << rules;
  }
  EXPECT_NE(ErrorOf(Rule("a", "{from: acme, to: {tenant: acme}, ports: []}")), "");
  EXPECT_NE(ErrorOf(Rule("a", "{from: /, to: {tenant: acme}, ports: [tcp/1]}")), "");
  EXPECT_NE(ErrorOf(Rule("a", "{from: acme, to: {lease: own}, ports: [tcp/1]}") +
                    Rule("a", "{from: acme, to: {lease: own}, ports: [tcp/2]}")),
            "");
}

TEST(NetworkRuleTest, AGrantHoldsSoManyAndNoMore) {
  std::string rules;
  for (std::size_t i = 0; i < kNetworkRulesPerTenantMax; ++i) {
    rules += Rule("r" + std::to_string(i), "{from: acme, to: {lease: own}, ports: [tcp/1]}");
  }
  EXPECT_EQ(ErrorOf(rules), "");
  rules += Rule("one-more", "{from: globex, to: {tenant: acme/data}, ports: [tcp/1]}");
  EXPECT_EQ(
      ErrorOf(rules),
      "base.yaml:18: metadata.name: 129 network rules hold for \"acme/data\", and 128 are the "
      "most (join rules: one may name a wider network or several ports)");
}

TEST(NetworkFlowTest, WhatIsNotNamedIsClosed) {
  const auto policy = Good(kAllKinds);
  const auto ask = [&](const char* from, const char* to, const char* port) {
    const auto answer = AskFlow(*policy, {model::TenantPath::Create(from).value(), to,
                                          model::PortRange::Parse(port).value()});
    return answer.has_value() ? (answer->allowed ? "open" : "closed") : "error";
  };
  EXPECT_STREQ(ask("acme/research/vision", "acme/data", "tcp/443"), "open");
  EXPECT_STREQ(ask("acme/research", "acme/data", "tcp/443"), "open");
  EXPECT_STREQ(ask("acme/data", "acme/research", "tcp/443"), "closed");  // one way only
  EXPECT_STREQ(ask("acme/research", "acme/data", "udp/443"), "closed");
  EXPECT_STREQ(ask("acme/research", "acme/data", "tcp/442-443"), "closed");
  EXPECT_STREQ(ask("acme", "acme/data", "tcp/443"), "closed");  // above the rule's tenant
  EXPECT_STREQ(ask("globex", "acme/data", "tcp/443"), "closed");
  EXPECT_STREQ(ask("acme", "8.8.8.8", "tcp/443"), "open");
  EXPECT_STREQ(ask("acme", "8.8.8.8", "icmp"), "open");
  EXPECT_STREQ(ask("acme", "8.8.8.8", "tcp/22"), "closed");
  EXPECT_STREQ(ask("acme", "169.254.169.254", "tcp/443"), "closed");
  EXPECT_STREQ(ask("acme", "127.0.0.1", "tcp/443"), "closed");
  EXPECT_STREQ(ask("acme/research/vision", "pypi.org", "tcp/443"), "open");
  EXPECT_STREQ(ask("acme/research/vision", "evil.org", "tcp/443"), "closed");
  EXPECT_STREQ(ask("acme", "acme/nobody", "tcp/443"), "error");
}

TEST(NetworkExportTest, ObjectsHaveTheShapeOfThePublishedSchemas) {
  const auto policy = Good(kAllKinds);
  const struct {
    ExportFormat format;
    std::size_t objects;
    std::size_t left_out;
  } cases[] = {{ExportFormat::kKubernetes, 4, 3},  // icmp, the name, the ranks
               {ExportFormat::kCalico, 4, 2},
               {ExportFormat::kCilium, 5, 1}};
  for (const auto& [format, objects, left_out] : cases) {
    const NetworkExport exported = ExportNetwork(*policy, format, "jobs");
    EXPECT_EQ(shape::Wrong(exported, format), "");
    EXPECT_EQ(exported.objects.size(), objects);
    EXPECT_EQ(exported.left_out.size(), left_out);
  }
}

TEST(NetworkExportTest, TheShapeCheckSeesWhatIsWrong) {
  const auto policy = Good(kAllKinds);
  NetworkExport exported = ExportNetwork(*policy, ExportFormat::kKubernetes, "jobs");
  Json& rule = exported.objects[1].at("spec").at("egress").at(0);
  rule.as_object().erase("ports");  // would open every port
  EXPECT_NE(shape::Wrong(exported, ExportFormat::kKubernetes), "");
  exported = ExportNetwork(*policy, ExportFormat::kKubernetes, "jobs");
  exported.objects[1].at("spec").as_object()["egres"] = 1;
  EXPECT_NE(shape::Wrong(exported, ExportFormat::kKubernetes), "");
}

TEST(NetworkExportTest, NoObjectReachesTheMetadataService) {
  const auto policy = Good(kAllKinds);
  const NetworkExport exported = ExportNetwork(*policy, ExportFormat::kKubernetes, "jobs");
  const Json& block =
      exported.objects[3].at("spec").at("egress").at(0).at("to").at(0).at("ipBlock");
  EXPECT_EQ(block.at("cidr").as_string(), "0.0.0.0/0");
  bool excepted = false;
  for (const Json& net : block.at("except").as_array()) {
    excepted = excepted || net.as_string() == "169.254.0.0/16";
  }
  EXPECT_TRUE(excepted);
}

TEST(NetworkExportTest, WithoutRulesEverythingIsClosed) {
  const auto policy = Good("# nothing\n");
  for (const ExportFormat format :
       {ExportFormat::kKubernetes, ExportFormat::kCalico, ExportFormat::kCilium}) {
    const NetworkExport exported = ExportNetwork(*policy, format, "jobs");
    EXPECT_EQ(exported.objects.size(), 1U);
    EXPECT_EQ(shape::Wrong(exported, format), "");
  }
}

}  // namespace
}  // namespace ringfence::policy

// `ringfence risk update --fleet`: assessments, tenants and proofs as the server has them.

#include <map>
#include <set>

#include "cli/api.h"
#include "cli/assess.h"
#include "cli/fields.h"
#include "cli/fleet_history.h"
#include "cli/risk.h"
#include "cli/settings.h"

namespace ringfence::cli {
namespace {

using assure::CheckSpec;
using assure::RiskFinding;
using assure::Standing;

// A tenant counts as one of a node's for so long after its last lease there.
constexpr std::chrono::days kTenantAge{30};

Result<Standing> StandingOf(const std::string& name) {
  for (const Standing standing :
       {Standing::kPass, Standing::kFail, Standing::kUnknown, Standing::kNotApplicable}) {
    if (Name(standing) == name) {
      return standing;
    }
  }
  return Error{Code::kInternal, "the server says \"" + name + "\" of a check"};
}

// The node's own words and numbers; what to do about it from our checks, which name the same thing.
Result<RiskFinding> FindingOf(const Json& check, const CheckSpec* own) {
  RiskFinding finding;
  finding.check = TextOf(check, "id");
  finding.title = TextOf(check, "title");
  finding.area = TextOf(check, "class");
  finding.seen = TextOf(check, "seen");
  RINGFENCE_ASSIGN(finding.standing, StandingOf(TextOf(check, "result")));
  const auto number = [&check](std::string_view name, int otherwise) {
    return static_cast<int>(IntOf(check, name).value_or(otherwise));
  };
  finding.likelihood = number("likelihood", own == nullptr ? 0 : own->likelihood);
  finding.impact = number("impact", own == nullptr ? 0 : own->impact);
  finding.effort = number("effort", own == nullptr ? 2 : own->effort);
  if (finding.likelihood < 1 || finding.impact < 1) {
    return Error{Code::kFailedPrecondition,
                 "how much the check \"" + finding.check + "\" weighs is not known here",
                 "have the node run this version of Ringfence, or name its checks: --checks DIR"};
  }
  if (own != nullptr) {
    finding.fix = own->fix;
    finding.command = own->command;
  }
  return finding;
}

Result<assure::NodeFindings> FindingsFrom(const Json& document,
                                          const std::map<std::string, const CheckSpec*>& checks) {
  assure::NodeFindings found;
  found.node = TextOf(document, "node");
  RINGFENCE_ASSIGN(found.when, ParseTime(TextOf(document, "time")));
  for (const Json& check : ArrayOf(document, "checks")) {
    const auto own = checks.find(TextOf(check, "id"));
    auto finding = FindingOf(check, own == checks.end() ? nullptr : own->second);
    if (!finding.has_value()) {
      return Prefix(found.node, finding.error());
    }
    found.findings.push_back(std::move(*finding));
  }
  return found;
}

Result<std::map<std::string, std::set<std::string>>> TenantsByNode(Api& api, Timestamp now) {
  RINGFENCE_ASSIGN(const auto leases, LeaseSpans(api));
  std::map<std::string, std::set<std::string>> tenants;
  for (const LeaseSpan& lease : leases) {
    if (lease.span.Meets({now - kTenantAge, std::nullopt})) {
      tenants[lease.node].insert(lease.tenant);
    }
  }
  return tenants;
}

}  // namespace

Result<std::vector<NodeNews>> FleetNews(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::vector<CheckSpec> checks, ChecksFor(invocation.parsed));
  std::map<std::string, const CheckSpec*> by_id;
  for (const CheckSpec& check : checks) {
    by_id.emplace(check.id, &check);
  }
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const auto tenants, TenantsByNode(*api, invocation.clock.Now()));
  RINGFENCE_ASSIGN(const Json trends, api->Get("/v1/assessments"));
  std::vector<NodeNews> all;
  for (const Json& trend : ArrayOf(trends, "assessments")) {
    const std::string node = TextOf(trend, "node");
    const auto document = api->Get(Target("/v1/nodes", node, "/assessment"));
    if (!document.has_value() && document.error().code == Code::kNotFound) {
      continue;  // a node that was removed since
    }
    RINGFENCE_TRY(document);
    NodeNews news;
    news.from_fleet = true;
    RINGFENCE_ASSIGN(news.found, FindingsFrom(*document, by_id));
    const auto known = tenants.find(node);
    news.tenants = known == tenants.end() ? 0 : static_cast<int>(known->second.size());
    RINGFENCE_ASSIGN(const Json proofs, api->Get(Target("/v1/nodes", node, "/proofs")));
    if (Field(proofs, "probes") != nullptr) {
      news.proofs.emplace();
      RINGFENCE_TRY(assure::ParseProofs(CanonicalJson(proofs), *news.proofs));
    }
    all.push_back(std::move(news));
  }
  if (all.empty()) {
    return Error{Code::kNotFound, "the server has no assessment of any node",
                 "on a node, as root: `ringfence assess send`"};
  }
  return all;
}

}  // namespace ringfence::cli

// `ringfence advisory exposure`: which nodes had a flawed driver from when to when, and whose
// leases were on them meanwhile.

#include <algorithm>
#include <map>
#include <set>

#include "base/code.h"
#include "cli/advisory.h"
#include "cli/api.h"
#include "cli/console.h"
#include "cli/fleet_history.h"
#include "cli/human.h"
#include "cli/settings.h"

namespace ringfence::cli {
namespace {

using assure::FlawVerdict;
using assure::Verdict;

constexpr char kProduct[] = "gpu-driver";
constexpr char kPlatform[] = "Linux";

// What a driver's version has, of the flaws that were asked for.
struct Known {
  std::vector<const FlawVerdict*> open;  // affected or ambiguous
  std::string problem;                   // why the version cannot be judged; else empty
  std::size_t affected = 0;
  bool trips = false;

  bool exposes() const { return !open.empty() || !problem.empty(); }
};

class Flaws {
 public:
  Flaws(const Loaded& loaded, std::string cve, int rank)
      : index_(loaded.set.bulletins), cve_(std::move(cve)), rank_(rank) {}

  const Known& Of(const std::string& version) {
    const auto [at, fresh] = known_.try_emplace(version);
    if (fresh) {
      Judge(version, at->second);
    }
    return at->second.known;
  }

 private:
  struct Judged {
    std::vector<FlawVerdict> flaws;
    Known known;
  };
  void Judge(const std::string& version, Judged& judged) {
    const auto query = index_.Ask(kProduct, kPlatform, version);
    if (!query.has_value()) {
      judged.known.problem = query.error().message;
      judged.known.trips = rank_ != kNeverFails;
      return;
    }
    judged.flaws = index_.Match(*query);
    for (const FlawVerdict& flaw : judged.flaws) {
      if (flaw.verdict >= Verdict::kAmbiguous && (cve_.empty() || flaw.cve == cve_)) {
        judged.known.open.push_back(&flaw);
        judged.known.affected += flaw.verdict == Verdict::kAffected ? 1 : 0;
        judged.known.trips = judged.known.trips || assure::SeverityRank(flaw.severity) >= rank_;
      }
    }
  }

  const assure::AdvisoryIndex index_;
  const std::string cve_;
  const int rank_;
  std::map<std::string, Judged> known_;  // stays in its place: `open` points into it
};

struct ExposedLease {
  const LeaseSpan* lease = nullptr;
  std::set<std::string> versions;
  bool affected = false;  // else only flaws of which the bulletins do not say it clearly
};

struct TenantSum {
  std::size_t affected = 0;
  std::size_t ambiguous = 0;
  std::size_t open = 0;
  Span span;  // from its first such lease to its last
  std::set<std::string> nodes;
};

struct Exposed {
  std::vector<DriverSpan> spans;  // those that are exposed
  std::vector<ExposedLease> leases;
  std::map<std::string, TenantSum> tenants;
  std::size_t nodes_seen = 0;
};

void Sum(const ExposedLease& exposed, TenantSum& sum) {
  const LeaseSpan& lease = *exposed.lease;
  const bool first = sum.nodes.empty();
  ++(exposed.affected ? sum.affected : sum.ambiguous);
  sum.open += lease.span.to ? 0 : 1;
  sum.nodes.insert(lease.node);
  if (first) {
    sum.span = lease.span;
    return;
  }
  sum.span.from = std::min(sum.span.from, lease.span.from);
  sum.span.to = sum.span.to && lease.span.to ? std::optional(std::max(*sum.span.to, *lease.span.to))
                                             : std::nullopt;
}

Exposed Join(const std::vector<DriverSpan>& drivers, const std::vector<LeaseSpan>& leases,
             Flaws& flaws, const Parsed& parsed) {
  const std::string node = parsed.Value("node").value_or("");
  const std::string tenant = parsed.Value("tenant").value_or("");
  Exposed exposed;
  std::set<std::string> seen;
  std::map<std::string, std::vector<const DriverSpan*>> by_node;
  for (const DriverSpan& driver : drivers) {
    seen.insert(driver.node);
    if ((node.empty() || driver.node == node) && flaws.Of(driver.version).exposes()) {
      exposed.spans.push_back(driver);
      by_node[driver.node].push_back(&driver);
    }
  }
  exposed.nodes_seen = seen.size();
  for (const LeaseSpan& lease : leases) {
    const bool wanted =
        tenant.empty() || lease.tenant == tenant || lease.tenant.starts_with(tenant + "/");
    ExposedLease one{&lease, {}, false};
    for (const DriverSpan* driver : by_node[lease.node]) {
      if (wanted && driver->span.Meets(lease.span)) {
        one.versions.insert(driver->version);
        one.affected = one.affected || flaws.Of(driver->version).affected > 0;
      }
    }
    if (!one.versions.empty()) {
      Sum(one, exposed.tenants[lease.tenant]);
      exposed.leases.push_back(std::move(one));
    }
  }
  return exposed;
}

Json TimeJson(const std::optional<Timestamp>& time) {
  return time ? Json(FormatTime(*time)) : Json(nullptr);
}

JsonArray Texts(const std::set<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.push_back(Json(text));
  }
  return array;
}

Json FlawsJson(const Known& known) {
  JsonArray flaws;
  for (const FlawVerdict* flaw : known.open) {
    const auto& said = flaw->said.front();
    flaws.push_back(JsonObject{{"cve", flaw->cve},
                               {"verdict", std::string(Name(flaw->verdict))},
                               {"severity", flaw->severity},
                               {"bulletin", said.bulletin->id},
                               {"published", DateOf(said.bulletin->first)},
                               {"why", said.why}});
  }
  return flaws;
}

Json ExposedJson(const Exposed& exposed, Flaws& flaws) {
  JsonArray nodes;
  for (const DriverSpan& driver : exposed.spans) {
    const Known& known = flaws.Of(driver.version);
    JsonObject node{{"node", driver.node},
                    {"driver", driver.version},
                    {"simulated", driver.simulated},
                    {"from", FormatTime(driver.span.from)},
                    {"to", TimeJson(driver.span.to)},
                    {"flaws", FlawsJson(known)}};
    if (!known.problem.empty()) {
      node["problem"] = known.problem;
    }
    nodes.push_back(std::move(node));
  }
  JsonArray tenants;
  for (const auto& [name, sum] : exposed.tenants) {
    tenants.push_back(JsonObject{{"tenant", name},
                                 {"leases_affected", sum.affected},
                                 {"leases_ambiguous", sum.ambiguous},
                                 {"leases_open", sum.open},
                                 {"first", FormatTime(sum.span.from)},
                                 {"last", TimeJson(sum.span.to)},
                                 {"nodes", Texts(sum.nodes)}});
  }
  JsonArray leases;
  for (const ExposedLease& one : exposed.leases) {
    leases.push_back(JsonObject{{"lease", one.lease->id},
                                {"tenant", one.lease->tenant},
                                {"node", one.lease->node},
                                {"from", FormatTime(one.lease->span.from)},
                                {"to", TimeJson(one.lease->span.to)},
                                {"drivers", Texts(one.versions)},
                                {"verdict", one.affected ? "affected" : "ambiguous"}});
  }
  return JsonObject{
      {"nodes", std::move(nodes)}, {"tenants", std::move(tenants)}, {"leases", std::move(leases)}};
}

std::string Minute(const std::optional<Timestamp>& time) {
  return time ? FormatTime(*time).substr(0, 16) : "now";
}

void PrintExposed(Console& console, const Exposed& exposed, Flaws& flaws, bool with_leases) {
  Table nodes({"NODE", "DRIVER", "FROM", "TO", "AFFECTED", "AMBIGUOUS", "WORST"});
  for (const DriverSpan& driver : exposed.spans) {
    const Known& known = flaws.Of(driver.version);
    nodes.Add({driver.node, driver.version + (driver.simulated ? " (simulated)" : ""),
               Minute(driver.span.from), Minute(driver.span.to), std::to_string(known.affected),
               std::to_string(known.open.size() - known.affected),
               known.open.empty() ? known.problem : known.open.front()->cve});
  }
  if (exposed.spans.empty()) {
    console.out() << console.Good("none") << " of " << Count(exposed.nodes_seen, "node")
                  << " ever had such a driver\n";
    return;
  }
  nodes.Print(console);
  console.out() << '\n';
  if (exposed.tenants.empty()) {
    console.out() << "no lease was on them meanwhile\n";
    return;
  }
  Table tenants({"TENANT", "LEASES AFFECTED", "AMBIGUOUS", "OPEN", "FIRST", "LAST", "NODES"});
  for (const auto& [name, sum] : exposed.tenants) {
    tenants.Add({name, std::to_string(sum.affected), std::to_string(sum.ambiguous),
                 std::to_string(sum.open), Minute(sum.span.from), Minute(sum.span.to),
                 std::to_string(sum.nodes.size())});
  }
  tenants.Print(console);
  if (with_leases) {
    Table leases({"LEASE", "TENANT", "NODE", "FROM", "TO"});
    for (const ExposedLease& one : exposed.leases) {
      leases.Add({one.lease->id, one.lease->tenant, one.lease->node, Minute(one.lease->span.from),
                  Minute(one.lease->span.to)});
    }
    console.out() << '\n';
    leases.Print(console);
  }
}

}  // namespace

Result<int> AdvisoryExposure(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const int rank, FailRank(parsed));
  RINGFENCE_ASSIGN(const Loaded loaded, LoadFor(invocation));
  const std::string cve = parsed.Value("cve").value_or("");
  const auto lists = [&cve](const assure::Bulletin& bulletin) {
    return std::any_of(bulletin.flaws.begin(), bulletin.flaws.end(),
                       [&cve](const assure::Flaw& flaw) { return flaw.cve == cve; });
  };
  if (!cve.empty() &&
      std::none_of(loaded.set.bulletins.begin(), loaded.set.bulletins.end(), lists)) {
    return Error{Code::kNotFound, "no bulletin lists " + cve,
                 "`ringfence advisory list` shows what is there"};
  }
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const auto drivers, DriverSpans(*api));
  RINGFENCE_ASSIGN(const auto leases, LeaseSpans(*api));
  Flaws flaws(loaded, cve, rank);
  const Exposed exposed = Join(drivers, leases, flaws, parsed);
  Console& console = invocation.console;
  if (console.table()) {
    WarnOfData(console, loaded);
    PrintExposed(console, exposed, flaws, parsed.Has("leases"));
  } else {
    JsonObject shown = ExposedJson(exposed, flaws).as_object();
    shown["data"] = DataJson(loaded);
    console.Show(shown);
  }
  const bool trips =
      std::any_of(exposed.spans.begin(), exposed.spans.end(),
                  [&](const DriverSpan& driver) { return flaws.Of(driver.version).trips; });
  return trips || DataTrips(loaded, rank) ? kExitFindings : kExitOk;
}

}  // namespace ringfence::cli

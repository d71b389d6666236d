// `ringfence assess fleet|node|diff|send`: nodes as their server knows them.

#include "cli/assess_fleet.h"

#include <map>
#include <set>

#include "assure/advisory_match.h"
#include "base/code.h"
#include "cli/api.h"
#include "cli/assess.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/settings.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kNodesMax = 10'000;
constexpr char kDriverProduct[] = "gpu-driver";

Result<std::unique_ptr<Api>> OpenApi(Invocation& invocation) {
  RINGFENCE_ASSIGN(Connection connection, Connect(invocation.settings));
  return Api::Create(std::move(connection));
}

// Flaws of each node's driver, where bulletins were given.
Result<std::map<std::string, std::vector<std::string>>> FlawsByNode(Invocation& invocation,
                                                                    Api& api) {
  std::map<std::string, std::vector<std::string>> flaws;
  const auto folder = invocation.parsed.Value("csaf");
  if (!folder) {
    return flaws;
  }
  RINGFENCE_ASSIGN(const assure::BulletinSet bulletins, assure::LoadBulletins(*folder));
  const assure::AdvisoryIndex index(bulletins.bulletins);
  RINGFENCE_ASSIGN(const JsonArray nodes, api.List("/v1/nodes", {}, kNodesMax));
  for (const Json& node : nodes) {
    std::vector<std::string>& found = flaws[TextOf(node, "name")];
    const auto query = index.Ask(kDriverProduct, "Linux", TextOf(node, "driver_version"));
    if (!query.has_value()) {
      continue;
    }
    for (const assure::FlawVerdict& flaw : index.Match(*query)) {
      if (flaw.verdict == assure::Verdict::kAffected) {
        found.push_back(flaw.cve);
      }
    }
  }
  return flaws;
}

Result<int> AssessFleet(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, OpenApi(invocation));
  RINGFENCE_ASSIGN(Json answer, api->Get("/v1/assessments"));
  RINGFENCE_ASSIGN(const auto flaws, FlawsByNode(invocation, *api));
  Console& console = invocation.console;
  const bool with_flaws = invocation.parsed.Has("csaf");
  std::vector<std::string> heads = {"NODE", "SCORE",       "FAILING",  "CRITICAL",
                                    "HIGH", "CANNOT TELL", "BASELINE", "WHEN"};
  if (with_flaws) {
    heads.emplace_back("DRIVER FLAWS");
  }
  Table table(heads);
  JsonArray items;
  for (const Json& trend : ArrayOf(answer, "assessments")) {
    const std::string node = TextOf(trend, "node");
    const Json* severities = Field(trend, "severities");
    const std::string drift = TextOf(trend, "drift");
    const auto known = flaws.find(node);
    std::vector<std::string> row = {
        node,
        TextOf(trend, "score"),
        TextOf(trend, "failing"),
        severities == nullptr ? "" : TextOf(*severities, "critical"),
        severities == nullptr ? "" : TextOf(*severities, "high"),
        TextOf(trend, "cannot_tell"),
        TextOf(trend, "baseline") + (drift == "0" ? "" : " (" + drift + ")"),
        RelativeTime(TextOf(trend, "time"), invocation.clock.Now())};
    if (with_flaws) {
      row.push_back(known == flaws.end() ? "unknown" : std::to_string(known->second.size()));
    }
    table.Add(row);
    JsonObject item = trend.is_object() ? trend.get_object() : JsonObject();
    if (known != flaws.end()) {
      JsonArray list;
      for (const std::string& cve : known->second) {
        list.push_back(Json(cve));
      }
      item["driver_flaws"] = std::move(list);
    }
    items.push_back(std::move(item));
  }
  if (!console.table()) {
    console.Show(items);
    return kExitOk;
  }
  if (items.empty()) {
    console.Note("no node was assessed yet; on a node, as root: `ringfence assess send`");
    return kExitOk;
  }
  table.Print(console);
  return kExitOk;
}

Result<int> AssessNode(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, OpenApi(invocation));
  RINGFENCE_ASSIGN(const Json document,
                   api->Get(Target("/v1/nodes", invocation.parsed.Argument(0), "/assessment")));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(document);
    return kExitOk;
  }
  FactList facts;
  facts.Add("Node", TextOf(document, "node"));
  facts.Add("Assessed", RelativeTime(TextOf(document, "time"), invocation.clock.Now()));
  facts.Add("Score", TextOf(document, "score"));
  facts.Add("Baseline", TextOf(document, "baseline"));
  std::string scores;
  for (const Json& point : ArrayOf(document, "points")) {
    scores += (scores.empty() ? "" : " ") + TextOf(point, "score");
  }
  facts.Add("Scores so far", scores);
  facts.Print(console);
  Table drift({"FACT", "WAS", "IS"});
  for (const Json& change : ArrayOf(document, "drift")) {
    drift.Add({TextOf(change, "fact"), TextOf(change, "was"), TextOf(change, "is")});
  }
  if (!drift.empty()) {
    console.out() << '\n';
    drift.Print(console);
  }
  Table table({"SEVERITY", "FAILING", "SEEN"});
  for (const std::string_view severity : {"critical", "high", "medium", "low"}) {
    for (const Json& check : ArrayOf(document, "checks")) {
      if (TextOf(check, "result") == "fail" && TextOf(check, "severity") == severity) {
        table.Add({TextOf(check, "severity"), TextOf(check, "id"), TextOf(check, "seen")});
      }
    }
  }
  if (!table.empty()) {
    console.out() << '\n';
    table.Print(console);
  }
  return kExitOk;
}

Result<int> AssessDiff(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, OpenApi(invocation));
  std::map<std::string, std::string> results[2];
  std::map<std::string, std::string> severities;
  std::set<std::string> checks;
  for (std::size_t side = 0; side < 2; ++side) {
    RINGFENCE_ASSIGN(
        const Json document,
        api->Get(Target("/v1/nodes", invocation.parsed.Argument(side), "/assessment")));
    for (const Json& check : ArrayOf(document, "checks")) {
      const std::string id = TextOf(check, "id");
      results[side][id] = TextOf(check, "result");
      severities[id] = TextOf(check, "severity");
      checks.insert(id);
    }
  }
  Console& console = invocation.console;
  Table table({"CHECK", "SEVERITY", invocation.parsed.Argument(0), invocation.parsed.Argument(1)});
  JsonArray items;
  for (const std::string& id : checks) {
    if (results[0][id] != results[1][id]) {
      table.Add({id, severities[id], results[0][id], results[1][id]});
      items.push_back(JsonObject{{"check", id},
                                 {"severity", severities[id]},
                                 {"a", results[0][id]},
                                 {"b", results[1][id]}});
    }
  }
  if (!console.table()) {
    console.Show(items);
  } else if (items.empty()) {
    console.out() << "every check says the same of both\n";
  } else {
    table.Print(console);
  }
  return items.empty() ? kExitOk : kExitFindings;
}

}  // namespace

CommandTable AssessFleetCommands() {
  return {
      {.path = "assess fleet",
       .group = Group::kEvidence,
       .summary = "Show the last assessment of every node.",
       .options = {AssessOption("csaf")},
       .examples = {{"ringfence assess fleet", "scores, failures and drift"},
                    {"ringfence assess fleet --csaf bulletins",
                     "and how many known flaws each node's driver has"}},
       .handler = AssessFleet},
      {.path = "assess node",
       .group = Group::kEvidence,
       .summary = "Show what fails on a node, and how it drifted from its baseline.",
       .arguments = {{.name = "NODE", .help = "its name", .completes = Completes::kNode}},
       .examples = {{"ringfence assess node gpu-7", "its last assessment"}},
       .handler = AssessNode},
      {.path = "assess diff",
       .group = Group::kEvidence,
       .summary = "Show what checks say differently of two nodes.",
       .arguments = {{.name = "A", .help = "a node", .completes = Completes::kNode},
                     {.name = "B", .help = "another", .completes = Completes::kNode}},
       .examples = {{"ringfence assess diff gpu-7 gpu-8", "why one is worse"}},
       .exit_codes = "0, or 1 where they differ",
       .handler = AssessDiff},
      {.path = "assess send",
       .group = Group::kEvidence,
       .summary = "Assess this node and tell its server, with the node's certificate.",
       .details =
           "Run as root on a node that has joined. `ringfence up` and the package's service\n"
           "ringfence-assess do it by themselves: at the start, every node.assess_every, and\n"
           "within five minutes when a check says something else or the node drifts.",
       .options = {{.name = "every",
                    .value = "DURATION",
                    .help = "again and again, until it is told to stop"},
                   {.name = "watch",
                    .value = "DURATION",
                    .help = "with --every: look so often in between, and send what changed "
                            "(default 5m)"},
                   SettingOption(Setting::kNodeDriverRoot),
                   AssessOption("checks"),
                   AssessOption("csaf"),
                   AssessOption("exceptions")},
       .examples = {{"ringfence assess send --state /var/lib/ringfence", "once"},
                    {"ringfence assess send --every 6h", "as a service; sends changes at once"}},
       .handler = AssessSend},
  };
}

}  // namespace ringfence::cli

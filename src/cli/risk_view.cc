// The register of risks, shown.

#include <algorithm>

#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/risk.h"
#include "cli/suggest.h"
#include "cli/text.h"

namespace ringfence::cli {

using assure::NodeScore;
using assure::Risk;
using assure::Standing;
using assure::Weighed;

std::string Halves(std::int64_t halves) {
  return std::to_string(halves / 2) + (halves % 2 == 0 ? "" : ".5");
}

namespace {

constexpr std::size_t kTopMax = 10;

struct Row {
  const Risk* risk;
  Weighed weighed;
};

std::string Severity(const Console& console, int risk) {
  const std::string name = assure::RiskSeverity(risk);
  return name == "critical" || name == "high" ? console.Bad(name)
         : name == "medium"                   ? console.Doubtful(name)
                                              : name;
}

std::string Signed(int number) { return (number > 0 ? "+" : "") + std::to_string(number); }

std::string DecisionText(const Risk& risk, const Weighed& weighed, Timestamp now) {
  const auto footing = FootingOf(risk, weighed, now);
  std::string text(Name(footing));
  if (!risk.decision.kind.empty()) {
    text += risk.decision.kind == "transfer"
                ? ""
                : " until " + FormatTime(risk.decision.until).substr(0, 10);
    text += ", " + risk.decision.owner;
  }
  return risk.open ? text : "closed";
}

Json RowJson(const RiskDesk& desk, const Row& row) {
  const Risk& risk = *row.risk;
  JsonArray steps;
  for (const assure::RiskStep& step : row.weighed.steps) {
    steps.push_back(
        JsonObject{{"what", step.what}, {"likelihood", step.likelihood}, {"impact", step.impact}});
  }
  JsonArray history;
  for (const assure::RiskEvent& event : risk.history) {
    history.push_back(
        JsonObject{{"when", FormatTime(event.when)}, {"who", event.who}, {"what", event.what}});
  }
  JsonObject object{{"id", risk.id()},
                    {"node", risk.node},
                    {"check", risk.finding.check},
                    {"title", risk.finding.title},
                    {"class", risk.finding.area},
                    {"result", std::string(Name(risk.finding.standing))},
                    {"state", risk.open ? "open" : "closed"},
                    {"risk", row.weighed.risk()},
                    {"severity", assure::RiskSeverity(row.weighed.risk())},
                    {"likelihood", row.weighed.likelihood},
                    {"impact", row.weighed.impact},
                    {"base", JsonObject{{"likelihood", risk.finding.likelihood},
                                        {"impact", risk.finding.impact}}},
                    {"steps", std::move(steps)},
                    {"effort", risk.finding.effort},
                    {"seen", risk.finding.seen},
                    {"fix", risk.finding.fix},
                    {"footing", std::string(Name(FootingOf(risk, row.weighed, desk.now)))},
                    {"first", FormatTime(risk.first)},
                    {"last", FormatTime(risk.last)},
                    {"history", std::move(history)}};
  if (!risk.decision.kind.empty()) {
    object["decision"] = JsonObject{{"kind", risk.decision.kind},
                                    {"owner", risk.decision.owner},
                                    {"reason", risk.decision.reason},
                                    {"until", FormatTime(risk.decision.until)}};
  }
  return object;
}

Json ScoreJson(const NodeScore& score) {
  return JsonObject{{"node", score.node},           {"score", score.score()},
                    {"lost", Halves(score.lost)},   {"held", Halves(score.held)},
                    {"all", Halves(score.all)},     {"failing", score.open},
                    {"cannot_tell", score.doubtful}};
}

std::vector<Row> RowsOf(const RiskDesk& desk, const std::string& node, bool all) {
  std::vector<Row> rows;
  for (const auto& [id, risk] : desk.reg.risks) {
    const bool shown = all || (risk.open && risk.finding.standing == Standing::kFail);
    if (shown && (node.empty() || risk.node == node)) {
      rows.push_back({&risk, WeighRisk(desk.reg, desk.model, risk, desk.now)});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.risk->open != b.risk->open ? a.risk->open : a.weighed.risk() > b.weighed.risk();
  });
  return rows;
}

Status KnowsNode(const RiskDesk& desk, const std::string& node) {
  if (node.empty() || desk.reg.nodes.contains(node)) {
    return {};
  }
  std::vector<std::string> names;
  for (const auto& [name, known] : desk.reg.nodes) {
    names.push_back(name);
  }
  return Error{Code::kNotFound, "the register has no node \"" + node + "\"",
               DidYouMean(node, names, "`ringfence risk show` lists its nodes")};
}

void PrintSum(Console& console, const std::string& name, const NodeScore& score) {
  console.out() << "  all that could be lost: " << Halves(score.held) << " held + "
                << Halves(score.all - score.held) << " not held = " << Halves(score.all) << '\n'
                << "  score of " << Safe(name) << ": 100 - 100 x " << Halves(score.lost) << " / "
                << Halves(score.all)
                << ", rounded down = " << console.Bold(std::to_string(score.score())) << '\n';
}

int ShowNode(Console& console, const RiskDesk& desk, const NodeScore& score) {
  const assure::RegisterNode& node = desk.reg.nodes.at(score.node);
  console.out() << console.Bold(Safe(score.node)) << ", assessed " << FormatTime(node.when) << '\n';
  for (const Row& row : RowsOf(desk, score.node, true)) {
    if (row.risk->open) {
      const bool fails = row.risk->finding.standing == Standing::kFail;
      console.out() << "  " << Halves(LostBy(*row.risk, row.weighed)) << "  "
                    << Safe(row.risk->finding.check) << ": " << row.weighed.likelihood << " x "
                    << row.weighed.impact << (fails ? "" : " / 2, cannot tell") << '\n';
    }
  }
  console.out() << "  lost: " << Halves(score.lost) << '\n';
  PrintSum(console, score.node, score);
  return kExitOk;
}

JsonObject ScoresJson(const std::vector<NodeScore>& scores) {
  JsonArray nodes;
  for (const NodeScore& score : scores) {
    nodes.push_back(ScoreJson(score));
  }
  return JsonObject{{"fleet", ScoreJson(ScoreFleet(scores))}, {"nodes", std::move(nodes)}};
}

JsonArray HeatJson(const assure::Heat& heat) {
  JsonArray cells;
  for (int likelihood = 5; likelihood >= 1; --likelihood) {
    for (int impact = 1; impact <= 5; ++impact) {
      cells.push_back(JsonObject{{"likelihood", likelihood},
                                 {"impact", impact},
                                 {"severity", assure::RiskSeverity(likelihood * impact)},
                                 {"count", heat.cells[likelihood - 1][impact - 1]}});
    }
  }
  return cells;
}

JsonArray MendingsJson(const std::vector<assure::Mending>& mendings) {
  JsonArray items;
  for (const assure::Mending& mending : mendings) {
    const assure::RiskFinding& finding = *mending.finding;
    items.push_back(JsonObject{{"check", finding.check},
                               {"title", finding.title},
                               {"risk", mending.risk},
                               {"effort", finding.effort * mending.nodes},
                               {"nodes", mending.nodes},
                               {"score_then", mending.score},
                               {"fix", finding.fix},
                               {"command", finding.command}});
  }
  return items;
}

int ShowScores(Console& console, const std::vector<NodeScore>& scores) {
  if (!console.table()) {
    console.Show(ScoresJson(scores));
    return kExitOk;
  }
  const NodeScore fleet = ScoreFleet(scores);
  Table table({"NODE", "SCORE", "LOST", "OF", "FAILING", "CANNOT TELL"});
  for (const NodeScore& score : scores) {
    table.Add({score.node, std::to_string(score.score()), Halves(score.lost), Halves(score.all),
               std::to_string(score.open), std::to_string(score.doubtful)});
  }
  table.Print(console);
  console.out() << "\nlost in the fleet: " << Halves(fleet.lost) << '\n';
  PrintSum(console, "the fleet", fleet);
  return kExitOk;
}

int ShowRisk(Console& console, const RiskDesk& desk, const Row& row) {
  const Risk& risk = *row.risk;
  FactList facts;
  facts.Add("Risk", risk.id());
  facts.Add("Does not hold", risk.finding.title);
  facts.Add("Seen", risk.finding.seen);
  facts.Add("State",
            (risk.open ? "open, " : "closed, ") + std::string(Name(risk.finding.standing)));
  facts.Add("Decision", DecisionText(risk, row.weighed, desk.now));
  facts.Add("Reason", risk.decision.reason);
  facts.Add("Fix", risk.finding.fix);
  facts.Add("Command", risk.finding.command);
  facts.Print(console);
  console.out() << "\n  likelihood " << risk.finding.likelihood << ", impact "
                << risk.finding.impact << "  by the check\n";
  for (const assure::RiskStep& step : row.weighed.steps) {
    console.out() << "  ";
    if (step.likelihood != 0) {
      console.out() << "likelihood " << Signed(step.likelihood) << "  ";
    }
    if (step.impact != 0) {
      console.out() << "impact " << Signed(step.impact) << "  ";
    }
    console.out() << Safe(step.what) << '\n';
  }
  console.out() << "  each held to 1..5: " << row.weighed.likelihood << " x " << row.weighed.impact
                << " = " << console.Bold(std::to_string(row.weighed.risk())) << ", "
                << Severity(console, row.weighed.risk()) << "\n\n";
  for (const assure::RiskEvent& event : risk.history) {
    console.out() << "  " << FormatTime(event.when).substr(0, 16) << "  " << Safe(event.who) << ": "
                  << Safe(event.what) << '\n';
  }
  return kExitOk;
}

}  // namespace

Result<int> RiskList(Invocation& invocation) {
  RINGFENCE_ASSIGN(const RiskDesk desk, OpenRiskDesk(invocation, false));
  RINGFENCE_ASSIGN(const std::size_t limit, LimitOf(invocation.parsed));
  const std::string node = invocation.parsed.Value("node").value_or("");
  RINGFENCE_TRY(KnowsNode(desk, node));
  std::vector<Row> rows = RowsOf(desk, node, invocation.parsed.Has("all"));
  const std::size_t count = rows.size();
  rows.resize(std::min(count, limit));
  Console& console = invocation.console;
  if (!console.table()) {
    JsonArray items;
    for (const Row& row : rows) {
      items.push_back(RowJson(desk, row));
    }
    console.Show(items);
    return kExitOk;
  }
  Table table({"RISK", "SEVERITY", "ID", "DECISION", "DOES NOT HOLD"});
  for (const Row& row : rows) {
    table.Add({std::to_string(row.weighed.risk()), assure::RiskSeverity(row.weighed.risk()),
               row.risk->id(), DecisionText(*row.risk, row.weighed, desk.now),
               row.risk->finding.title});
  }
  table.Print(console);
  if (count > rows.size()) {
    console.Note(std::to_string(count - rows.size()) + " more: --limit N");
  }
  return kExitOk;
}

Result<int> RiskShow(Invocation& invocation) {
  RINGFENCE_ASSIGN(const RiskDesk desk, OpenRiskDesk(invocation, false));
  const std::string id = invocation.parsed.Argument(0);
  Console& console = invocation.console;
  const auto scores = ScoreNodes(desk.reg, desk.model, desk.now);
  if (id.empty()) {
    return ShowScores(console, scores);
  }
  for (const NodeScore& score : scores) {
    if (score.node == id) {
      if (console.table()) {
        return ShowNode(console, desk, score);
      }
      console.Show(ScoreJson(score));
      return kExitOk;
    }
  }
  const auto found = desk.reg.risks.find(id);
  if (found == desk.reg.risks.end()) {
    std::vector<std::string> ids;
    for (const auto& [known, risk] : desk.reg.risks) {
      ids.push_back(known);
    }
    return Error{Code::kNotFound, "there is no risk and no node \"" + id + "\"",
                 DidYouMean(id, ids, "`ringfence risk list --all` shows them")};
  }
  const Row row{&found->second, WeighRisk(desk.reg, desk.model, found->second, desk.now)};
  if (console.table()) {
    return ShowRisk(console, desk, row);
  }
  console.Show(RowJson(desk, row));
  return kExitOk;
}

Result<int> RiskMatrix(Invocation& invocation) {
  RINGFENCE_ASSIGN(const RiskDesk desk, OpenRiskDesk(invocation, false));
  const assure::Heat heat = HeatOf(desk.reg, desk.model, desk.now);
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(HeatJson(heat));
    return kExitOk;
  }
  console.out() << "likelihood\n";
  for (int likelihood = 5; likelihood >= 1; --likelihood) {
    console.out() << "  " << likelihood << " |";
    for (int impact = 1; impact <= 5; ++impact) {
      const int count = heat.cells[likelihood - 1][impact - 1];
      std::string cell = count == 0 ? "." : std::to_string(count);
      cell = std::string(cell.size() < 6 ? 6 - cell.size() : 0, ' ') + cell;
      const std::string severity = assure::RiskSeverity(likelihood * impact);
      console.out() << (severity == "critical" || severity == "high" ? console.Bad(cell)
                        : severity == "medium"                       ? console.Doubtful(cell)
                                                                     : console.Good(cell));
    }
    console.out() << '\n';
  }
  console.out() << "     +------------------------------\n           1     2     3     4     5  "
                   "impact\n";
  return kExitOk;
}

Result<int> RiskTop(Invocation& invocation) {
  RINGFENCE_ASSIGN(const RiskDesk desk, OpenRiskDesk(invocation, false));
  const auto mendings = TopMendings(desk.reg, desk.model, desk.now, kTopMax);
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(MendingsJson(mendings));
    return kExitOk;
  }
  Table table({"", "TAKES AWAY", "EFFORT", "NODES", "SCORE THEN", "CHECK", "FIX"});
  int number = 0;
  for (const assure::Mending& mending : mendings) {
    const assure::RiskFinding& finding = *mending.finding;
    table.Add({std::to_string(++number), std::to_string(mending.risk),
               std::to_string(finding.effort * mending.nodes), std::to_string(mending.nodes),
               std::to_string(mending.score), finding.check, finding.fix});
  }
  const NodeScore fleet = ScoreFleet(ScoreNodes(desk.reg, desk.model, desk.now));
  console.out() << "score now: " << console.Bold(std::to_string(fleet.score())) << '\n';
  table.Print(console);
  return kExitOk;
}

// The page; for programs the same as a document.
Result<int> RiskReport(Invocation& invocation) {
  RINGFENCE_ASSIGN(const RiskDesk desk, OpenRiskDesk(invocation, false));
  Console& console = invocation.console;
  if (console.table()) {
    console.out() << RiskHtml(desk.reg, desk.model, desk.now);
    return kExitOk;
  }
  JsonObject report = ScoresJson(ScoreNodes(desk.reg, desk.model, desk.now));
  report["matrix"] = HeatJson(HeatOf(desk.reg, desk.model, desk.now));
  report["top"] = MendingsJson(TopMendings(desk.reg, desk.model, desk.now, kTopMax));
  JsonArray risks;
  for (const Row& row : RowsOf(desk, "", true)) {
    risks.push_back(RowJson(desk, row));
  }
  report["risks"] = std::move(risks);
  console.Show(report);
  return kExitOk;
}

Result<int> RiskTrend(Invocation& invocation) {
  RINGFENCE_ASSIGN(const RiskDesk desk, OpenRiskDesk(invocation, false));
  const std::string wanted = invocation.parsed.Value("node").value_or("");
  RINGFENCE_TRY(KnowsNode(desk, wanted));
  Console& console = invocation.console;
  JsonArray items;
  Table table({"NODE", "WHEN", "SCORE", "FAILING", "LOST", ""});
  for (const auto& [name, node] : desk.reg.nodes) {
    if (!wanted.empty() && name != wanted) {
      continue;
    }
    for (const assure::TrendPoint& point : node.trend) {
      table.Add({name, FormatTime(point.when).substr(0, 16), std::to_string(point.score),
                 std::to_string(point.open), Halves(point.lost),
                 std::string(static_cast<std::size_t>(point.score) / 5, '#')});
      items.push_back(JsonObject{{"node", name},
                                 {"when", FormatTime(point.when)},
                                 {"score", point.score},
                                 {"failing", point.open},
                                 {"lost", Halves(point.lost)},
                                 {"all", Halves(point.all)}});
    }
  }
  if (console.table()) {
    table.Print(console);
  } else {
    console.Show(items);
  }
  return kExitOk;
}

}  // namespace ringfence::cli

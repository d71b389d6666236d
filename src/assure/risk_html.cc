// The register as a page: no script, nothing from elsewhere.

#include <algorithm>

#include "assure/assess_report.h"
#include "assure/report_page.h"
#include "assure/risk_register.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kRowsMax = 2'000;
constexpr std::size_t kTopMax = 10;

std::string Text(std::int64_t number) { return std::to_string(number); }

std::string Signed(int number) { return (number > 0 ? "+" : "") + Text(number); }

// Halves, as people write them.
std::string Halves(std::int64_t halves) { return Text(halves / 2) + (halves % 2 == 0 ? "" : ".5"); }

std::string TrendLine(const RegisterNode& node) {
  constexpr std::int64_t kWidth = 160;
  constexpr std::int64_t kHeight = 28;
  if (node.trend.size() < 2) {
    return "";
  }
  std::string points;
  const auto last = static_cast<std::int64_t>(node.trend.size()) - 1;
  for (std::int64_t i = 0; i <= last; ++i) {
    const int score = node.trend[static_cast<std::size_t>(i)].score;
    points += Text(i * kWidth / last) + "," + Text(kHeight - score * kHeight / 100) + " ";
  }
  return "<svg role=\"img\" aria-label=\"scores\" width=\"160\" height=\"30\" viewBox=\"0 -1 160 "
         "30\"><polyline fill=\"none\" stroke=\"#0969da\" stroke-width=\"2\" points=\"" +
         points + "\"/></svg>";
}

std::string NodeRows(const Register& reg, const std::vector<NodeScore>& scores) {
  std::string out =
      "<table><tr><th>Node</th><th>Score</th><th class=\"few\">Lost</th><th class=\"few\">Of "
      "all</th><th>Failing</th>"
      "<th>Cannot tell</th><th class=\"few\">Scores so far</th></tr>";
  for (std::size_t i = 0; i < scores.size() && i < kRowsMax; ++i) {
    const NodeScore& score = scores[i];
    const auto node = reg.nodes.find(score.node);
    out += "<tr><td>" + EscapeXml(score.node) + "</td><td><b>" + Text(score.score()) +
           "</b></td><td class=\"few\">" + Halves(score.lost) + "</td><td class=\"few\">" +
           Halves(score.all) + "</td><td>" + Text(score.open) + "</td><td>" + Text(score.doubtful) +
           "</td><td class=\"few\">" + (node == reg.nodes.end() ? "" : TrendLine(node->second)) +
           "</td></tr>";
  }
  return out + "</table>";
}

std::string Arithmetic(const Risk& risk, const Weighed& weighed) {
  std::string out = "likelihood " + Text(risk.finding.likelihood) + ", impact " +
                    Text(risk.finding.impact) + " by the check";
  for (const RiskStep& step : weighed.steps) {
    out += "<br>" + EscapeXml(step.what) + ": ";
    out += step.likelihood == 0 ? "" : "likelihood " + Signed(step.likelihood) + " ";
    out += step.impact == 0 ? "" : "impact " + Signed(step.impact);
  }
  return out + "<br>" + Text(weighed.likelihood) + " × " + Text(weighed.impact) + " = " +
         Text(weighed.risk());
}

struct Row {
  const Risk* risk;
  Weighed weighed;
};

std::string RiskRow(const Row& row, Timestamp now) {
  const Risk& risk = *row.risk;
  const std::string severity = RiskSeverity(row.weighed.risk());
  const RiskDecision& decision = risk.decision;
  std::string history;
  for (const RiskEvent& event : risk.history) {
    history += "<div><small>" + FormatTime(event.when).substr(0, 16) + " " + EscapeXml(event.who) +
               ": " + EscapeXml(event.what) + "</small></div>";
  }
  return "<tr><td><span class=\"tag " + severity + "\">" + Text(row.weighed.risk()) + " " +
         severity + "</span></td><td class=\"wide\"><b>" + EscapeXml(risk.finding.title) +
         "</b> <small>" + EscapeXml(risk.id()) +
         "</small><div>Seen: " + EscapeXml(risk.finding.seen) +
         "</div><div>Fix: " + EscapeXml(risk.finding.fix) +
         "</div><details class=\"more\"><summary>Arithmetic and history</summary><p>" +
         Arithmetic(risk, row.weighed) + "</p>" + history + "</details></td><td class=\"short\">" +
         std::string(Name(FootingOf(risk, row.weighed, now))) +
         (decision.kind.empty() ? "" : "<br><small>" + EscapeXml(decision.owner) + "</small>") +
         "</td></tr>";
}

std::string RiskRows(const Register& reg, const RiskModel& model, Timestamp now) {
  std::vector<Row> rows;
  for (const auto& [id, risk] : reg.risks) {
    if (risk.open && risk.finding.standing == Standing::kFail) {
      rows.push_back({&risk, WeighRisk(reg, model, risk, now)});
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.weighed.risk() > b.weighed.risk(); });
  std::string out =
      "<table><thead><tr><th>Risk</th><th>What does not hold</th><th>Decision</th></tr></thead>";
  for (std::size_t i = 0; i < rows.size() && i < kRowsMax; ++i) {
    out += RiskRow(rows[i], now);
  }
  out += "</table>";
  return rows.size() <= kRowsMax
             ? out
             : out + "<p>" + Text(static_cast<std::int64_t>(rows.size() - kRowsMax)) + " more.</p>";
}

}  // namespace

std::string RiskHtml(const Register& reg, const RiskModel& model, Timestamp now) {
  const auto scores = ScoreNodes(reg, model, now);
  const NodeScore fleet = ScoreFleet(scores);
  std::string out = PageBegin("Risks") + "<div class=\"head\"><div><h1>Risks</h1><small>" +
                    FormatTime(now) + "</small></div><div class=\"score\">" + Text(fleet.score()) +
                    "<small> / 100</small></div><div><div class=\"fail\">" + Text(fleet.open) +
                    " open</div><div class=\"unknown\">" + Text(fleet.doubtful) +
                    " that cannot be told</div></div></div><p>Score: 100 − 100 × " +
                    Halves(fleet.lost) + " / " + Halves(fleet.all) +
                    ", rounded down.</p><h2>By likelihood and impact</h2>" +
                    HeatTable(HeatOf(reg, model, now).cells) + "<h2>What to do first</h2><ol>";
  for (const Mending& mending : TopMendings(reg, model, now, kTopMax)) {
    out += "<li><b>" + EscapeXml(mending.finding->title) + "</b> (" +
           EscapeXml(mending.finding->check) + ", " + Text(mending.nodes) +
           (mending.nodes == 1 ? " node" : " nodes") + ", takes away " + Text(mending.risk) +
           ", then the score is " + Text(mending.score) + ")<br>" +
           EscapeXml(mending.finding->fix) + "</li>";
  }
  return out + "</ol><h2>Nodes</h2>" + NodeRows(reg, scores) + "<h2>Risks</h2>" +
         RiskRows(reg, model, now) + "</body></html>\n";
}

}  // namespace ringfence::assure

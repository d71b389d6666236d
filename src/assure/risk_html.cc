// The register as a page: no script, nothing from elsewhere.

#include <algorithm>

#include "assure/assess_report.h"
#include "assure/risk_register.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kRowsMax = 2'000;
constexpr std::size_t kTopMax = 10;

constexpr std::string_view kStyle =
    "<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 "
    "1rem;"
    "color:#1f2328;background:#fff}h1{margin:0}h2{margin-top:2rem;border-bottom:1px solid #d0d7de}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:"
    ".35rem .6rem;border-bottom:1px solid #d0d7de;overflow-wrap:anywhere}th{font-size:.85em}"
    ".score{font-size:3rem;font-weight:700}.heat{width:auto}.heat "
    "td{text-align:center;width:3.5rem;"
    "border:1px solid #fff}.critical{background:#ffcecb}.high{background:#ffd8b5}"
    ".medium{background:#fff8c5}.low{background:#dafbe1}small{color:#59636e}"
    "code{background:#f6f8fa;padding:.1em .3em}details{margin:.2rem 0}@media print{body{margin:0;"
    "max-width:none;font-size:10pt}tr,details{break-inside:avoid}h2{break-after:avoid}"
    "*{print-color-adjust:exact}}</style>";

std::string Text(std::int64_t number) { return std::to_string(number); }

// Halves, as people write them.
std::string Halves(std::int64_t halves) { return Text(halves / 2) + (halves % 2 == 0 ? "" : ".5"); }

std::string HeatTable(const Heat& heat) {
  std::string out = "<table class=\"heat\"><tr><th>likelihood \\ impact</th>";
  for (int impact = 1; impact <= 5; ++impact) {
    out += "<th>" + Text(impact) + "</th>";
  }
  out += "</tr>";
  for (int likelihood = 5; likelihood >= 1; --likelihood) {
    out += "<tr><th>" + Text(likelihood) + "</th>";
    for (int impact = 1; impact <= 5; ++impact) {
      const int count = heat.cells[likelihood - 1][impact - 1];
      out += "<td class=\"" + RiskSeverity(likelihood * impact) + "\">" +
             (count > 0 ? "<b>" + Text(count) + "</b>" : "·") + "</td>";
    }
    out += "</tr>";
  }
  return out + "</table>";
}

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
      "<table><tr><th>Node</th><th>Score</th><th>Lost</th><th>Of all</th><th>Failing</th>"
      "<th>Cannot tell</th><th>Scores so far</th></tr>";
  for (std::size_t i = 0; i < scores.size() && i < kRowsMax; ++i) {
    const NodeScore& score = scores[i];
    const auto node = reg.nodes.find(score.node);
    out += "<tr><td>" + EscapeXml(score.node) + "</td><td><b>" + Text(score.score()) +
           "</b></td><td>" + Halves(score.lost) + "</td><td>" + Halves(score.all) + "</td><td>" +
           Text(score.open) + "</td><td>" + Text(score.doubtful) + "</td><td>" +
           (node == reg.nodes.end() ? "" : TrendLine(node->second)) + "</td></tr>";
  }
  return out + "</table>";
}

std::string Arithmetic(const Risk& risk, const Weighed& weighed) {
  std::string out = "likelihood " + Text(risk.finding.likelihood) + ", impact " +
                    Text(risk.finding.impact) + " by the check";
  for (const RiskStep& step : weighed.steps) {
    out += "<br>" + EscapeXml(step.what) + ": ";
    out += step.likelihood == 0 ? "" : "likelihood " + Text(step.likelihood) + " ";
    out += step.impact == 0 ? "" : "impact " + Text(step.impact);
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
  return "<tr><td class=\"" + severity + "\">" + Text(row.weighed.risk()) + " " + severity +
         "</td><td>" + EscapeXml(risk.node) + "</td><td><b>" + EscapeXml(risk.finding.title) +
         "</b><br><small>" + EscapeXml(risk.finding.check) + "</small><details><summary>" +
         EscapeXml(risk.finding.seen) + "</summary><p>" + Arithmetic(risk, row.weighed) +
         "</p><p>Fix: " + EscapeXml(risk.finding.fix) + "</p>" + history + "</details></td><td>" +
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
      "<table><tr><th>Risk</th><th>Node</th><th>What holds not</th><th>Decision</th></tr>";
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
  std::string out =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>Risks</title>" +
      std::string(kStyle) + "</head><body><h1>Risks</h1><small>" + FormatTime(now) +
      "</small><div class=\"score\">" + Text(fleet.score()) + "<small> / 100</small></div><p>" +
      Text(fleet.open) + " open, " + Text(fleet.doubtful) +
      " that cannot be told. Score: 100 − 100 × " + Halves(fleet.lost) + " / " + Halves(fleet.all) +
      ", rounded down.</p><h2>By likelihood and impact</h2>" + HeatTable(HeatOf(reg, model, now)) +
      "<h2>What to do first</h2><ol>";
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

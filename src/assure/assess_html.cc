// The report that prints well: one file, no script, nothing from elsewhere.

#include <map>

#include "assure/assess_report.h"

namespace ringfence::assure {
namespace {

constexpr std::string_view kStyle =
    "<style>:root{--bad:#b3261e;--doubt:#9a6700;--good:#1a7f37;--none:#8c959f}"
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;"
    "color:#1f2328;background:#fff}h1{margin:0}h2{margin-top:2rem;border-bottom:1px solid #d0d7de}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:"
    ".35rem .6rem;border-bottom:1px solid #d0d7de;overflow-wrap:anywhere}th{font-size:.85em}"
    ".head{display:flex;gap:2rem;align-items:center;flex-wrap:wrap}.score{font-size:3rem;"
    "font-weight:700}.fail{color:var(--bad);font-weight:600}.unknown{color:var(--doubt)}"
    ".pass{color:var(--good)}.na{color:var(--none)}code{background:#f6f8fa;padding:.1em .3em}"
    "details{margin:.2rem 0}small{color:#59636e}@media print{body{margin:0;max-width:none;"
    "font-size:10pt}details{break-inside:avoid}tr{break-inside:avoid}h2{break-after:avoid}}"
    "</style>";

std::string_view ClassOf(Standing standing) {
  switch (standing) {
    case Standing::kPass:
      return "pass";
    case Standing::kFail:
      return "fail";
    case Standing::kUnknown:
      return "unknown";
    case Standing::kNotApplicable:
      return "na";
  }
  return "unknown";
}

struct Tally {
  int by_standing[4] = {};
  int total() const { return by_standing[0] + by_standing[1] + by_standing[2] + by_standing[3]; }
};

// One bar for each class of checks: failed, cannot tell, passed, not applicable.
std::string Bars(const Assessment& assessment) {
  std::map<std::string, Tally> areas;
  int most = 1;
  for (const CheckResult& result : assessment.results) {
    Tally& tally = areas[result.check->area];
    ++tally.by_standing[static_cast<std::size_t>(result.standing)];
    most = std::max(most, tally.total());
  }
  constexpr int kRow = 24;
  constexpr int kWidth = 480;
  std::string out = "<svg role=\"img\" aria-label=\"Results by class\" viewBox=\"0 0 700 " +
                    std::to_string(static_cast<int>(areas.size()) * kRow) +
                    "\" width=\"100%\" font-size=\"13\">";
  int y = 0;
  for (const auto& [area, tally] : areas) {
    out += "<text x=\"0\" y=\"" + std::to_string(y + 16) + "\">" + EscapeXml(area) + "</text>";
    int x = 140;
    for (const Standing standing :
         {Standing::kFail, Standing::kUnknown, Standing::kPass, Standing::kNotApplicable}) {
      const int count = tally.by_standing[static_cast<std::size_t>(standing)];
      const int width = count * kWidth / most;
      const std::string_view colour = standing == Standing::kFail      ? "#b3261e"
                                      : standing == Standing::kUnknown ? "#d4a72c"
                                      : standing == Standing::kPass    ? "#1a7f37"
                                                                       : "#d0d7de";
      if (count > 0) {
        out += "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y + 3) +
               "\" width=\"" + std::to_string(std::max(2, width)) + "\" height=\"17\" fill=\"" +
               std::string(colour) + "\"><title>" + std::to_string(count) + " " +
               std::string(Name(standing)) + "</title></rect>";
        x += std::max(2, width);
      }
    }
    out += "<text x=\"" + std::to_string(x + 6) + "\" y=\"" + std::to_string(y + 16) + "\">" +
           std::to_string(tally.by_standing[static_cast<std::size_t>(Standing::kFail)]) + " of " +
           std::to_string(tally.total()) + " failed</text>";
    y += kRow;
  }
  return out + "</svg>";
}

// Failures by likelihood and impact.
std::string HeatMap(const Assessment& assessment) {
  int cells[5][5] = {};
  for (const CheckResult& result : assessment.results) {
    if (result.standing == Standing::kFail) {
      ++cells[result.check->likelihood - 1][result.check->impact - 1];
    }
  }
  std::string out = "<table style=\"width:auto\"><tr><th>likelihood \\ impact</th>";
  for (int impact = 1; impact <= 5; ++impact) {
    out += "<th>" + std::to_string(impact) + "</th>";
  }
  out += "</tr>";
  for (int likelihood = 5; likelihood >= 1; --likelihood) {
    out += "<tr><th>" + std::to_string(likelihood) + "</th>";
    for (int impact = 1; impact <= 5; ++impact) {
      const std::string severity = RiskSeverity(likelihood * impact);
      const std::string_view colour = severity == "critical" ? "#ffcecb"
                                      : severity == "high"   ? "#ffd8b5"
                                      : severity == "medium" ? "#fff8c5"
                                                             : "#dafbe1";
      const int count = cells[likelihood - 1][impact - 1];
      out += "<td style=\"background:" + std::string(colour) + ";text-align:center;width:3rem\">" +
             (count > 0 ? "<b>" + std::to_string(count) + "</b>" : "·") + "</td>";
    }
    out += "</tr>";
  }
  return out + "</table>";
}

std::string Row(const CheckResult& result) {
  const CheckSpec& check = *result.check;
  std::string evidence;
  for (const Observation& seen : result.evidence) {
    evidence +=
        "<div><code>" + EscapeXml(seen.where) + "</code> " + EscapeXml(seen.value) + "</div>";
  }
  return "<tr><td class=\"" + std::string(ClassOf(result.standing)) + "\">" +
         std::string(Name(result.standing)) + "</td><td>" +
         (result.standing == Standing::kFail ? EscapeXml(check.severity()) : "") + "</td><td><b>" +
         EscapeXml(check.title) + "</b><br><small>" + EscapeXml(check.id) +
         (result.excepted_by.empty()
              ? ""
              : "; exception of " + EscapeXml(result.excepted_by + ": " + result.reason)) +
         "</small><details><summary>" + EscapeXml(result.why) + "</summary>" + evidence + "<p>" +
         EscapeXml(check.why) + "</p><p>Fix: " + EscapeXml(check.fix) +
         (check.command.empty() ? "" : "<br><code>" + EscapeXml(check.command) + "</code>") +
         "</p></details></td></tr>";
}

}  // namespace

std::string Html(const Assessment& assessment, const ReportHead& head) {
  std::string out =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
      "name=\"viewport\" content=\"width=device-width\"><title>Assessment of " +
      EscapeXml(head.node) + "</title>" + std::string(kStyle) +
      "</head><body><div class=\"head\"><div><h1>Assessment of " + EscapeXml(head.node) +
      "</h1><small>" + FormatTime(head.when) + "</small></div><div class=\"score\">" +
      std::to_string(assessment.score) + "<small> / 100</small></div><div>";
  for (const Standing standing :
       {Standing::kFail, Standing::kUnknown, Standing::kPass, Standing::kNotApplicable}) {
    out += "<div class=\"" + std::string(ClassOf(standing)) + "\">" +
           std::to_string(assessment.Count(standing)) + " " + std::string(Name(standing)) +
           "</div>";
  }
  out += "</div></div><h2>Results by class</h2>" + Bars(assessment) +
         "<h2>Failures by likelihood and impact</h2>" + HeatMap(assessment) +
         "<h2>What to do first</h2>";
  const auto todo = assessment.ToDo();
  out += todo.empty() ? "<p>Nothing failed.</p>" : "<ol>";
  for (std::size_t i = 0; i < todo.size() && i < 10; ++i) {
    out += "<li><b>" + EscapeXml(todo[i]->check->title) + "</b> (" + todo[i]->check->severity() +
           "): " + EscapeXml(todo[i]->check->fix) + "</li>";
  }
  out += todo.empty() ? "" : "</ol>";
  out += "<h2>All results</h2><table><tr><th>Result</th><th>Severity</th><th>Check</th></tr>";
  for (const Standing standing :
       {Standing::kFail, Standing::kUnknown, Standing::kPass, Standing::kNotApplicable}) {
    for (const CheckResult& result : assessment.results) {
      if (result.standing == standing) {
        out += Row(result);
      }
    }
  }
  return out + "</table></body></html>\n";
}

}  // namespace ringfence::assure

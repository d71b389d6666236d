// The report that prints well: one file, no script, nothing from elsewhere.

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "assure/assess_report.h"
#include "assure/report_page.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kFirstShown = 10;
// The worst first, in bars and sums.
constexpr Standing kStandings[] = {Standing::kFail, Standing::kUnknown, Standing::kPass,
                                   Standing::kNotApplicable};

std::string ClassOf(Standing standing) {
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
  int Of(Standing standing) const { return by_standing[static_cast<std::size_t>(standing)]; }
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
  std::string out = "<div class=\"bars\">";
  for (const auto& [area, tally] : areas) {
    out += "<span>" + EscapeXml(area) +
           "</span><div class=\"bar\" style=\"width:" + std::to_string(tally.total() * 100 / most) +
           "%\">";
    for (const Standing standing : kStandings) {
      const std::string count = std::to_string(tally.Of(standing));
      if (tally.Of(standing) > 0) {
        out += "<i class=\"" + ClassOf(standing) + "\" style=\"flex:" + count + "\" title=\"" +
               count + " " + std::string(Name(standing)) + "\"></i>";
      }
    }
    out += "</div><span>" + std::to_string(tally.Of(Standing::kFail)) + " of " +
           std::to_string(tally.total()) + " failed</span>";
  }
  return out + "</div>";
}

std::string HeatMap(const Assessment& assessment) {
  int cells[5][5] = {};
  for (const CheckResult& result : assessment.results) {
    if (result.standing == Standing::kFail) {
      ++cells[result.check->likelihood - 1][result.check->impact - 1];
    }
  }
  return HeatTable(cells);
}

std::string Evidence(const CheckResult& result) {
  std::string out;
  for (const Observation& seen : result.evidence) {
    out += "<div><code>" + EscapeXml(seen.where) + "</code> " + EscapeXml(seen.value) + "</div>";
  }
  return out;
}

std::string FixOf(const CheckSpec& check) {
  return "<div>Fix: " + EscapeXml(check.fix) +
         (check.command.empty() ? "" : "<br><code>" + EscapeXml(check.command) + "</code>") +
         "</div>";
}

// What matters is there on paper too; the reasons and what was read are a click away.
std::string Row(const CheckResult& result) {
  const CheckSpec& check = *result.check;
  const bool failed = result.standing == Standing::kFail;
  const std::string severity = check.severity();
  return "<tr><td>" +
         (failed ? "<span class=\"tag " + severity + "\">" + severity + "</span>"
                 : "<span class=\"" + ClassOf(result.standing) + "\">" +
                       std::string(Name(result.standing)) + "</span>") +
         "</td><td class=\"wide\"><b>" + EscapeXml(check.title) + "</b> <small>" +
         EscapeXml(check.id) +
         (result.excepted_by.empty()
              ? ""
              : "; exception of " + EscapeXml(result.excepted_by + ": " + result.reason)) +
         "</small><div>Seen: " + EscapeXml(result.why) + "</div>" + (failed ? FixOf(check) : "") +
         "<details class=\"more\"><summary>Why it matters, and what was read</summary><p>" +
         EscapeXml(check.why) + "</p>" + Evidence(result) + (failed ? "" : FixOf(check)) +
         "</details></td></tr>";
}

std::string Rows(std::vector<const CheckResult*> results) {
  std::stable_sort(results.begin(), results.end(), [](const CheckResult* a, const CheckResult* b) {
    return a->check->likelihood * a->check->impact > b->check->likelihood * b->check->impact;
  });
  std::string out = "<table>";
  for (const CheckResult* result : results) {
    out += Row(*result);
  }
  return out + "</table>";
}

// What failed or cannot be told is open to the eye; the rest, of which there is much, is folded.
std::string Results(const Assessment& assessment) {
  constexpr std::string_view kHeads[] = {"Failed", "Cannot tell", "Passed", "Not applicable"};
  std::string out;
  for (std::size_t i = 0; i < std::size(kStandings); ++i) {
    std::vector<const CheckResult*> results;
    for (const CheckResult& result : assessment.results) {
      if (result.standing == kStandings[i]) {
        results.push_back(&result);
      }
    }
    if (results.empty()) {
      continue;
    }
    const std::string head = std::string(kHeads[i]) + " (" + std::to_string(results.size()) + ")";
    out += "<h2>" + head + "</h2>";
    out += i < 2 ? Rows(results)
                 : "<details><summary>Show them</summary>" + Rows(results) + "</details>";
  }
  return out;
}

std::string FirstThings(const Assessment& assessment) {
  const auto todo = assessment.ToDo();
  if (todo.empty()) {
    return "<p>Nothing failed.</p>";
  }
  std::string out = "<ol>";
  for (std::size_t i = 0; i < todo.size() && i < kFirstShown; ++i) {
    const CheckSpec& check = *todo[i]->check;
    out += "<li><b>" + EscapeXml(check.title) + "</b> <span class=\"tag " + check.severity() +
           "\">" + check.severity() + "</span><br>" + EscapeXml(check.fix) + "</li>";
  }
  return out + "</ol>";
}

}  // namespace

std::string Html(const Assessment& assessment, const ReportHead& head) {
  std::string out = PageBegin("Assessment of " + head.node) +
                    "<div class=\"head\"><div><h1>Assessment of " + EscapeXml(head.node) +
                    "</h1><small>" + FormatTime(head.when) + "</small></div><div class=\"score\">" +
                    std::to_string(assessment.score) + "<small> / 100</small></div><div>";
  for (const Standing standing : kStandings) {
    out += "<div class=\"" + ClassOf(standing) + "\">" +
           std::to_string(assessment.Count(standing)) + " " + std::string(Name(standing)) +
           "</div>";
  }
  return out + "</div></div><h2>What to do first</h2>" + FirstThings(assessment) +
         "<h2>Results by class</h2>" + Bars(assessment) +
         "<h2>Failures by likelihood and impact</h2>" + HeatMap(assessment) + Results(assessment) +
         "</body></html>\n";
}

}  // namespace ringfence::assure

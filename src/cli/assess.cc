// `ringfence assess`

#include "cli/assess.h"

#include <algorithm>

#include "base/code.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "cli/suggest.h"
#include "cli/text.h"

namespace ringfence::cli {
namespace {

using assure::Assessment;
using assure::CheckResult;
using assure::CheckSpec;
using assure::Standing;

// At most this many lines, so that it fits a screen of 24.
constexpr std::size_t kFirstShown = 5;

void PrintSummary(Console& console, const Assessment& assessment, const std::string& node) {
  const auto todo = assessment.ToDo();
  console.out() << console.Bold(Safe(node)) << "  score "
                << console.Bold(std::to_string(assessment.score)) << " of 100  "
                << Coloured(console, Standing::kFail,
                            std::to_string(assessment.Count(Standing::kFail)) + " failed")
                << ", "
                << Coloured(console, Standing::kPass,
                            std::to_string(assessment.Count(Standing::kPass)) + " passed")
                << ", "
                << Coloured(console, Standing::kUnknown,
                            std::to_string(assessment.Count(Standing::kUnknown)) + " cannot tell")
                << ", " << assessment.Count(Standing::kNotApplicable) << " not applicable\n";
  std::size_t by_severity[4] = {};
  std::size_t excepted = 0;
  for (const CheckResult& result : assessment.results) {
    if (result.standing == Standing::kFail) {
      excepted += result.excepted_by.empty() ? 0 : 1;
      ++by_severity[std::clamp(assure::SeverityRank(result.check->severity()), 1, 4) - 1];
    }
  }
  console.out() << "failed by severity: critical " << by_severity[3] << ", high " << by_severity[2]
                << ", medium " << by_severity[1] << ", low " << by_severity[0];
  console.out() << (excepted > 0 ? "; " + std::to_string(excepted) + " with an exception" : "")
                << '\n';
  if (!todo.empty()) {
    console.out() << '\n' << console.Bold("Do first") << ", as these do not hold\n";
  }
  for (std::size_t i = 0; i < todo.size() && i < kFirstShown; ++i) {
    const CheckSpec& check = *todo[i]->check;
    console.out() << ' ' << i + 1 << ". " << Coloured(console, Standing::kFail, check.severity())
                  << "  " << Safe(check.title) << "  (" << Safe(check.id) << ")\n    "
                  << Safe(check.command.empty() ? check.fix : check.command) << '\n';
  }
  for (std::size_t i = 0; i < assessment.expired.size() && i < 3; ++i) {
    console.Warn("exception no longer in force: " + assessment.expired[i]);
  }
  console.out()
      << "\nall of it: --all; why: ringfence check explain ID; for others: --report html\n";
}

struct Report {
  std::string_view name;
  std::string (*make)(const Assessment&, const assure::ReportHead&);
};
constexpr Report kReports[] = {{"sarif", assure::Sarif},
                               {"markdown", assure::Markdown},
                               {"html", assure::Html},
                               {"junit", assure::Junit},
                               {"prometheus", assure::Prometheus}};

Result<int> AssessCommand(Invocation& invocation) {
  RINGFENCE_ASSIGN(const int rank, FailRankOf(invocation.parsed));
  const Report* report = nullptr;
  if (const auto name = invocation.parsed.Value("report")) {
    for (const Report& known : kReports) {
      report = known.name == *name ? &known : report;
    }
    if (report == nullptr) {
      return Error{
          Code::kInvalidArgument,
          "--report: \"" + *name + "\" is none of sarif, markdown, html, junit, prometheus",
          DidYouMean(*name, {"sarif", "markdown", "html", "junit", "prometheus"},
                     "choose one of them; JSON and YAML are --output")};
    }
  }
  if (report != nullptr && invocation.parsed.Has("output")) {
    return Error{Code::kInvalidArgument, "--report and --output do not go together",
                 "for " + invocation.parsed.Value("output").value_or("JSON") +
                     " leave --report out; for " + std::string(report->name) +
                     " leave --output out"};
  }
  Bench bench;
  RINGFENCE_TRY(SetUp(invocation, bench));
  const Assessment assessment = assure::Assess(bench.checks, bench.Context(), bench.exceptions);
  Console& console = invocation.console;
  if (report != nullptr) {
    console.out() << report->make(assessment, bench.head);
  } else if (!console.table()) {
    console.Show(assure::AssessmentJson(assessment, bench.head));
  } else {
    if (invocation.parsed.Has("all")) {
      PrintResults(console, assessment);
      console.out() << '\n';
    }
    PrintSummary(console, assessment, bench.head.node);
  }
  for (const std::string& problem : bench.bulletins.problems) {
    console.Warn("bulletin not used: " + problem);
  }
  return assessment.FailsAt(rank) ? kExitFindings : kExitOk;
}

}  // namespace

CommandTable AssessCommands() {
  return {
      {.path = "assess",
       .group = Group::kEvidence,
       .summary = "Say how weak this machine is, and what to do first.",
       .details =
           "Reads files only, changes nothing, needs no server. What cannot be read is said to be\n"
           "so; run it as root to see the most. docs/assess.md has the arithmetic of the score.",
       .options = {AssessOption("root"),
                   SettingOption(Setting::kNodeDriverRoot),
                   AssessOption("csaf"),
                   AssessOption("checks"),
                   AssessOption("class"),
                   AssessOption("fail-on"),
                   AssessOption("exceptions"),
                   {.name = "report",
                    .value = "FORMAT",
                    .help = "write a sarif, markdown, html, junit or prometheus report",
                    .completes = Completes::kWords,
                    .words = "sarif markdown html junit prometheus"},
                   {.name = "all", .help = "every result, before the summary"}},
       .examples = {{"ringfence assess", "this machine, in one screen"},
                    {"ringfence assess --root /mnt/node7 --fail-on high -o json",
                     "a captured root, for a pipeline"},
                    {"ringfence assess --csaf bulletins --report html > report.html",
                     "for people; prints well"}},
       .exit_codes = "0, or 1 with --fail-on when something fails",
       .handler = AssessCommand},
  };
}

}  // namespace ringfence::cli

// `ringfence assess` and `ringfence check ...`

#include <algorithm>
#include <memory>

#include "assure/assess_report.h"
#include "assure/check_run.h"
#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/suggest.h"
#include "cli/text.h"
#include "os/file.h"
#include "os/identity.h"

namespace ringfence::cli {
namespace {

using assure::Assessment;
using assure::CheckResult;
using assure::CheckSpec;
using assure::Standing;

// Beside the program in a build, in its own folder when installed.
Result<std::string> ChecksFolder(const Parsed& parsed) {
  if (const auto given = parsed.Value("checks")) {
    return *given;
  }
  RINGFENCE_ASSIGN(const std::string own, os::OwnPath());
  const std::string folder = own.substr(0, own.rfind('/'));
  const std::string built = folder + "/content/checks";
  return os::Exists(built) ? built : folder + "/../share/ringfence/checks";
}

// Everything that a run needs; the pieces refer to each other, so it stays where it is made.
struct Bench {
  std::vector<CheckSpec> checks;
  std::unique_ptr<assure::MachineView> machine;
  assure::BulletinSet bulletins;
  std::unique_ptr<assure::AdvisoryIndex> index;
  std::vector<assure::CheckException> exceptions;
  assure::ReportHead head;

  assure::ProbeContext Context() const { return {*machine, index.get(), head.when}; }
};

Status SetUp(Invocation& invocation, Bench& bench) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const std::string folder, ChecksFolder(parsed));
  auto checks = assure::LoadChecks(folder);
  if (!checks.has_value()) {
    return Prefix("--checks", checks.error());
  }
  bench.checks = std::move(*checks);
  if (const auto area = parsed.Value("class")) {
    std::erase_if(bench.checks, [&](const CheckSpec& check) { return check.area != *area; });
    if (bench.checks.empty()) {
      return Error{Code::kNotFound, "no check of the class \"" + *area + "\"",
                   "`ringfence check list` shows the classes"};
    }
  }
  bench.head.root = parsed.Value("root").value_or("/");
  RINGFENCE_ASSIGN(bench.machine, assure::OpenMachine(bench.head.root));
  bench.head.when = invocation.clock.Now();
  const auto name = bench.machine->Read("/etc/hostname", 4096);
  bench.head.node = name.has_value() ? std::string(assure::Trim(*name)) : "this machine";
  if (const auto csaf = parsed.Value("csaf")) {
    RINGFENCE_ASSIGN(bench.bulletins, assure::LoadBulletins(*csaf));
    bench.index = std::make_unique<assure::AdvisoryIndex>(bench.bulletins.bulletins);
  }
  if (const auto file = parsed.Value("exceptions")) {
    RINGFENCE_ASSIGN(const std::string text, os::ReadText(*file, std::size_t{1} << 20U));
    RINGFENCE_ASSIGN(bench.exceptions, assure::ParseExceptions(text, *file));
  }
  return {};
}

std::string Coloured(const Console& console, Standing standing, const std::string& text) {
  return standing == Standing::kFail      ? console.Bad(text)
         : standing == Standing::kPass    ? console.Good(text)
         : standing == Standing::kUnknown ? console.Doubtful(text)
                                          : console.Dim(text);
}

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
    console.out() << '\n' << console.Bold("Do first") << '\n';
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

void PrintResults(Console& console, const Assessment& assessment, bool all) {
  Table table({"RESULT", "SEVERITY", "CHECK", "SEEN"});
  for (const Standing standing :
       {Standing::kFail, Standing::kUnknown, Standing::kPass, Standing::kNotApplicable}) {
    for (const CheckResult& result : assessment.results) {
      if (result.standing == standing && (all || standing == Standing::kFail)) {
        table.Add(
            {std::string(Name(standing)), result.check->severity(), result.check->id, result.why});
      }
    }
  }
  table.Print(console);
}

Result<int> FailRank(const Parsed& parsed) {
  const std::string text = parsed.Value("fail-on").value_or("");
  if (text.empty()) {
    return 99;
  }
  for (const std::string_view name : {"low", "medium", "high", "critical"}) {
    if (text == name) {
      return assure::SeverityRank(name);
    }
  }
  return Error{Code::kInvalidArgument,
               "--fail-on: \"" + text + "\" is none of low, medium, high, critical",
               DidYouMean(text, {"low", "medium", "high", "critical"}, "choose one of them")};
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
  RINGFENCE_ASSIGN(const int rank, FailRank(invocation.parsed));
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
      PrintResults(console, assessment, true);
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
  const OptionSpec root = {.name = "root",
                           .value = "DIR",
                           .help = "a captured root to look at instead of this machine",
                           .completes = Completes::kFolder};
  const OptionSpec checks = {.name = "checks",
                             .value = "DIR",
                             .help = "folder with the checks (default: those shipped)",
                             .completes = Completes::kFolder};
  const OptionSpec area = {.name = "class", .value = "NAME", .help = "only checks of this class"};
  const OptionSpec csaf = {.name = "csaf",
                           .value = "DIR",
                           .help = "NVIDIA's bulletins, for the checks that need them",
                           .completes = Completes::kFolder};
  const OptionSpec fail = {.name = "fail-on",
                           .value = "SEVERITY",
                           .help = "exit with 1 when a check at or above it fails",
                           .completes = Completes::kWords,
                           .words = "low medium high critical"};
  const OptionSpec exceptions = {.name = "exceptions",
                                 .value = "FILE",
                                 .help = "findings that somebody answers for until a day (YAML)",
                                 .completes = Completes::kFile};
  return {
      {.path = "assess",
       .group = Group::kEvidence,
       .summary = "Say how weak this machine is, and what to do first.",
       .details =
           "Reads files only, changes nothing, needs no server. What cannot be read is said to be\n"
           "so; run it as root to see the most. docs/assess.md has the arithmetic of the score.",
       .options = {root,
                   csaf,
                   checks,
                   area,
                   fail,
                   exceptions,
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

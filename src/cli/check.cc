// `ringfence check ...`

#include "base/code.h"
#include "cli/assess.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "cli/suggest.h"
#include "cli/text.h"

namespace ringfence::cli {
namespace {

using assure::Assessment;
using assure::CheckResult;
using assure::CheckSpec;

Result<const CheckSpec*> FindCheck(const std::vector<CheckSpec>& checks, const std::string& id) {
  std::vector<std::string> ids;
  for (const CheckSpec& check : checks) {
    if (check.id == id) {
      return &check;
    }
    ids.push_back(check.id);
  }
  return Error{Code::kNotFound, "there is no check \"" + id + "\"",
               DidYouMean(id, ids, "`ringfence check list` shows them")};
}

Result<int> CheckList(Invocation& invocation) {
  Bench bench;
  RINGFENCE_TRY(SetUp(invocation, bench));
  Console& console = invocation.console;
  Table table({"CLASS", "CHECK", "SEVERITY", "TITLE"});
  JsonArray items;
  for (const CheckSpec& check : bench.checks) {
    const std::string note = check.broken.empty() ? check.title : "broken: " + check.broken;
    table.Add({check.area, check.id, check.severity(), note});
    items.push_back(JsonObject{{"id", check.id},
                               {"class", check.area},
                               {"severity", check.severity()},
                               {"title", check.title},
                               {"broken", check.broken}});
  }
  if (console.table()) {
    table.Print(console);
  } else {
    console.Show(items);
  }
  return kExitOk;
}

std::string Joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) {
    out += (out.empty() ? "" : ", ") + text;
  }
  return out;
}

void PrintCheck(Console& console, const CheckSpec& check) {
  FactList facts;
  facts.Add("Check", check.id);
  facts.Add("Holds when", check.title);
  facts.Add("Class", check.area);
  facts.Add("Severity", check.severity() + " (likelihood " + std::to_string(check.likelihood) +
                            " x impact " + std::to_string(check.impact) + ")");
  facts.Add("Why", check.why);
  facts.Add("Reads", check.probe.kind + " " + Joined(check.probe.paths) + " " + check.probe.key);
  facts.Add("Wants", check.expect.kind + " " + Joined(check.expect.values));
  facts.Add("Fix", check.fix);
  facts.Add("Command", check.command);
  facts.Add("Controls", Joined(check.controls));
  facts.Add("Broken", check.broken);
  facts.Print(console);
}

Json CheckJson(const CheckSpec& check) {
  JsonArray controls;
  for (const std::string& control : check.controls) {
    controls.push_back(Json(control));
  }
  return JsonObject{{"id", check.id},
                    {"title", check.title},
                    {"class", check.area},
                    {"severity", check.severity()},
                    {"likelihood", check.likelihood},
                    {"impact", check.impact},
                    {"why", check.why},
                    {"probe", check.probe.kind},
                    {"expect", check.expect.kind},
                    {"fix", check.fix},
                    {"command", check.command},
                    {"controls", std::move(controls)},
                    {"broken", check.broken}};
}

Result<int> CheckShow(Invocation& invocation) {
  Bench bench;
  RINGFENCE_TRY(SetUp(invocation, bench));
  RINGFENCE_ASSIGN(const CheckSpec* check, FindCheck(bench.checks, invocation.parsed.Argument(0)));
  if (invocation.console.table()) {
    PrintCheck(invocation.console, *check);
  } else {
    invocation.console.Show(CheckJson(*check));
  }
  return kExitOk;
}

Result<int> CheckRun(Invocation& invocation) {
  RINGFENCE_ASSIGN(const int rank, FailRankOf(invocation.parsed));
  Bench bench;
  RINGFENCE_TRY(SetUp(invocation, bench));
  std::vector<CheckSpec> chosen;
  for (const std::string& id : invocation.parsed.arguments) {
    RINGFENCE_ASSIGN(const CheckSpec* check, FindCheck(bench.checks, id));
    chosen.push_back(*check);
  }
  const std::vector<CheckSpec>& checks = chosen.empty() ? bench.checks : chosen;
  const Assessment assessment = assure::Assess(checks, bench.Context(), bench.exceptions);
  if (invocation.console.table()) {
    PrintResults(invocation.console, assessment);
  } else {
    invocation.console.Show(assure::AssessmentJson(assessment, bench.head));
  }
  return assessment.FailsAt(rank) ? kExitFindings : kExitOk;
}

Result<int> CheckExplain(Invocation& invocation) {
  Bench bench;
  RINGFENCE_TRY(SetUp(invocation, bench));
  RINGFENCE_ASSIGN(const CheckSpec* check, FindCheck(bench.checks, invocation.parsed.Argument(0)));
  const CheckResult result = assure::RunCheck(*check, bench.Context());
  Console& console = invocation.console;
  if (!console.table()) {
    Assessment one;
    one.results.push_back(result);
    console.Show(assure::AssessmentJson(one, bench.head).at("results").at(0));
    return kExitOk;
  }
  PrintCheck(console, *check);
  console.out() << '\n'
                << Coloured(console, result.standing, std::string(Name(result.standing))) << ": "
                << Safe(result.why) << '\n';
  for (const assure::Observation& seen : result.evidence) {
    console.out() << "  " << Safe(seen.where) << ": " << Safe(seen.value) << '\n';
  }
  return kExitOk;
}

Result<int> ChecksDocumentCommand(Invocation& invocation) {
  Bench bench;
  RINGFENCE_TRY(SetUp(invocation, bench));
  invocation.console.out() << assure::ChecksDocument(bench.checks);
  return kExitOk;
}

}  // namespace

CommandTable CheckCommands() {
  return {
      {.path = "check list",
       .group = Group::kEvidence,
       .summary = "List the checks.",
       .options = {AssessOption("checks"), AssessOption("class")},
       .examples = {{"ringfence check list", "all of them"},
                    {"ringfence check list --class driver", "of one class"}},
       .handler = CheckList},
      {.path = "check show",
       .group = Group::kEvidence,
       .summary = "Show a check: what it reads, what it wants, why, and how to mend it.",
       .options = {AssessOption("checks")},
       .arguments = {{.name = "CHECK", .help = "its id; `ringfence check list` shows them"}},
       .examples = {{"ringfence check show ssh-root-login", "one check"}},
       .handler = CheckShow},
      {.path = "check run",
       .group = Group::kEvidence,
       .summary = "Run some checks, or all.",
       .options = {AssessOption("root"), SettingOption(Setting::kNodeDriverRoot),
                   AssessOption("csaf"), AssessOption("checks"), AssessOption("class"),
                   AssessOption("fail-on"), AssessOption("exceptions")},
       .arguments =
           {{.name = "CHECK", .help = "their ids; none: all", .required = false, .repeated = true}},
       .examples = {{"ringfence check run ssh-root-login ssh-passwords", "two of them"},
                    {"ringfence check run --class driver --root /mnt/node7", "of a captured root"}},
       .exit_codes = "0, or 1 with --fail-on when something fails",
       .handler = CheckRun},
      {.path = "check explain",
       .group = Group::kEvidence,
       .summary = "Run a check and show what it saw, and how that decided.",
       .options = {AssessOption("root"), SettingOption(Setting::kNodeDriverRoot),
                   AssessOption("csaf"), AssessOption("checks")},
       .arguments = {{.name = "CHECK", .help = "its id"}},
       .examples = {{"ringfence check explain nvidia-profiling", "on this machine"}},
       .handler = CheckExplain},
      {.path = "__checks",
       .summary = "Print docs/checks.md.",
       .options = {AssessOption("checks")},
       .handler = ChecksDocumentCommand,
       .hidden = true},
  };
}

}  // namespace ringfence::cli

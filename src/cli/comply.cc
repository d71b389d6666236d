// `ringfence comply ...`

#include "cli/comply.h"

#include <algorithm>
#include <iterator>

#include "assure/comply_report.h"
#include "assure/oscal_report.h"
#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/suggest.h"
#include "cli/text.h"
#include "os/file.h"

namespace ringfence::cli {
namespace {

using assure::ControlState;
using assure::ControlStatus;
using assure::FrameworkStatus;

std::string Styled(const Console& console, ControlState state, const std::string& text) {
  return state == ControlState::kFailing   ? console.Bad(text)
         : state == ControlState::kProven  ? console.Good(text)
         : state == ControlState::kUnknown ? console.Doubtful(text)
                                           : text;
}

// "--status failing": which to show.
Result<std::optional<ControlState>> WantedState(const Parsed& parsed) {
  const auto text = parsed.Value("status");
  if (!text.has_value()) {
    return std::optional<ControlState>();
  }
  std::vector<std::string> names;
  for (const ControlState state : assure::kControlStates) {
    std::string name(Name(state));
    std::replace(name.begin(), name.end(), ' ', '-');
    if (name == *text) {
      return std::optional(state);
    }
    names.push_back(name);
  }
  return Error{
      Code::kInvalidArgument, "--status: \"" + *text + "\" is no state of a control",
      DidYouMean(*text, names, "proven, configured, failing, cannot-tell or not-automated")};
}

struct FailOn {
  bool failing = false;
  bool unproven = false;

  bool Hit(const std::vector<FrameworkStatus>& statuses) const {
    for (const FrameworkStatus& status : statuses) {
      for (const ControlStatus& one : status.controls) {
        const bool open =
            one.state == ControlState::kConfigured || one.state == ControlState::kUnknown;
        if ((one.state == ControlState::kFailing && !one.accepted && failing) ||
            (open && unproven)) {
          return true;
        }
      }
    }
    return false;
  }
};

Result<FailOn> FailOnOf(const Parsed& parsed) {
  const auto text = parsed.Value("fail-on");
  if (!text.has_value()) {
    return FailOn{};
  }
  if (*text == "failing" || *text == "unproven") {
    return FailOn{true, *text == "unproven"};
  }
  return Error{Code::kInvalidArgument,
               "--fail-on: \"" + *text + "\" is neither failing nor unproven",
               DidYouMean(*text, {"failing", "unproven"}, "choose one of them")};
}

void PrintCounts(Console& console, const std::vector<FrameworkStatus>& statuses) {
  Table table(
      {"FRAMEWORK", "CONTROLS", "PROVEN", "CONFIGURED", "FAILING", "CANNOT TELL", "NOT AUTOMATED"});
  for (const FrameworkStatus& status : statuses) {
    std::vector<std::string> row = {status.framework->id, std::to_string(status.controls.size())};
    for (const ControlState state : assure::kControlStates) {
      row.push_back(std::to_string(status.Count(state)));
    }
    table.Add(std::move(row));
  }
  table.Print(console);
}

void PrintControls(Invocation& invocation, const FrameworkStatus& status,
                   const std::optional<ControlState>& only) {
  Console& console = invocation.console;
  Table table({"CONTROL", "STATUS", "TITLE", "WHY"});
  for (const ControlStatus& one : status.controls) {
    if (only.has_value() && one.state != *only) {
      continue;
    }
    std::string why = one.state == ControlState::kNotAutomated ? "a person must show it" : one.why;
    if (one.proven_at.has_value()) {
      why = RelativeTime(FormatTime(*one.proven_at), invocation.clock.Now()) + " by " + why;
    }
    table.Add({one.control->id, std::string(Name(one.state)), one.control->title, why});
  }
  if (!table.empty()) {
    console.out() << '\n' << console.Bold(Safe(status.framework->title)) << '\n';
    table.Print(console);
  }
}

Result<int> ComplyStatus(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto only, WantedState(invocation.parsed));
  RINGFENCE_ASSIGN(const FailOn fail_on, FailOnOf(invocation.parsed));
  Dossier dossier;
  RINGFENCE_TRY(Compile(invocation, dossier));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(assure::ComplianceJson(dossier.statuses, dossier.evidence, dossier.bench.head));
    return fail_on.Hit(dossier.statuses) ? kExitFindings : kExitOk;
  }
  PrintCounts(console, dossier.statuses);
  const bool all = invocation.parsed.Has("all") || invocation.parsed.Has("framework");
  for (const FrameworkStatus& status : dossier.statuses) {
    if (only.has_value() || !all) {
      PrintControls(invocation, status, only.value_or(ControlState::kFailing));
    } else {
      PrintControls(invocation, status, std::nullopt);
    }
  }
  console.out() << "\none control: ringfence comply show CONTROL";
  console.out() << (all ? "\n" : "; all of them: --all or --framework NAME\n");
  return fail_on.Hit(dossier.statuses) ? kExitFindings : kExitOk;
}

void PrintEvidence(Console& console, const ControlStatus& status, Timestamp now) {
  if (!status.checks.empty()) {
    Table table({"CHECK", "RESULT", "SEEN"});
    for (const assure::CheckResult* result : status.checks) {
      table.Add(
          {result->check->id,
           std::string(Name(result->standing)) +
               (result->excepted_by.empty() ? "" : " (exception: " + result->excepted_by + ")"),
           result->why});
    }
    console.out() << '\n';
    table.Print(console);
  }
  if (!status.probes.empty()) {
    Table table({"PROBE", "NODE", "RESULT", "WHEN", "WHY"});
    for (const ControlStatus::Probe& probe : status.probes) {
      for (const assure::ProbeEvidence& one : probe.results) {
        table.Add({probe.name, one.node, one.result + (one.simulated ? " (GPUs simulated)" : ""),
                   RelativeTime(FormatTime(one.time), now), one.why});
      }
      if (probe.results.empty()) {
        table.Add({probe.name, "", "not run", "", ""});
      }
    }
    console.out() << '\n';
    table.Print(console);
  }
  if (!status.audit.empty()) {
    Table table({"AUDIT ENTRIES", "NEWEST", "WHEN", "SHOWS"});
    for (const ControlStatus::Audit& audit : status.audit) {
      const bool any = audit.newest.has_value();
      table.Add(
          {audit.query.action + (audit.query.proof ? " (proof)" : ""),
           any ? std::to_string(audit.newest->index) +
                     (audit.newest->proven ? ", under a signed checkpoint" : ", not yet proven")
               : "none seen",
           any ? RelativeTime(FormatTime(audit.newest->time), now) : "", audit.query.shows});
    }
    console.out() << '\n';
    table.Print(console);
  }
}

Result<int> ComplyShow(Invocation& invocation) {
  Dossier dossier;
  RINGFENCE_TRY(Compile(invocation, dossier));
  const auto found = assure::FindControl(dossier.frameworks, invocation.parsed.Argument(0));
  if (!found.has_value()) {
    std::vector<std::string> ids;
    for (const assure::Framework& framework : dossier.frameworks) {
      for (const assure::ControlSpec& control : framework.controls) {
        ids.push_back(control.id);
      }
    }
    Error error = found.error();
    error.hint = error.code == Code::kNotFound
                     ? DidYouMean(invocation.parsed.Argument(0), ids, error.hint)
                     : error.hint;
    return error;
  }
  for (const FrameworkStatus& framework : dossier.statuses) {
    for (const ControlStatus& status : framework.controls) {
      if (status.control != *found) {
        continue;
      }
      Console& console = invocation.console;
      if (!console.table()) {
        console.Show(assure::ControlJson(status));
        return kExitOk;
      }
      const Timestamp now = invocation.clock.Now();
      FactList facts;
      facts.Add("Control", status.control->id + " " + status.control->title);
      facts.Add("Framework", framework.framework->title);
      facts.Add("Baseline", status.control->baseline);
      facts.Add("Status", Styled(console, status.state, std::string(Name(status.state))) +
                              (status.accepted ? ", accepted for now" : ""));
      facts.Add("Proven", status.proven_at.has_value()
                              ? RelativeTime(FormatTime(*status.proven_at), now)
                              : "");
      facts.Add("By", status.state == ControlState::kNotAutomated ? "" : status.why);
      facts.Add("A person must show", status.control->person);
      facts.Print(console);
      PrintEvidence(console, status, now);
    }
  }
  return kExitOk;
}

using Writer = std::string (*)(const std::vector<FrameworkStatus>&, const assure::Evidence&,
                               const assure::ReportHead&);

std::string JsonReport(const std::vector<FrameworkStatus>& statuses,
                       const assure::Evidence& evidence, const assure::ReportHead& head) {
  return PrettyJson(assure::ComplianceJson(statuses, evidence, head)) + "\n";
}

struct ReportFormat {
  std::string_view name;
  Writer write;
};
constexpr ReportFormat kFormats[] = {{"oscal-ar", assure::OscalAssessmentResults},
                                     {"oscal-poam", assure::OscalPoam},
                                     {"markdown", assure::ComplianceMarkdown},
                                     {"json", JsonReport},
                                     {"html", assure::ComplianceHtml}};

Result<int> ComplyReport(Invocation& invocation) {
  const std::string name = invocation.parsed.Value("format").value_or("markdown");
  const auto* const format =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [&](const ReportFormat& one) { return one.name == name; });
  if (format == std::end(kFormats)) {
    return Error{Code::kInvalidArgument,
                 "--format: \"" + name + "\" is none of oscal-ar, oscal-poam, markdown, json, html",
                 DidYouMean(name, {"oscal-ar", "oscal-poam", "markdown", "json", "html"},
                            "choose one of them")};
  }
  Dossier dossier;
  RINGFENCE_TRY(Compile(invocation, dossier));
  const std::string report = format->write(dossier.statuses, dossier.evidence, dossier.bench.head);
  if (const auto path = invocation.parsed.Value("out")) {
    RINGFENCE_TRY(os::WriteFile(*path, AsBytes(report)));
    invocation.console.Note("the report is in " + *path);
  } else {
    invocation.console.out() << report;
  }
  return kExitOk;
}

}  // namespace

CommandTable ComplyCommands() {
  std::vector<OptionSpec> status_options = ComplyOptions();
  status_options.push_back({.name = "status",
                            .value = "STATE",
                            .help = "only controls in this state",
                            .completes = Completes::kWords,
                            .words = "proven configured failing cannot-tell not-automated"});
  status_options.push_back({.name = "all", .help = "every control, not only the failing"});
  status_options.push_back({.name = "fail-on",
                            .value = "WHAT",
                            .help = "exit with 1 when a control is failing, or unproven",
                            .completes = Completes::kWords,
                            .words = "failing unproven"});
  std::vector<OptionSpec> report_options = ComplyOptions();
  report_options.push_back({.name = "format",
                            .value = "FORMAT",
                            .help = "oscal-ar, oscal-poam, markdown (default), json or html",
                            .completes = Completes::kWords,
                            .words = "oscal-ar oscal-poam markdown json html"});
  report_options.push_back(
      {.name = "out", .value = "FILE", .help = "write it there", .completes = Completes::kFile});
  CommandTable table = {
      {.path = "comply status",
       .group = Group::kEvidence,
       .summary = "Say where each control of NIST SP 800-53, HIPAA and GDPR stands.",
       .details =
           "Checks are run on this machine; results of probes and audit entries come from the\n"
           "server. A control is proven only when an attack on it was held, or the signed log\n"
           "shows it at work, not longer ago than --fresh. docs/compliance.md has the rules, and\n"
           "what Ringfence cannot show.",
       .options = status_options,
       .examples = {{"ringfence comply status", "all frameworks, and what fails"},
                    {"ringfence comply status --framework hipaa", "each standard of one"},
                    {"ringfence comply status --catalog catalog.json --profile baseline.json "
                     "--fail-on failing",
                     "a baseline of your own, for a pipeline"}},
       .exit_codes = "0, or 1 with --fail-on when a control is so",
       .handler = ComplyStatus},
      {.path = "comply show",
       .group = Group::kEvidence,
       .summary = "Show a control: its status, the evidence, and what a person must show.",
       .options = ComplyOptions(),
       .arguments = {{.name = "CONTROL",
                      .help = "as \"ac-2\", \"AC-2(1)\", \"164.312(b)\", \"gdpr:32\""}},
       .examples = {{"ringfence comply show sc-39", "process isolation"},
                    {"ringfence comply show 'hipaa:164.312(a)(1)'", "of the Security Rule"}},
       .handler = ComplyShow},
      {.path = "comply report",
       .group = Group::kEvidence,
       .summary = "Write a report about controls, for people or as OSCAL.",
       .details =
           "oscal-ar are assessment results, oscal-poam is a plan of action and milestones, both\n"
           "OSCAL 1.1.2. Identifiers in them are the same from run to run.",
       .options = report_options,
       .examples = {{"ringfence comply report --format html --out controls.html", "for people"},
                    {"ringfence comply report --framework nist-800-53 --format oscal-ar",
                     "for other tools"},
                    {"ringfence comply report --format oscal-poam --out poam.json",
                     "what must be mended"}},
       .handler = ComplyReport},
  };
  CommandTable evidence = EvidenceCommands();
  std::move(evidence.begin(), evidence.end(), std::back_inserter(table));
  return table;
}

}  // namespace ringfence::cli

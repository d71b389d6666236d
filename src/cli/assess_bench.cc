// What a run of checks needs, from the command line.

#include <algorithm>

#include "base/check.h"
#include "cli/assess.h"
#include "cli/settings.h"
#include "cli/suggest.h"
#include "cli/text.h"
#include "os/file.h"
#include "os/identity.h"

namespace ringfence::cli {
namespace {

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

}  // namespace

// A driver that was named, beside any root by the option and for this machine by the setting; else
// this machine's, where its device file is there already: asking NVML without one would have it
// made. Simulated GPUs are nothing that a machine is made of.
std::optional<assure::NvmlView> NvmlOf(const Invocation& invocation, const std::string& root) {
  const std::string driver = invocation.settings.Text(Setting::kNodeDriverRoot);
  if (invocation.parsed.Has("driver-root") || (root == "/" && driver != "auto")) {
    return assure::AskNvml(driver);
  }
  return root == "/" && os::Exists("/dev/nvidiactl") ? std::optional(assure::AskNvml("/"))
                                                     : std::nullopt;
}

using assure::Assessment;
using assure::CheckResult;
using assure::CheckSpec;
using assure::Standing;

Result<std::vector<CheckSpec>> ChecksFor(const Parsed& parsed) {
  RINGFENCE_ASSIGN(const std::string folder, ChecksFolder(parsed));
  auto checks = assure::LoadChecks(folder);
  if (!checks.has_value()) {
    return Prefix("--checks", checks.error());
  }
  if (checks->empty()) {
    return Error{Code::kNotFound, "there are no checks in " + folder,
                 "name a folder of checks, or leave --checks out"};
  }
  return checks;
}

Status SetUp(Invocation& invocation, Bench& bench) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(bench.checks, ChecksFor(parsed));
  if (const auto area = parsed.Value("class")) {
    std::vector<std::string> areas;
    for (const CheckSpec& check : bench.checks) {
      areas.push_back(check.area);
    }
    std::erase_if(bench.checks, [&](const CheckSpec& check) { return check.area != *area; });
    if (bench.checks.empty()) {
      return Error{Code::kNotFound, "no check of the class \"" + *area + "\"",
                   DidYouMean(*area, areas, "`ringfence check list` shows the classes")};
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
  bench.nvml = NvmlOf(invocation, bench.head.root);
  if (const auto file = parsed.Value("exceptions")) {
    RINGFENCE_ASSIGN(const std::string text, os::ReadText(*file, std::size_t{1} << 20U));
    RINGFENCE_ASSIGN(bench.exceptions, assure::ParseExceptions(text, *file));
  }
  return {};
}

Status MakeOwnFolder(const Invocation& invocation, const std::vector<std::string>& files) {
  const std::string state = invocation.settings.state();
  for (const std::string& file : files) {
    const std::size_t slash = file.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash + 1);
    if (file.starts_with(state + "/")) {
      RINGFENCE_TRY(os::MakeDirs(state, 0700));
    }
    if (!os::IsDirectory(folder)) {
      return Error{Code::kNotFound, "there is no folder " + folder + " for " + file,
                   "make it first, if that is where it goes"};
    }
  }
  return {};
}

std::string Coloured(const Console& console, Standing standing, const std::string& text) {
  return standing == Standing::kFail      ? console.Bad(text)
         : standing == Standing::kPass    ? console.Good(text)
         : standing == Standing::kUnknown ? console.Doubtful(text)
                                          : console.Dim(text);
}

void PrintResults(Console& console, const Assessment& assessment) {
  Table table({"RESULT", "SEVERITY", "CHECK", "SEEN"});
  for (const Standing standing :
       {Standing::kFail, Standing::kUnknown, Standing::kPass, Standing::kNotApplicable}) {
    for (const std::string_view severity : {"critical", "high", "medium", "low"}) {
      for (const CheckResult& result : assessment.results) {
        if (result.standing == standing && result.check->severity() == severity) {
          table.Add(
              {std::string(Name(standing)), std::string(severity), result.check->id, result.why});
        }
      }
    }
  }
  table.Print(console);
}

Result<int> FailRankOf(const Parsed& parsed) {
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

OptionSpec AssessOption(std::string_view name) {
  static const std::vector<OptionSpec> kOptions = {
      {.name = "root",
       .value = "DIR",
       .help = "a captured root to look at instead of this machine",
       .completes = Completes::kFolder},
      {.name = "checks",
       .value = "DIR",
       .help = "folder with the checks (default: those shipped)",
       .completes = Completes::kFolder},
      {.name = "class", .value = "NAME", .help = "only checks of this class"},
      {.name = "csaf",
       .value = "DIR",
       .help = "NVIDIA's bulletins, for the checks that need them",
       .completes = Completes::kFolder},
      {.name = "fail-on",
       .value = "SEVERITY",
       .help = "exit with 1 when a check at or above it fails",
       .completes = Completes::kWords,
       .words = "low medium high critical"},
      {.name = "exceptions",
       .value = "FILE",
       .help = "findings that somebody answers for until a day (YAML)",
       .completes = Completes::kFile},
  };
  const auto found = std::find_if(kOptions.begin(), kOptions.end(),
                                  [name](const OptionSpec& option) { return option.name == name; });
  RINGFENCE_CHECK(found != kOptions.end());
  return *found;
}

}  // namespace ringfence::cli

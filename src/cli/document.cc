// docs/cli.md and the help topics.

#include <array>

#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/follow.h"
#include "cli/help.h"
#include "cli/parse.h"
#include "cli/settings.h"

namespace ringfence::cli {
namespace {

struct ExitRow {
  int status;
  std::string meaning;
};

std::string_view Meaning(int status) {
  switch (status) {
    case 2:
      return "wrong usage or input: change it";
    case 3:
      return "not signed in, or denied";
    case 4:
      return "no such thing";
    case 5:
      return "the server cannot be reached, or not now: try again";
    case 6:
      return "it conflicts with what is there, or the state must change first";
    case 7:
      return "a limit was reached: slow down or ask for less";
    default:
      return "damaged data, or a defect of ours";
  }
}

// From base/code.h, so that it cannot say anything else.
std::vector<ExitRow> ExitRows() {
  std::vector<ExitRow> rows = {{kExitOk, "all is well"},
                               {kExitFindings, "a check ran and found something wrong"}};
  for (int status = kExitUsage; status <= 8; ++status) {
    std::string labels;
    for (const CodeFacts& facts : kCodeTable) {
      if (facts.exit_status == status) {
        labels += (labels.empty() ? "" : ", ") + std::string(facts.label);
      }
    }
    if (!labels.empty()) {
      rows.push_back({status, std::string(Meaning(status)) + " (" + labels + ")"});
    }
  }
  rows.push_back({kExitTimeout, "`run`: the job ran past its --timeout"});
  rows.push_back({kExitNotRun, "`run`: the job could not be run, and has no code of its own"});
  rows.push_back({kExitInterrupted, "you left with Ctrl-C"});
  rows.push_back({kExitBrokenPipe, "nobody read the output any more"});
  return rows;
}

std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') {
      out += '\\';
    }
    out += c;
  }
  return out;
}

void AppendOptions(std::string& text, const std::vector<OptionSpec>& options) {
  text += "| option | |\n|---|---|\n";
  for (const OptionSpec& option : options) {
    text += "| `";
    text += option.letter != 0 ? std::string("-") + option.letter + ", " : "";
    text += "--" + std::string(option.name);
    text += option.value.empty() ? "" : " " + Cell(option.value);
    text += "` | " + Cell(option.help) + " |\n";
  }
  text += "\n";
}

void AppendCommand(std::string& text, const CommandTable& table, const CommandSpec& command) {
  text += "### ringfence " + std::string(command.path) + "\n\n" + std::string(command.summary) +
          "\n\n```\n" + UsageOf(table, command.path) + "\n```\n\n";
  if (!command.details.empty()) {
    text += std::string(command.details) + "\n\n";
  }
  for (const ArgumentSpec& argument : command.arguments) {
    text += "- `" + std::string(argument.name) + "`: " + std::string(argument.help) + "\n";
  }
  text += command.arguments.empty() ? "" : "\n";
  if (!command.options.empty()) {
    AppendOptions(text, command.options);
  }
  if (!command.examples.empty()) {
    text += "```sh\n";
    for (const Example& example : command.examples) {
      text += "# " + std::string(example.what) + "\n" + std::string(example.command) + "\n";
    }
    text += "```\n\n";
  }
  if (!command.exit_codes.empty()) {
    text += "Exit codes: " + std::string(command.exit_codes) + ".\n\n";
  }
}

}  // namespace

std::string ExitCodesHelp() {
  std::string text = "What `ringfence` exits with:\n";
  for (const ExitRow& row : ExitRows()) {
    const std::string number = std::to_string(row.status);
    text += std::string(5 - number.size(), ' ') + number + "  " + row.meaning + "\n";
  }
  return text +
         "`run` passes the job's own code through, and 128+N when signal N ended it. A refusal\n"
         "before the job exists has one of the codes above, with a message that begins with\n"
         "\"ringfence:\".\n";
}

std::string SettingsHelp() {
  std::string text =
      "Flags win over the environment, the environment over the file, the file over the\n"
      "defaults. The file is the first of: --config, RINGFENCE_CONFIG, <state>/ringfence.yaml,\n"
      "/etc/ringfence/ringfence.yaml (not where a state folder was found by searching).\n\n";
  for (const SettingSpec& spec : SettingTable()) {
    text += std::string(spec.key) + "  (" + std::string(spec.environment) +
            (spec.flag.empty() ? "" : ", --" + std::string(spec.flag)) + ")\n    " +
            std::string(spec.help) +
            (spec.fallback.empty() ? "" : "\n    default: " + std::string(spec.fallback)) + "\n";
  }
  return text;
}

std::string Document(const CommandTable& table) {
  std::string text =
      "# The command line\n\n"
      "<!-- Made by `ringfence __docs` from the tables of src/cli. A test checks that it is "
      "current. -->\n\n"
      "`ringfence` is the command line, the server and the agent in one binary. Results go to\n"
      "standard output, everything else to standard error. Options that every command takes may\n"
      "stand anywhere before \"--\".\n\n"
      "## Options of every command\n\n";
  AppendOptions(text, GlobalOptions());
  for (const Group group : {Group::kJobs, Group::kCluster, Group::kEvidence, Group::kAccess,
                            Group::kOperate, Group::kOther}) {
    text += "## " + std::string(Title(group)) + "\n\n";
    for (const CommandSpec& command : table) {
      if (!command.hidden && command.group == group) {
        AppendCommand(text, table, command);
      }
    }
  }
  text += "## Exit codes\n\n| code | meaning |\n|---|---|\n";
  for (const ExitRow& row : ExitRows()) {
    text += "| " + std::to_string(row.status) + " | " + Cell(row.meaning) + " |\n";
  }
  text +=
      "\n`run` passes the job's own code through, and 128+N when signal N ended it.\n\n"
      "## Settings\n\n"
      "Flags win over the environment, the environment over the file, the file over the defaults.\n"
      "The file is the first of `--config`, `RINGFENCE_CONFIG`, `<state>/ringfence.yaml` and\n"
      "`/etc/ringfence/ringfence.yaml` (which is not read where a state folder was found by\n"
      "searching: that is an instance of its own). Paths in the file are relative to it.\n\n"
      "| key | environment | flag | default | |\n|---|---|---|---|---|\n";
  for (const SettingSpec& spec : SettingTable()) {
    text += "| `" + std::string(spec.key) + "` | `" + std::string(spec.environment) + "` | " +
            (spec.flag.empty() ? "" : "`--" + std::string(spec.flag) + "`") + " | " +
            (spec.fallback.empty() ? "" : "`" + std::string(spec.fallback) + "`") + " | " +
            Cell(spec.help) + " |\n";
  }
  return text;
}

}  // namespace ringfence::cli

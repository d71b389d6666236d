#include "cli/help.h"

#include <algorithm>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/parse.h"
#include "cli/settings.h"
#include "cli/text.h"

namespace ringfence::cli {
namespace {

struct Line {
  std::string left;
  std::string right;
};

std::string Aligned(const std::vector<Line>& lines, std::string_view indent = "  ") {
  std::size_t width = 0;
  for (const Line& line : lines) {
    width = std::max(width, Columns(line.left));
  }
  std::string text;
  for (const Line& line : lines) {
    text += std::string(indent) + line.left;
    if (!line.right.empty()) {
      text += std::string(width - Columns(line.left) + 2, ' ') + line.right;
    }
    text += '\n';
  }
  return text;
}

std::string OptionLeft(const OptionSpec& option) {
  std::string text = option.letter != 0 ? std::string("-") + option.letter + ", " : "    ";
  text += "--" + std::string(option.name);
  if (option.may_be_bare) {
    return text + "[=" + std::string(option.value) + "]";
  }
  return option.value.empty() ? text : text + " " + std::string(option.value);
}

std::vector<Line> OptionLines(const std::vector<OptionSpec>& options) {
  std::vector<Line> lines;
  for (const OptionSpec& option : options) {
    lines.push_back({OptionLeft(option), std::string(option.help)});
  }
  return lines;
}

// A line for each first word of a group's commands.
std::vector<Line> GroupLines(const CommandTable& table, Group group) {
  std::vector<Line> lines;
  for (const CommandSpec& command : table) {
    const std::string word(command.path.substr(0, command.path.find(' ')));
    const bool seen = std::any_of(lines.begin(), lines.end(),
                                  [&](const Line& line) { return line.left == word; });
    if (command.hidden || command.group != group || seen) {
      continue;
    }
    if (command.path == word) {
      lines.push_back({word, std::string(command.summary)});
      continue;
    }
    std::string verbs;
    for (const std::string& verb : NextWords(table, word)) {
      verbs += (verbs.empty() ? "" : ", ") + verb;
    }
    lines.push_back({word, std::string(NounSummary(word)) + ": " + verbs + "."});
  }
  return lines;
}

std::string GroupHelp(const CommandTable& table, std::string_view path) {
  std::vector<Line> lines;
  const std::string prefix = std::string(path) + " ";
  for (const CommandSpec& command : table) {
    if (!command.hidden && command.path.starts_with(prefix)) {
      lines.push_back({std::string(command.path), std::string(command.summary)});
    }
  }
  return lines.empty()
             ? ""
             : "Usage: " + UsageOf(table, path) + "\n\nCommands:\n" + Aligned(lines) +
                   "\n`ringfence " + std::string(path) + " COMMAND --help` says more about each.\n";
}

}  // namespace

std::string_view NounSummary(std::string_view noun) {
  constexpr std::pair<std::string_view, std::string_view> kNouns[] = {
      {"lease", "Leases and their jobs' output"},
      {"tenant", "Departments, teams and projects"},
      {"node", "Nodes, and the tokens with which they join"},
      {"gpu", "GPUs: their state, and whose they are"},
      {"audit", "The tamper-evident log: read it, prove it, verify it"},
      {"token", "Tokens to act as a principal"},
      {"policy", "The policy folder, and what is in force"},
      {"risk", "Risks of what was found: weighed, decided, watched"},
      {"baseline", "What this machine is made of, signed, and what became of it"},
      {"config", "Settings"},
  };
  for (const auto& [name, summary] : kNouns) {
    if (name == noun) {
      return summary;
    }
  }
  return noun;
}

std::string TopHelp(const CommandTable& table) {
  std::string text =
      "Ringfence shares GPUs among tenants who do not trust each other, and proves it.\n\n"
      "Usage: ringfence COMMAND [options]\n";
  for (const Group group : {Group::kJobs, Group::kCluster, Group::kEvidence, Group::kAccess,
                            Group::kOperate, Group::kOther}) {
    text += "\n" + std::string(Title(group)) + ":\n" + Aligned(GroupLines(table, group));
  }
  text += "\nOptions of every command:\n" + Aligned(OptionLines(GlobalOptions()));
  text +=
      "\nFirst steps:\n"
      "  ringfence up                                   start everything on this machine\n"
      "  ringfence run -t acme/research/vision -- nvidia-smi -L\n"
      "  ringfence audit verify                         prove what happened\n\n"
      "`ringfence COMMAND --help` says more; so do `ringfence help exit-codes` and\n"
      "`ringfence help settings`.\n";
  return text;
}

std::string UsageOf(const CommandTable& table, std::string_view path) {
  const CommandSpec* command = FindCommand(table, path);
  if (command == nullptr) {
    return path.empty() ? "ringfence COMMAND [options]"
                        : "ringfence " + std::string(path) + " COMMAND [options]";
  }
  std::string text = "ringfence " + std::string(path) + " [options]";
  for (const ArgumentSpec& argument : command->arguments) {
    const std::string name = std::string(argument.name) + (argument.repeated ? "..." : "");
    text += argument.required ? " " + name : " [" + name + "]";
  }
  return command->takes_command ? text + " -- COMMAND [ARGUMENT...]" : text;
}

std::string HelpOf(const CommandTable& table, std::string_view path) {
  const CommandSpec* command = FindCommand(table, path);
  if (command == nullptr) {
    return path.empty() ? TopHelp(table) : GroupHelp(table, path);
  }
  std::string text = std::string(command->summary) + "\n\nUsage: " + UsageOf(table, path) + "\n";
  if (!command->details.empty()) {
    text += "\n" + std::string(command->details) + "\n";
  }
  std::vector<Line> arguments;
  for (const ArgumentSpec& argument : command->arguments) {
    arguments.push_back({std::string(argument.name), std::string(argument.help)});
  }
  if (!arguments.empty()) {
    text += "\nArguments:\n" + Aligned(arguments);
  }
  if (!command->options.empty()) {
    text += "\nOptions:\n" + Aligned(OptionLines(command->options));
  }
  text += "\nAlso";
  for (const OptionSpec& option : GlobalOptions()) {
    text +=
        (option.name == GlobalOptions().front().name ? ": --" : ", --") + std::string(option.name);
  }
  text += "\n(`ringfence --help` says what they do).\n";
  if (!command->examples.empty()) {
    text += "\nExamples:\n";
    for (const Example& example : command->examples) {
      text += "  # " + std::string(example.what) + "\n  " + std::string(example.command) + "\n";
    }
  }
  text += "\nExit codes: ";
  text += command->exit_codes.empty() ? "" : std::string(command->exit_codes) + "\n";
  return text + "`ringfence help exit-codes` lists them all.\n";
}

}  // namespace ringfence::cli

// Manual pages, from the tables that the help and docs/cli.md are made from: ringfence(1), a page
// for each first word (ringfence-lease(1)), and ringfence.yaml(5).

#include "cli/man.h"

#include <algorithm>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/parse.h"
#include "cli/settings.h"

namespace ringfence::cli {
namespace {

constexpr std::string_view kFilePage = "ringfence.yaml.5";

// Text as roff prints it, whatever it holds.
std::string Escaped(std::string_view text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '\'':
        out += "\\(aq";
        break;
      default:
        out += c;
    }
    line_start = c == '\n';
  }
  return out;
}

std::string Bold(std::string_view text) { return "\\fB" + Escaped(text) + "\\fR"; }
std::string Italic(std::string_view text) { return "\\fI" + Escaped(text) + "\\fR"; }

std::string Upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return out;
}

std::string FirstWord(std::string_view path) { return std::string(path.substr(0, path.find(' '))); }

std::string Head(std::string_view name, int section, std::string_view what) {
  std::string summary(what);
  while (summary.ends_with('.')) {
    summary.pop_back();
  }
  return ".\\\" Made by `ringfence __man` from the tables of src/cli.\n.TH " +
         Escaped(Upper(name)) + " " + std::to_string(section) + " \"\" \"Ringfence " +
         RINGFENCE_VERSION + "\" \"Ringfence\"\n.SH NAME\n" + Escaped(name) + " \\- " +
         Escaped(summary) + "\n";
}

std::string Preformatted(std::string_view text) {
  return ".nf\n" + Escaped(text) + (text.ends_with('\n') ? "" : "\n") + ".fi\n";
}

std::string OptionItems(const std::vector<OptionSpec>& options) {
  std::string text;
  for (const OptionSpec& option : options) {
    text += ".TP\n";
    text += option.letter != 0 ? Bold(std::string("-") + option.letter) + ", " : "";
    text += Bold("--" + std::string(option.name));
    text += option.may_be_bare     ? "[=" + Italic(option.value) + "]"
            : option.value.empty() ? ""
                                   : " " + Italic(option.value);
    text += "\n" + Escaped(option.help) + "\n";
  }
  return text;
}

std::string ExampleItems(const std::vector<Example>& examples) {
  std::string text;
  for (const Example& example : examples) {
    text += ".TP\n" + Bold(example.command) + "\n" + Escaped(example.what) + "\n";
  }
  return text;
}

// One command: under its own heading where a page has several.
std::string CommandPart(const CommandTable& table, const CommandSpec& command) {
  std::string text =
      ".SS " + Escaped(UsageOf(table, command.path)) + "\n" + Escaped(command.summary) + "\n";
  if (!command.details.empty()) {
    text += ".PP\n" + Escaped(command.details) + "\n";
  }
  for (const ArgumentSpec& argument : command.arguments) {
    text += ".TP\n" + Italic(argument.name) + "\n" + Escaped(argument.help) + "\n";
  }
  text += OptionItems(command.options);
  if (!command.exit_codes.empty()) {
    text += ".PP\nExit status: " + Escaped(command.exit_codes) + ".\n";
  }
  return text;
}

std::string SeeAlso(std::string_view others) {
  return ".SH SEE ALSO\n" + std::string(others) +
         ".PP\nAll commands, with their options: /usr/share/doc/ringfence/cli.md.gz\n";
}

std::string PageOfWord(const CommandTable& table, const std::string& word) {
  std::string parts;
  std::string examples;
  std::string_view what;
  for (const CommandSpec& command : table) {
    if (!command.hidden && FirstWord(command.path) == word) {
      parts += CommandPart(table, command);
      examples += ExampleItems(command.examples);
      what = command.path == word ? command.summary : NounSummary(word);
    }
  }
  return Head("ringfence-" + word, 1, what) + ".SH COMMANDS\n" + parts +
         ".SH OPTIONS OF EVERY COMMAND\n" + OptionItems(GlobalOptions()) + ".SH EXAMPLES\n" +
         examples + SeeAlso(Bold("ringfence") + "(1), " + Bold("ringfence.yaml") + "(5)\n");
}

std::string MainPage(const CommandTable& table) {
  std::string text =
      Head("ringfence", 1, "share GPUs among tenants who do not trust each other, and prove it") +
      ".SH SYNOPSIS\n" + Bold("ringfence") + " " + Italic("COMMAND") +
      " [options]\n.SH DESCRIPTION\n" +
      Escaped(
          "The command line, the server and a node's agent in one program. Results go to "
          "standard output, everything else to standard error.\n") +
      ".SH COMMANDS\n";
  for (const std::string& page : ManPages(table)) {
    if (!page.starts_with("ringfence-")) {
      continue;
    }
    const std::string word = page.substr(10, page.size() - 12);
    const CommandSpec* found = nullptr;
    for (const CommandSpec& command : table) {
      found = command.path == word ? &command : found;
    }
    text += ".TP\n" + Bold("ringfence-" + word) + "(1)\n" +
            Escaped(found != nullptr ? found->summary : NounSummary(word)) + "\n";
  }
  text += ".SH OPTIONS OF EVERY COMMAND\n" + OptionItems(GlobalOptions());
  text += ".SH EXIT STATUS\n" + Preformatted(ExitCodesHelp());
  text += ".SH ENVIRONMENT\nEach setting of " + Bold("ringfence.yaml") +
          "(5) has a variable, named there.\n.TP\n" + Bold("RINGFENCE_CONFIG") +
          "\nthe configuration file to read\n.TP\n" + Bold("NO_COLOR") + "\nno colours\n";
  text += ".SH FILES\n.TP\n" + Escaped("/etc/ringfence/ringfence.yaml") +
          "\nthe machine's configuration\n.TP\n" + Escaped("/etc/ringfence/policy/") +
          "\nits policy\n.TP\n" + Escaped("/var/lib/ringfence/") + "\nwhat the services keep\n";
  return text + SeeAlso(Bold("ringfence.yaml") + "(5), " + Bold("systemctl") + "(1)\n");
}

std::string FilePage() {
  std::string text =
      Head("ringfence.yaml", 5, "configuration of Ringfence") + ".SH DESCRIPTION\n" +
      Escaped(
          "Flags win over the environment, the environment over the file, the file over the "
          "defaults. The file is the first of: --config, RINGFENCE_CONFIG, "
          "<state>/ringfence.yaml, /etc/ringfence/ringfence.yaml; the last is not read where a "
          "state folder was found by searching upwards. Keys with a dot are nested: "
          "server.listen is the key listen below server. Paths are relative to the file.\n") +
      ".SH SETTINGS\n";
  for (const SettingSpec& spec : SettingTable()) {
    text += ".TP\n" + Bold(spec.key) + "\n" + Escaped(spec.help) + "\n.br\nvariable " +
            Bold(spec.environment);
    text += spec.flag.empty() ? "" : ", flag " + Bold("--" + std::string(spec.flag));
    text += spec.fallback.empty() ? "" : ", default " + Italic(spec.fallback);
    text += "\n";
  }
  text += ".SH EXAMPLE\n" + Preformatted(
                                "state: /var/lib/ringfence\n"
                                "server:\n"
                                "  listen: 0.0.0.0:8443\n"
                                "  names: [gpu.example]\n"
                                "policy:\n"
                                "  folder: /etc/ringfence/policy\n");
  return text + SeeAlso(Bold("ringfence") + "(1), " + Bold("ringfence-config") + "(1)\n");
}

}  // namespace

std::vector<std::string> ManPages(const CommandTable& table) {
  std::vector<std::string> pages = {"ringfence.1", std::string(kFilePage)};
  for (const CommandSpec& command : table) {
    const std::string page = "ringfence-" + FirstWord(command.path) + ".1";
    if (!command.hidden && std::find(pages.begin(), pages.end(), page) == pages.end()) {
      pages.push_back(page);
    }
  }
  return pages;
}

std::string ManPage(const CommandTable& table, std::string_view page) {
  const std::vector<std::string> pages = ManPages(table);
  if (std::find(pages.begin(), pages.end(), page) == pages.end()) {
    return "";
  }
  if (page == kFilePage) {
    return FilePage();
  }
  constexpr std::string_view kPrefix = "ringfence-";
  return page.starts_with(kPrefix)
             ? PageOfWord(table, std::string(
                                     page.substr(kPrefix.size(), page.size() - kPrefix.size() - 2)))
             : MainPage(table);
}

}  // namespace ringfence::cli

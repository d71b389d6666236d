// `ringfence help`, `ringfence version`, and the hidden `ringfence __docs` and `ringfence __man`.

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/help.h"
#include "cli/man.h"
#include "cli/parse.h"
#include "cli/suggest.h"
#include "os/failpoint.h"

namespace ringfence::cli {
namespace {

Result<int> Help(Invocation& invocation) {
  std::string path;
  for (const std::string& word : invocation.parsed.arguments) {
    path += (path.empty() ? "" : " ") + word;
  }
  std::string text = path == "exit-codes" ? ExitCodesHelp()
                     : path == "settings" ? SettingsHelp()
                                          : HelpOf(invocation.table, path);
  if (text.empty()) {
    std::vector<std::string> known = {"exit-codes", "settings"};
    for (const CommandSpec& command : invocation.table) {
      known.emplace_back(command.path);
    }
    return Error{Code::kInvalidArgument, "there is no help for \"" + path + "\"",
                 DidYouMean(path, known, "`ringfence help` lists the commands"), "help"};
  }
  invocation.console.out() << text;
  return 0;
}

Result<int> Version(Invocation& invocation) {
  if (invocation.console.table()) {
    invocation.console.out() << "ringfence " << RINGFENCE_VERSION << '\n';
  } else {
    invocation.console.Show(JsonObject{{"version", RINGFENCE_VERSION}});
  }
  return 0;
}

Result<int> Docs(Invocation& invocation) {
  invocation.console.out() << Document(invocation.table);
  return 0;
}

// Without an argument, which pages there are.
Result<int> Man(Invocation& invocation) {
  const std::string page = invocation.parsed.Argument(0);
  if (page.empty()) {
    for (const std::string& name : ManPages(invocation.table)) {
      invocation.console.out() << name << '\n';
    }
    return 0;
  }
  const std::string text = ManPage(invocation.table, page);
  if (text.empty()) {
    return Error{Code::kNotFound, "there is no page \"" + page + "\"",
                 "`ringfence __man` lists them"};
  }
  invocation.console.out() << text;
  return 0;
}

#ifdef RINGFENCE_FAILPOINTS
Result<int> Failpoints(Invocation& invocation) {
  for (const std::string_view name : os::failpoint::kNames) {
    invocation.console.out() << name << '\n';
  }
  return 0;
}
#endif

}  // namespace

CommandTable HelpCommands() {
  return {
      {.path = "version",
       .group = Group::kOther,
       .summary = "Print the version.",
       .examples = {{"ringfence version", "which one this is"}},
       .handler = Version},
      {.path = "help",
       .group = Group::kOther,
       .summary = "Show help on a command, on exit-codes or on settings.",
       .arguments = {{.name = "WORD",
                      .help = "a command, exit-codes or settings",
                      .required = false,
                      .repeated = true}},
       .examples = {{"ringfence help lease list", "one command"},
                    {"ringfence help exit-codes", "what it exits with, and when"}},
       .handler = Help},
      {.path = "__man",
       .summary = "Print a page of the manual.",
       .arguments = {{.name = "PAGE", .required = false}},
       .handler = Man,
       .hidden = true},
      {.path = "__docs", .summary = "Print docs/cli.md.", .handler = Docs, .hidden = true},
#ifdef RINGFENCE_FAILPOINTS
      {.path = "__failpoints",
       .summary = "Print the places that tests/faults walks.",
       .handler = Failpoints,
       .hidden = true},
#endif
  };
}

}  // namespace ringfence::cli

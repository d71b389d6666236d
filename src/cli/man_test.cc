// Goal: the manual has a page for every command, says all that the tables say, and no text in it
// can be taken for a request of roff's. Method: every page, against the tables; the package's test
// runs man itself over them.

#include "cli/man.h"

#include <gtest/gtest.h>

#include "cli/commands.h"
#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

// The page without roff's escapes, as a reader sees its words.
std::string Plain(std::string text) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"\\fB", ""},
                                                                                 {"\\fI", ""},
                                                                                 {"\\fR", ""},
                                                                                 {"\\&", ""},
                                                                                 {"\\-", "-"},
                                                                                 {"\\(ga", "`"},
                                                                                 {"\\(aq", "'"},
                                                                                 {"\\e", "\\"}}) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
      text.replace(at, from.size(), to);
      at += to.size();
    }
  }
  return text;
}

TEST(ManTest, EveryCommandAndOptionIsInItsPage) {
  const CommandTable& table = AllCommands();
  for (const CommandSpec& command : table) {
    const std::string word(command.path.substr(0, command.path.find(' ')));
    const std::string page = Plain(ManPage(table, "ringfence-" + word + ".1"));
    if (command.hidden) {
      EXPECT_EQ(page, "") << word;
      continue;
    }
    EXPECT_NE(page.find("ringfence " + std::string(command.path)), std::string::npos);
    EXPECT_NE(page.find(command.summary), std::string::npos) << command.path;
    for (const OptionSpec& option : command.options) {
      EXPECT_NE(page.find("--" + std::string(option.name)), std::string::npos) << option.name;
      EXPECT_NE(page.find(option.help), std::string::npos) << option.help;
    }
    for (const Example& example : command.examples) {
      EXPECT_NE(page.find(example.command), std::string::npos) << example.command;
    }
  }
}

TEST(ManTest, OnlyKnownRequestsBeginALine) {
  const CommandTable& table = AllCommands();
  for (const std::string& name : ManPages(table)) {
    const std::string page = ManPage(table, name);
    for (std::size_t at = 0; at < page.size(); at = page.find('\n', at) + 1) {
      const std::string line = page.substr(at, page.find('\n', at) - at);
      if (line.starts_with('.') || line.starts_with('\'')) {
        const std::string request = line.substr(0, line.find(' '));
        const std::vector<std::string> known = {".\\\"", ".TH", ".SH", ".SS", ".TP",
                                                ".PP",   ".br", ".nf", ".fi"};
        EXPECT_NE(std::find(known.begin(), known.end(), request), known.end()) << name << line;
      }
    }
  }
}

TEST(ManTest, ThePagesCanBeListedAndPrinted) {
  const TestFolder folder;
  const AppResult list = RunLine(folder.folder.path(), {"__man"});
  EXPECT_NE(list.out.find("ringfence.1\n"), std::string::npos);
  EXPECT_NE(list.out.find("ringfence.yaml.5\n"), std::string::npos);
  EXPECT_NE(RunLine(folder.folder.path(), {"__man", "ringfence.yaml.5"}).out.find("log.format"),
            std::string::npos);
  EXPECT_EQ(RunLine(folder.folder.path(), {"__man", "ringfence-nothing.1"}).status, 4);
}

}  // namespace
}  // namespace ringfence::cli

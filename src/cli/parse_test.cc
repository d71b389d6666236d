// Goal: a right command line is understood whatever the order of its words, and a wrong one is
// refused with what was probably meant and the usage line.
// Method: a table of command lines over the real command table.

#include "cli/parse.h"

#include <gtest/gtest.h>

#include "base/code.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/suggest.h"
#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

Result<Parsed> ParseLine(const std::string& line) { return Parse(AllCommands(), Words(line)); }

TEST(ParseTest, OptionsOfEveryCommandMayStandAnywhere) {
  for (const char* line :
       {"-o json lease list --all", "lease -o json list --all", "lease list -o json --all",
        "lease list --all --output=json", "lease list --all -ojson", "lease list -ao json"}) {
    const auto parsed = ParseLine(line);
    ASSERT_TRUE(parsed.has_value()) << line << ": " << parsed.error().message;
    EXPECT_EQ(parsed->path, "lease list") << line;
    EXPECT_EQ(parsed->Value("output"), "json") << line;
    EXPECT_TRUE(parsed->Has("all")) << line;
  }
}

TEST(ParseTest, WordsAfterTheSeparatorBelongToTheJob) {
  const auto parsed =
      ParseLine("run -t acme/web -e A=1 --env B=2 --gpus 2 -- sh -c --help -o json -- x");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->trailing,
            (std::vector<std::string>{"sh", "-c", "--help", "-o", "json", "--", "x"}));
  EXPECT_EQ(parsed->Values("env"), (std::vector<std::string>{"A=1", "B=2"}));
  EXPECT_FALSE(parsed->Has("help"));
  EXPECT_FALSE(parsed->Has("output"));
}

TEST(ParseTest, ACommandOfThreeWords) {
  const auto parsed = ParseLine("node token create n2 --ttl 1h");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->path, "node token create");
  EXPECT_EQ(parsed->Argument(0), "n2");
  EXPECT_EQ(parsed->Argument(1), "");
}

TEST(ParseTest, AValueThatMayBeLeftOutIsGivenWithAnEqualsSign) {
  const auto bare = ParseLine("run -t acme/web --wait -d -- true");
  ASSERT_TRUE(bare.has_value());
  EXPECT_EQ(bare->Value("wait"), "");
  EXPECT_TRUE(bare->Has("detach"));
  const auto given = ParseLine("run -t acme/web --wait=2h -- true");
  ASSERT_TRUE(given.has_value());
  EXPECT_EQ(given->Value("wait"), "2h");
}

struct Wrong {
  const char* line;
  const char* message;
  const char* hint;
  const char* usage;
};

TEST(ParseTest, AWrongLineSaysWhatIsWrongWhatWasMeantAndTheUsage) {
  const Wrong wrongs[] = {
      {"statsu", "unknown command \"statsu\"", "did you mean `status`?", ""},
      {"lease lst", "unknown command \"lst\" of `lease`", "did you mean `list`?", "lease"},
      {"zzzzzz", "unknown command", "--help` lists them", ""},
      {"lease", "needs one more word: list, show, end, logs", "--help", "lease"},
      {"lease list --tenat x", "unknown option --tenat", "did you mean `--tenant`?", "lease list"},
      {"lease list --al", "unknown option --al", "did you mean `--all`?", "lease list"},
      {"lease list -z", "unknown option -z", "--help", "lease list"},
      {"--gpus 2 run -t a -- x", "unknown option --gpus before the command", "after its name", ""},
      {"lease show", "LEASE is missing", "lease list", "lease show"},
      {"lease show a b", "\"b\" is one word too many", "leave it out", "lease show"},
      {"lease list --tenant", "--tenant needs a value", "--tenant TENANT", "lease list"},
      {"run -t -- x", "-t needs a value", "-t TENANT", "run"},
      {"run -t a --gpus 1 --gpus 2 -- x", "--gpus is given twice", "once", "run"},
      {"run -t a sh", "must come after \"--\"", "-- sh", "run"},
      {"run -t a", "the job's command is missing", "after \"--\"", "run"},
      {"run -t a --", "the job's command is missing", "after \"--\"", "run"},
      {"status -- x", "takes nothing after \"--\"", "leave it out", "status"},
      {"lease list --all=yes", "--all takes no value", "--all", "lease list"},
      {"status -o jsno", "\"jsno\" is none of table, json, yaml", "did you mean `json`?", "status"},
  };
  for (const Wrong& wrong : wrongs) {
    const auto parsed = ParseLine(wrong.line);
    ASSERT_FALSE(parsed.has_value()) << wrong.line;
    const Error& error = parsed.error();
    EXPECT_EQ(error.code, Code::kInvalidArgument) << wrong.line;
    EXPECT_NE(error.message.find(wrong.message), std::string::npos) << error.message;
    EXPECT_NE(error.hint.find(wrong.hint), std::string::npos) << wrong.line << ": " << error.hint;
    EXPECT_EQ(error.field, wrong.usage) << wrong.line;
  }
}

TEST(ParseTest, HelpNeedsNothingElse) {
  for (const char* line : {"run --help", "run -h -t", "lease show -h", "lease --help"}) {
    const auto parsed = ParseLine(line);
    if (std::string(line) == "run -h -t") {
      EXPECT_FALSE(parsed.has_value());  // an option without its value is still one too few
      continue;
    }
    ASSERT_TRUE(parsed.has_value()) << line;
    EXPECT_TRUE(parsed->Has("help"));
  }
}

TEST(ParseTest, EveryCommandHasASummaryExamplesAndItsPlaceInTheHelp) {
  const std::string top = TopHelp(AllCommands());
  for (const CommandSpec& command : AllCommands()) {
    const std::string path(command.path);
    if (command.hidden) {
      EXPECT_EQ(top.find(path), std::string::npos) << path;
      continue;
    }
    EXPECT_TRUE(command.summary.ends_with('.')) << path;
    EXPECT_FALSE(command.examples.empty()) << path;
    EXPECT_LE(command.examples.size(), 6U) << path;
    const std::string help = HelpOf(AllCommands(), path);
    EXPECT_NE(help.find("Usage: ringfence " + path), std::string::npos);
    EXPECT_NE(help.find("exit-codes"), std::string::npos);
    EXPECT_NE(top.find("  " + path.substr(0, path.find(' '))), std::string::npos) << path;
    for (const OptionSpec& option : command.options) {
      EXPECT_EQ(FindOption(nullptr, option.name), nullptr)
          << path << " hides the option of every command --" << option.name;
      if (option.letter != 0) {
        EXPECT_EQ(FindOption(nullptr, option.letter), nullptr) << path << " -" << option.letter;
      }
    }
  }
}

// The words as a shell would give them, up to what is not ours any more.
std::vector<std::string> ShellWords(std::string_view line) {
  std::vector<std::string> words;
  bool inside = false;  // of a word
  char quote = 0;
  for (const char c : line) {
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      if (!inside) {
        words.emplace_back();
        inside = true;
      }
    } else if (c == quote && quote != 0) {
      quote = 0;
    } else if (quote == 0 && std::string_view("|>)&").find(c) != std::string_view::npos) {
      break;
    } else if (quote == 0 && c == ' ') {
      inside = false;
    } else {
      if (!inside) {
        words.emplace_back();
        inside = true;
      }
      words.back() += c;
    }
  }
  return words;
}

TEST(ParseTest, EveryExampleParses) {
  for (const CommandSpec& command : AllCommands()) {
    for (const Example& example : command.examples) {
      std::string line(example.command);
      const std::size_t begin = line.find("ringfence ");
      ASSERT_NE(begin, std::string::npos) << line;
      const auto parsed = Parse(AllCommands(), ShellWords(line.substr(begin + 10)));
      EXPECT_TRUE(parsed.has_value()) << line << ": " << parsed.error().message;
    }
  }
}

TEST(ParseTest, TheDocumentIsCurrent) {
  const std::string path = std::string(RINGFENCE_SOURCE_DIR) + "/docs/cli.md";
  EXPECT_TRUE(os::ReadText(path, 1 << 20).value() == Document(AllCommands()))
      << "write it again: ringfence __docs > docs/cli.md";
}

TEST(ParseTest, ExitCodesInTheHelpAreThoseOfTheCodeTable) {
  const std::string help = ExitCodesHelp();
  for (const CodeFacts& facts : kCodeTable) {
    EXPECT_NE(help.find(std::string(facts.label)), std::string::npos) << facts.label;
    EXPECT_NE(help.find("    " + std::to_string(facts.exit_status) + "  "), std::string::npos);
  }
}

TEST(SuggestTest, TakesTheNearestOrTheOnlyBeginning) {
  const std::vector<std::string> words = {"list", "logs", "show", "verify", "version"};
  EXPECT_EQ(Closest("lsit", words), "list");
  EXPECT_EQ(Closest("shwo", words), "show");
  EXPECT_EQ(Closest("verfy", words), "verify");
  EXPECT_EQ(Closest("ver", words), std::nullopt) << "two begin so";
  EXPECT_EQ(Closest("vers", words), "version");
  EXPECT_EQ(Closest("", words), std::nullopt);
  EXPECT_EQ(Closest("quarantine", words), std::nullopt);
  EXPECT_EQ(Closest(std::string(10000, 'l'), words), std::nullopt);
}

}  // namespace
}  // namespace ringfence::cli

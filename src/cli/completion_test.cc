// Goal: completion offers what the tables allow, never a word that a shell could run, and scripts
// that the shells accept.
// Method: Complete() over unfinished lines; `bash -n`, and a bash that completes for real.

#include "cli/completion.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/test_support.h"

namespace ringfence::cli {
namespace {

std::vector<Candidate> Some(Completes completes) {
  if (completes == Completes::kTenant) {
    return {{"acme/web", "team"}, {"acme/research", "team\nrm"}, {"$(reboot)", "bad"}, {"a b", ""}};
  }
  return {{"lease-1", "active"}};
}

// The words alone.
std::string Offered(const std::vector<std::string>& words) {
  std::istringstream lines(Complete(AllCommands(), words, Some));
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    all += (all.empty() ? "" : " ") + line.substr(0, line.find('\t'));
  }
  return all;
}

TEST(CompletionTest, OffersWhatCanComeNext) {
  EXPECT_EQ(Offered({"le"}), "lease");
  EXPECT_EQ(Offered({"lease", ""}), "list show end logs hold");
  EXPECT_EQ(Offered({"node", "token", ""}), "create");
  EXPECT_EQ(Offered({"-o", ""}), "table json yaml csv");
  EXPECT_EQ(Offered({"lease", "list", "-o", "j"}), "json");
  EXPECT_EQ(Offered({"lease", "list", "--output=y"}), "--output=yaml");
  EXPECT_EQ(Offered({"lease", "list", "--output", "=", "y"}), "yaml") << "as bash splits it";
  EXPECT_EQ(Offered({"lease", "list", "--al"}), "--all");
  EXPECT_EQ(Offered({"lease", "list", "--all", "--al"}), "") << "not twice";
  EXPECT_EQ(Offered({"run", "-e", "A=1", "--en"}), "--env") << "this one may be";
  EXPECT_EQ(Offered({"lease", "show", ""}), "lease-1");
  EXPECT_EQ(Offered({"lease", "show", "lease-1", ""}), "");
  EXPECT_EQ(Offered({"lease", "end", "lease-1", ""}), "lease-1") << "several may be named";
  EXPECT_EQ(Offered({"run", "--", "x"}), ":files");
  EXPECT_EQ(Offered({"--config", ""}), ":files");
  EXPECT_EQ(Offered({"policy", "check", ""}), ":folders");
  EXPECT_EQ(Offered({"completion", ""}), "bash zsh fish");
  EXPECT_EQ(Offered({"assess", ""}), "fleet node diff send") << "a command with commands below it";
  EXPECT_EQ(Offered({"assess", "fleet", "--cs"}), "--csaf");
  EXPECT_EQ(Offered({"assess", "diff", ""}), Offered({"assess", "node", ""}));
  EXPECT_EQ(Offered({"__"}), "") << "hidden";
  EXPECT_EQ(Offered({"nonsense", ""}), "");
  EXPECT_EQ(Offered({}), "");
}

TEST(CompletionTest, NeverAWordThatAShellCouldRun) {
  EXPECT_EQ(Offered({"run", "-t", ""}), "acme/web acme/research");
  EXPECT_EQ(Complete(AllCommands(), {"run", "-t", "acme/r"}, Some), "acme/research\tteam rm\n");
}

TEST(CompletionTest, TheServerIsTheOneThatTheLineNames) {
  const auto flags = FlagsSoFar(
      AllCommands(), {"--state", "/s", "run", "-t", "acme", "-e", "A=1", "--server=h:1", "--"});
  ASSERT_EQ(flags.size(), 2U);
  EXPECT_EQ(flags[0], (std::pair<std::string, std::string>("state", "/s")));
  EXPECT_EQ(flags[1], (std::pair<std::string, std::string>("server", "h:1")));
}

struct ShellResult {
  int status;
  std::string out;
};

ShellResult Bash(const std::string& arguments) {
  ShellResult result{-1, ""};
  std::FILE* pipe = popen(("bash " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    return result;
  }
  char buffer[512];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) {
    result.out += buffer;
  }
  result.status = pclose(pipe);
  return result;
}

TEST(CompletionTest, BashAcceptsTheScriptAndCompletesWithIt) {
  const TestFolder folder;
  const std::string script = folder.Write("ringfence.bash", CompletionScript("bash"));
  const ShellResult checked = Bash("-n " + script);
  EXPECT_EQ(checked.status, 0) << checked.out;

  // A stand-in that shows which words it was asked with.
  const std::string fake =
      folder.Write("ringfence",
                   "#!/bin/bash\n[[ $1 == __complete && $2 == -- ]] || exit 9\nshift 2\n"
                   "if [[ ${*: -1} == f ]]; then echo :files; exit; fi\n"
                   "printf '%s\\tdescription here\\n' \"n=$#\" \"last=${*: -1}\"\n");
  ASSERT_TRUE(os::ChangeMode(fake, 0755).has_value());
  folder.Write("file one", "");
  const std::string drive = folder.Write(
      "drive.bash", "source " + script + "\ncd " + folder.folder.path() + "\nCOMP_WORDS=(" + fake +
                        " lease 'sh'); COMP_CWORD=2; _ringfence\n"
                        "printf '[%s]' \"${COMPREPLY[@]}\"\n"
                        "COMP_WORDS=(" +
                        fake +
                        " 'f'); COMP_CWORD=1; _ringfence\n"
                        "printf '[%s]' \"${COMPREPLY[@]}\"\n");
  const ShellResult driven = Bash(drive);
  EXPECT_EQ(driven.out, "[n=2][last=sh][file one]");
}

TEST(CompletionTest, EveryShellHasAScriptAndOthersAreRefused) {
  const TestFolder folder;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const AppResult result = RunLine(folder.folder.path(), {"completion", shell});
    EXPECT_EQ(result.status, 0);
    EXPECT_NE(result.out.find("__complete --"), std::string::npos) << shell;
  }
  const AppResult wrong = RunLine(folder.folder.path(), {"completion", "bsh"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("did you mean `bash`?"), std::string::npos);
}

TEST(CompletionTest, WithoutAServerItIsSimplySilent) {
  const TestFolder folder;
  const AppResult result = RunLine(folder.folder.path(), {"__complete", "--", "run", "-t", ""});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out + result.err, "");
}

}  // namespace
}  // namespace ringfence::cli

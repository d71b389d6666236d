// `ringfence rule check|test`

#include "cli/rule.h"

#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/text.h"
#include "os/file.h"
#include "sigma/rule_test_file.h"
#include "wire/yaml.h"

namespace ringfence::cli {

Result<RulesRead> ReadRuleSet(const std::vector<std::string>& paths, const Parsed& parsed) {
  RulesRead read;
  std::vector<sigma::Pipeline> pipelines;
  for (const std::string& path : parsed.Values("pipeline")) {
    RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, wire::kYamlBytesMax));
    if (auto pipeline = sigma::Pipeline::Read(text, path, read.problems)) {
      pipelines.push_back(std::move(*pipeline));
    }
  }
  std::vector<sigma::Rule> rules;
  for (const std::string& path : paths) {
    RINGFENCE_ASSIGN(sigma::Loaded loaded, sigma::LoadRules(path, read.problems));
    read.files += loaded.files;
    std::move(loaded.rules.begin(), loaded.rules.end(), std::back_inserter(rules));
  }
  read.set = sigma::MakeReady(std::move(rules), pipelines, read.problems);
  return read;
}

Result<sigma::RuleSet> NeedRuleSet(Invocation& invocation, const std::vector<std::string>& paths) {
  RINGFENCE_ASSIGN(RulesRead read, ReadRuleSet(paths, invocation.parsed));
  if (!read.problems.empty()) {
    constexpr std::size_t kShown = 5;
    std::string text = Count(read.problems.size(), "problem") + " in the rules";
    for (std::size_t i = 0; i < read.problems.size() && i < kShown; ++i) {
      text += "\n  " + read.problems[i].Text();
    }
    return Error{Code::kInvalidArgument, text, "`ringfence rule check` shows all of them", {}};
  }
  if (read.files == 0) {
    return Error{Code::kNotFound, "no rule file (.yml, .yaml) in " + paths.front(), {}, {}};
  }
  for (const sigma::LeftOut& one : read.set.left_out) {
    invocation.console.Warn("left out: " + one.place.file + ": " + one.why);
  }
  return std::move(read.set);
}

OptionSpec PipelineOption() {
  return {.name = "pipeline",
          .value = "FILE",
          .help = "a processing pipeline that adapts the rules to the events",
          .repeated = true,
          .completes = Completes::kFile};
}

namespace {

Json ToJson(const RulesRead& read) {
  JsonArray problems;
  for (const sigma::Problem& one : read.problems) {
    problems.push_back(JsonObject{{"file", one.place.file},
                                  {"line", one.place.line},
                                  {"field", one.field},
                                  {"what", one.what},
                                  {"hint", one.hint}});
  }
  JsonArray left_out;
  for (const sigma::LeftOut& one : read.set.left_out) {
    left_out.push_back(JsonObject{{"file", one.place.file},
                                  {"line", one.place.line},
                                  {"rule", one.key},
                                  {"why", one.why},
                                  {"hint", one.hint}});
  }
  return JsonObject{
      {"ok", read.problems.empty()},
      {"files", static_cast<std::int64_t>(read.files)},
      {"rules", static_cast<std::int64_t>(read.set.rules.size() + read.set.left_out.size())},
      {"correlations", static_cast<std::int64_t>(read.set.correlations.size())},
      {"filters", static_cast<std::int64_t>(read.set.filters)},
      {"problems", std::move(problems)},
      {"left_out", std::move(left_out)}};
}

Result<int> Check(Invocation& invocation) {
  RINGFENCE_ASSIGN(const RulesRead read,
                   ReadRuleSet(invocation.parsed.arguments, invocation.parsed));
  Console& console = invocation.console;
  const int status = read.problems.empty() ? kExitOk : kExitFindings;
  if (!console.table()) {
    console.Show(ToJson(read));
    return status;
  }
  for (const sigma::Problem& problem : read.problems) {
    console.out() << SafeLines(problem.Text()) << '\n';
  }
  for (const sigma::LeftOut& one : read.set.left_out) {
    console.out() << Safe(one.place.file) << ':' << one.place.line
                  << ": loads, but is not evaluated: " << Safe(one.why)
                  << (one.hint.empty() ? "" : " (" + Safe(one.hint) + ")") << '\n';
  }
  console.out() << (read.problems.empty() ? console.Good(console.Tick())
                                          : console.Bad(console.Cross()))
                << ' ' << Count(read.files, "file") << ": "
                << Count(read.set.rules.size() + read.set.left_out.size(), "rule") << ", "
                << Count(read.set.correlations.size(), "correlation") << ", "
                << Count(read.set.filters, "filter") << ", "
                << Count(read.problems.size(), "error");
  if (!read.set.left_out.empty()) {
    console.out() << ", " << read.set.left_out.size() << " not evaluated without a pipeline";
  }
  console.out() << '\n';
  return status;
}

Result<int> Test(Invocation& invocation) {
  std::vector<sigma::RuleTestResult> results;
  std::vector<std::string> errors;
  std::size_t files = 0;
  for (const std::string& path : invocation.parsed.arguments) {
    RINGFENCE_ASSIGN(const auto tests, sigma::FindFiles(path, {".test.yml"}));
    for (const std::string& file : tests) {
      if (!file.ends_with(".test.yml")) {
        return Error{Code::kInvalidArgument,
                     file + " is no test file",
                     "they are called RULE.test.yml and lie beside RULE.yml",
                     {}};
      }
      ++files;
      auto ran = sigma::RunRuleTest(file);
      if (!ran.has_value()) {
        errors.push_back(ran.error().message);
        continue;
      }
      std::move(ran->begin(), ran->end(), std::back_inserter(results));
    }
  }
  if (files == 0) {
    return Error{Code::kNotFound,
                 "no test (*.test.yml) in " + invocation.parsed.Argument(0),
                 "see docs/detection.md for their form",
                 {}};
  }
  const auto failed =
      std::count_if(results.begin(), results.end(), [](const auto& one) { return !one.passed; });
  const bool good = failed == 0 && errors.empty();
  Console& console = invocation.console;
  if (!console.table()) {
    JsonArray cases;
    for (const sigma::RuleTestResult& one : results) {
      cases.push_back(JsonObject{{"file", one.file},
                                 {"name", one.name},
                                 {"must_match", one.must_match},
                                 {"passed", one.passed},
                                 {"why", one.why}});
    }
    JsonArray problems;
    for (const std::string& error : errors) {
      problems.emplace_back(error);
    }
    console.Show(JsonObject{{"ok", good}, {"cases", cases}, {"errors", problems}});
    return good ? kExitOk : kExitFindings;
  }
  for (const std::string& error : errors) {
    console.out() << console.Bad(console.Cross()) << ' ' << SafeLines(error) << '\n';
  }
  for (const sigma::RuleTestResult& one : results) {
    if (!one.passed) {
      console.out() << console.Bad(console.Cross()) << ' ' << Safe(one.file) << ": "
                    << Safe(one.name) << ": " << Safe(one.why) << '\n';
    }
  }
  console.out() << (good ? console.Good(console.Tick()) : console.Bad(console.Cross())) << ' '
                << Count(files, "test file") << ": " << Count(results.size(), "case") << ", "
                << static_cast<std::size_t>(failed) + errors.size() << " failed\n";
  return good ? kExitOk : kExitFindings;
}

}  // namespace

CommandTable RuleCommands() {
  CommandTable table = {
      {.path = "rule check",
       .group = Group::kEvidence,
       .summary = "Read Sigma rules and say all that is wrong with them, without a server.",
       .details =
           "Errors name file, line and field. A rule that needs values for a placeholder loads,\n"
           "but is left out of matching until a pipeline gives them.",
       .options = {PipelineOption()},
       .arguments = {{.name = "PATH",
                      .help = "rule files, or folders of them",
                      .repeated = true,
                      .completes = Completes::kFile}},
       .examples = {{"ringfence rule check rules/", "before they are committed"},
                    {"ringfence rule check -o json rules/ --pipeline site.yml", "for a program"}},
       .exit_codes = "0 good, 1 errors",
       .handler = Check},
      {.path = "rule test",
       .group = Group::kEvidence,
       .summary = "Try rules on the events beside them that must and must not match.",
       .details = "For RULE.yml the events are in RULE.test.yml; docs/detection.md has its form.",
       .arguments = {{.name = "PATH",
                      .help = "test files, or folders of them",
                      .repeated = true,
                      .completes = Completes::kFile}},
       .examples = {{"ringfence rule test content/rules", "all rules that have tests"}},
       .exit_codes = "0 all pass, 1 some do not",
       .handler = Test},
  };
  for (CommandTable (*piece)() : {RuleMatchCommands, RuleViewCommands}) {
    CommandTable more = piece();
    std::move(more.begin(), more.end(), std::back_inserter(table));
  }
  return table;
}

}  // namespace ringfence::cli

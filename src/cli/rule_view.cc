// `ringfence rule list|coverage|explain`

#include <algorithm>
#include <map>

#include "base/code.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/human.h"
#include "cli/rule.h"
#include "cli/text.h"
#include "os/file.h"
#include "sigma/matcher.h"
#include "sigma/plain.h"

namespace ringfence::cli {
namespace {

constexpr std::string_view kAttack = "attack.";

// "T1496.001" of attack.t1496.001; empty for tactics and other tags.
std::string TechniqueOf(const std::string& tag) {
  if (!tag.starts_with("attack.t") || tag.size() < 9 || tag[8] < '0' || tag[8] > '9') {
    return {};
  }
  return "T" + tag.substr(8);
}

std::string TechniquesOf(const sigma::Rule& rule) {
  std::string text;
  for (const std::string& tag : rule.tags) {
    const std::string technique = TechniqueOf(tag);
    text += technique.empty() ? "" : (text.empty() ? "" : " ") + technique;
  }
  return text;
}

std::vector<const sigma::Rule*> AllRules(const sigma::RuleSet& set) {
  std::vector<const sigma::Rule*> rules;
  for (const sigma::ReadyRule& one : set.rules) {
    rules.push_back(&one.rule);
  }
  for (const sigma::ReadyCorrelation& one : set.correlations) {
    rules.push_back(&one.rule);
  }
  return rules;
}

JsonArray ToJson(const std::vector<std::string>& texts) {
  JsonArray list;
  for (const std::string& text : texts) {
    list.emplace_back(text);
  }
  return list;
}

Result<int> List(Invocation& invocation) {
  RINGFENCE_ASSIGN(const sigma::RuleSet set, NeedRuleSet(invocation, invocation.parsed.arguments));
  Console& console = invocation.console;
  JsonArray list;
  Table table({"LEVEL", "RULE", "LOGSOURCE", "ATT&CK", "TITLE"});
  for (const sigma::Rule* rule : AllRules(set)) {
    const std::string source =
        rule->kind == sigma::RuleKind::kCorrelation ? "correlation" : rule->logsource.Text();
    table.Add({rule->level, rule->Key(), source, TechniquesOf(*rule), rule->title});
    list.push_back(JsonObject{{"rule", rule->Key()},
                              {"title", rule->title},
                              {"level", rule->level},
                              {"status", rule->status},
                              {"logsource", source},
                              {"tags", ToJson(rule->tags)},
                              {"file", rule->place.file}});
  }
  if (console.table()) {
    table.Print(console);
  } else {
    console.Show(JsonObject{{"rules", std::move(list)}});
  }
  return kExitOk;
}

struct Covered {
  std::vector<const sigma::Rule*> rules;
};

int LevelRank(std::string_view level) {
  static constexpr std::string_view kLevels[] = {"informational", "low", "medium", "high",
                                                 "critical"};
  const auto* found = std::find(std::begin(kLevels), std::end(kLevels), level);
  return found == std::end(kLevels) ? -1 : static_cast<int>(found - std::begin(kLevels));
}

Result<int> Coverage(Invocation& invocation) {
  RINGFENCE_ASSIGN(const sigma::RuleSet set, NeedRuleSet(invocation, invocation.parsed.arguments));
  std::map<std::string, Covered> techniques;
  std::map<std::string, Covered> tactics;
  std::size_t untagged = 0;
  for (const sigma::Rule* rule : AllRules(set)) {
    bool tagged = false;
    for (const std::string& tag : rule->tags) {
      if (const std::string technique = TechniqueOf(tag); !technique.empty()) {
        techniques[technique].rules.push_back(rule);
        tagged = true;
      } else if (tag.starts_with(kAttack) && tag.size() > kAttack.size() &&
                 (tag[kAttack.size() + 1] < '0' || tag[kAttack.size() + 1] > '9')) {
        tactics[tag.substr(kAttack.size())].rules.push_back(rule);
      }
    }
    untagged += tagged ? 0 : 1;
  }
  Console& console = invocation.console;
  const auto show = [&](const char* head, const std::map<std::string, Covered>& all) {
    JsonArray list;
    Table table({head, "RULES", "HIGHEST"});
    for (const auto& [name, covered] : all) {
      const auto highest = std::max_element(
          covered.rules.begin(), covered.rules.end(),
          [](const auto* a, const auto* b) { return LevelRank(a->level) < LevelRank(b->level); });
      table.Add({name, std::to_string(covered.rules.size()), (*highest)->level});
      JsonArray keys;
      for (const sigma::Rule* rule : covered.rules) {
        keys.emplace_back(rule->Key());
      }
      list.push_back(
          JsonObject{{"name", name}, {"highest", (*highest)->level}, {"rules", std::move(keys)}});
    }
    if (console.table()) {
      table.Print(console);
      console.out() << '\n';
    }
    return list;
  };
  JsonArray by_tactic = show("TACTIC", tactics);
  JsonArray by_technique = show("TECHNIQUE", techniques);
  if (console.table()) {
    console.out() << Count(techniques.size(), "technique") << ", "
                  << Count(tactics.size(), "tactic") << "; " << Count(untagged, "rule")
                  << " without a technique\n";
  } else {
    console.Show(JsonObject{{"tactics", std::move(by_tactic)},
                            {"techniques", std::move(by_technique)},
                            {"untagged", untagged}});
  }
  return kExitOk;
}

Json ToJson(const sigma::Rule& rule, const sigma::Explained& explained) {
  JsonArray selections;
  for (const sigma::ExplainedSelection& one : explained.selections) {
    JsonArray tests;
    for (const sigma::ExplainedTest& test : one.tests) {
      tests.push_back(JsonObject{{"field", test.field},
                                 {"test", test.test},
                                 {"holds", test.holds},
                                 {"values", ToJson(test.values)}});
    }
    selections.push_back(
        JsonObject{{"name", one.name}, {"holds", one.holds}, {"tests", std::move(tests)}});
  }
  return JsonObject{{"rule", rule.Key()},
                    {"title", rule.title},
                    {"matches", explained.matches},
                    {"selections", std::move(selections)}};
}

void Print(Console& console, const sigma::ReadyRule& rule, const sigma::Explained& explained) {
  const auto mark = [&](bool holds) {
    return holds ? console.Good(console.Tick()) : console.Dim(console.Cross());
  };
  console.out() << console.Bold(Safe(rule.rule.title)) << ": "
                << (explained.matches ? console.Good("matches") : console.Bad("does not match"))
                << '\n';
  for (const std::string& condition : rule.rule.detection.conditions) {
    console.out() << "  condition: " << Safe(condition) << '\n';
  }
  constexpr std::size_t kFailedShown = 8;  // of one selection; what holds is always shown
  for (const sigma::ExplainedSelection& one : explained.selections) {
    console.out() << "  " << mark(one.holds) << ' ' << Safe(one.name) << '\n';
    std::size_t failed = 0;
    for (const sigma::ExplainedTest& test : one.tests) {
      if (!test.holds && ++failed > kFailedShown) {
        continue;
      }
      std::string values;
      for (const std::string& value : test.values) {
        values += (values.empty() ? "" : ", ") + ("\"" + value + "\"");
      }
      console.out() << "      " << mark(test.holds) << ' '
                    << Safe(test.field.empty() ? "any value" : test.field) << ' ' << Safe(test.test)
                    << "; the event has " << (values.empty() ? "nothing there" : Safe(values))
                    << '\n';
    }
    if (failed > kFailedShown) {
      console.out() << "      and " << failed - kFailedShown << " more that do not hold\n";
    }
  }
}

Result<int> Explain(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  if (!parsed.Has("rule") || !parsed.Has("event")) {
    return Error{Code::kInvalidArgument,
                 "--rule and --event are both needed",
                 "ringfence rule explain --rule rule.yml --event event.json",
                 {}};
  }
  RINGFENCE_ASSIGN(const sigma::RuleSet set, NeedRuleSet(invocation, parsed.Values("rule")));
  RINGFENCE_ASSIGN(const std::string text,
                   os::ReadText(*parsed.Value("event"), sigma::kEventBytesMax));
  const auto event = ParseJson(text, sigma::kEventBytesMax);
  if (!event.has_value()) {
    return Prefix(*parsed.Value("event"), event.error());
  }
  Console& console = invocation.console;
  JsonArray all;
  bool matches = false;
  for (const sigma::ReadyRule& rule : set.rules) {
    const sigma::Explained explained = sigma::Explain(rule, *event);
    matches = matches || explained.matches;
    if (console.table()) {
      Print(console, rule, explained);
    } else {
      all.push_back(ToJson(rule.rule, explained));
    }
  }
  if (!console.table()) {
    console.Show(JsonObject{{"matches", matches}, {"rules", std::move(all)}});
  }
  return kExitOk;
}

const ArgumentSpec kPath = {.name = "PATH",
                            .help = "rule files, or folders of them",
                            .repeated = true,
                            .completes = Completes::kFile};

}  // namespace

CommandTable RuleViewCommands() {
  return {
      {.path = "rule list",
       .group = Group::kEvidence,
       .summary = "List rules with level, log source and ATT&CK techniques.",
       .options = {PipelineOption()},
       .arguments = {kPath},
       .examples = {{"ringfence rule list content/rules", "those of our own"},
                    {"ringfence rule list -o json rules/", "for a program"}},
       .handler = List},
      {.path = "rule coverage",
       .group = Group::kEvidence,
       .summary = "Show which ATT&CK tactics and techniques the rules cover.",
       .options = {PipelineOption()},
       .arguments = {kPath},
       .examples = {{"ringfence rule coverage content/rules", "by technique"},
                    {"ringfence rule coverage -o json rules/", "with the rules of each"}},
       .handler = Coverage},
      {.path = "rule explain",
       .group = Group::kEvidence,
       .summary = "Show which selections of a rule an event matches, on which fields and values.",
       .options =
           {{.name = "rule", .value = "FILE", .help = "the rule", .completes = Completes::kFile},
            {.name = "event",
             .value = "FILE",
             .help = "the event, one JSON object",
             .completes = Completes::kFile},
            PipelineOption()},
       .examples = {{"ringfence rule explain --rule rule.yml --event event.json",
                     "why does it (not) match?"}},
       .handler = Explain},
  };
}

}  // namespace ringfence::cli

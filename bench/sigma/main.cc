// Sigma rules over events in memory, on one thread: events a second with a few rules and with all,
// against only parsing the same lines with the same parser. Prints JSON; bench/sigma.py runs it.
//
//   sigma RULES EVENTS.jsonl [--few N] [--rounds N] [--matches FILE]

#define SIMDJSON_THREADS_ENABLED 1
#include <simdjson.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sigma/matcher.h"
#include "sigma/ruleset.h"

namespace {

using namespace ringfence;  // NOLINT(google-build-using-namespace): one short program

// Of this program's own processor time: what else the machine does counts little.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Input {
  std::string text;  // with padding at the end
  std::vector<std::string_view> lines;
};

Input Read(const char* path) {
  Input input;
  std::ifstream stream(path, std::ios::binary);
  input.text.assign(std::istreambuf_iterator<char>(stream), {});
  const std::size_t size = input.text.size();
  input.text.append(sigma::kEventPadding + simdjson::SIMDJSON_PADDING, '\0');
  std::string_view rest(input.text.data(), size);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) {
      input.lines.push_back(rest.substr(0, end));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return input;
}

double PerSecond(std::size_t events, double start) {
  return static_cast<double>(events) / (CpuSeconds() - start);
}

double ParseOnly(const Input& input) {
  simdjson::dom::parser parser;
  const double start = CpuSeconds();
  std::size_t bad = 0;
  for (const std::string_view line : input.lines) {
    simdjson::dom::element document;
    bad += parser.parse(line.data(), line.size(), false).get(document) != simdjson::SUCCESS ? 1 : 0;
  }
  const double rate = PerSecond(input.lines.size(), start);
  return bad == input.lines.size() ? 0 : rate;
}

struct Outcome {
  double rate = 0;
  std::size_t matches = 0;
  std::size_t malformed = 0;
};

Outcome MatchAll(const sigma::Matcher& matcher, const Input& input) {
  sigma::Matcher::Session session(matcher);
  Outcome outcome;
  const double start = CpuSeconds();
  for (const std::string_view line : input.lines) {
    const auto matched = session.Match(line, true);
    if (matched.has_value()) {
      outcome.matches += (*matched)->size();
    } else {
      ++outcome.malformed;
    }
  }
  outcome.rate = PerSecond(input.lines.size(), start);
  return outcome;
}

// "LINE RULE" for each match, as tests/peers/sigma writes them.
void WriteMatches(const sigma::Matcher& matcher, const sigma::RuleSet& set, const Input& input,
                  const char* path) {
  sigma::Matcher::Session session(matcher);
  std::ofstream out(path);
  for (std::size_t i = 0; i < input.lines.size(); ++i) {
    const auto matched = session.Match(input.lines[i], true);
    for (const std::uint32_t rule :
         matched.has_value() ? **matched : std::vector<std::uint32_t>()) {
      out << i + 1 << ' ' << set.rules[rule].rule.id << '\n';
    }
  }
}

sigma::RuleSet Load(const std::string& path, std::size_t most) {
  std::vector<sigma::Problem> problems;
  auto loaded = sigma::LoadRules(path, problems);
  if (!loaded.has_value() || !problems.empty()) {
    std::fprintf(
        stderr, "%s\n",
        loaded.has_value() ? problems.front().Text().c_str() : loaded.error().message.c_str());
    std::exit(1);
  }
  if (most < loaded->rules.size()) {  // spread over all folders, always the same ones
    std::vector<sigma::Rule> few;
    for (std::size_t i = 0; i < most; ++i) {
      few.push_back(std::move(loaded->rules[i * loaded->rules.size() / most]));
    }
    loaded->rules = std::move(few);
  }
  return sigma::MakeReady(std::move(loaded->rules), {}, problems);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s RULES EVENTS.jsonl [--few N] [--rounds N] [--matches FILE]\n",
                 argv[0]);
    return 2;
  }
  std::size_t few_count = 100;
  int rounds = 3;
  const char* matches = nullptr;
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--few") {
      few_count = std::strtoul(argv[i + 1], nullptr, 10);
    } else if (name == "--matches") {
      matches = argv[i + 1];
    } else {
      rounds = std::atoi(argv[i + 1]);
    }
  }
  const Input input = Read(argv[2]);
  const double start = CpuSeconds();
  const sigma::RuleSet all_set = Load(argv[1], sigma::kRulesMax);
  const double read_s = CpuSeconds() - start;
  const double build_start = CpuSeconds();
  const auto all = sigma::Matcher::Build(all_set);
  const double build_s = CpuSeconds() - build_start;
  const sigma::RuleSet few_set = Load(argv[1], few_count);
  const auto few = sigma::Matcher::Build(few_set);
  if (matches != nullptr) {
    WriteMatches(*all, all_set, input, matches);
  }
  std::printf("[\n");
  for (int round = 0; round < rounds; ++round) {
    const double parse = ParseOnly(input);
    const Outcome one = MatchAll(*few, input);
    const Outcome other = MatchAll(*all, input);
    std::printf(
        "  {\"events\": %zu, \"bytes\": %zu, \"parse\": %.0f, \"few\": %.0f, \"all\": %.0f, "
        "\"rules\": %zu, \"few_rules\": %zu, \"few_matches\": %zu, \"matches\": %zu, "
        "\"malformed\": %zu, \"atoms\": %zu, \"always\": %zu, \"read_s\": %.2f, "
        "\"build_s\": %.2f}%s\n",
        input.lines.size(), input.text.size(), parse, one.rate, other.rate, all->facts().rules,
        few->facts().rules, one.matches, other.matches, other.malformed, all->facts().atoms,
        all->facts().always, read_s, build_s, round + 1 < rounds ? "," : "");
    std::fflush(stdout);
  }
  std::printf("]\n");
  return 0;
}

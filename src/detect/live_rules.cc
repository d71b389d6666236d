#include "detect/live_rules.h"

#include <algorithm>
#include <iterator>

#include "os/file.h"
#include "os/file_time.h"
#include "wire/yaml.h"

namespace ringfence::detect {
namespace {

constexpr Milliseconds kMemoryMax = std::chrono::hours(24);
// The server's memory is bounded: what a correlation cannot hold is counted and left.
constexpr sigma::CorrelatorLimits kLimits{.groups_max = 10'000, .entries_max = 2'000};

// A correlation of correlations looks back as far as all of them together.
Milliseconds MemoryOf(const sigma::RuleSet& set) {
  std::vector<Milliseconds> each;
  Milliseconds most{0};
  for (const sigma::ReadyCorrelation& one : set.correlations) {  // each after those it refers to
    Milliseconds below{0};
    for (const auto& part : one.parts) {
      if (part.correlation && part.index < each.size()) {
        below = std::max(below, each[part.index]);
      }
    }
    each.push_back(one.rule.correlation.timespan + below);
    most = std::max(most, each.back());
  }
  return std::min(most, kMemoryMax);
}

std::unique_ptr<sigma::Engine> EngineOf(sigma::RuleSet set) {
  return std::make_unique<sigma::Engine>(
      std::move(set), sigma::EngineOptions{.time_fields = {"time"}, .limits = kLimits});
}

}  // namespace

LiveRules LoadLiveRules(const RulePlaces& places) {
  LiveRules live;
  std::vector<sigma::Problem> problems;
  std::vector<sigma::Pipeline> pipelines;
  if (const auto text = os::ReadText(places.pipeline, wire::kYamlBytesMax); text.has_value()) {
    if (auto pipeline = sigma::Pipeline::Read(*text, places.pipeline, problems)) {
      pipelines.push_back(std::move(*pipeline));
    }
  } else {
    live.problems.push_back(text.error().message);
  }
  std::vector<sigma::Rule> rules;
  for (const std::string& folder : places.folders) {
    auto loaded = sigma::LoadRules(folder, problems);
    if (!loaded.has_value()) {
      live.problems.push_back(loaded.error().message);
      continue;
    }
    std::move(loaded->rules.begin(), loaded->rules.end(), std::back_inserter(rules));
  }
  sigma::RuleSet set = sigma::MakeReady(std::move(rules), pipelines, problems);
  for (const sigma::Problem& problem : problems) {
    live.problems.push_back(problem.Text());
  }
  for (const sigma::LeftOut& one : set.left_out) {
    live.problems.push_back(one.place.file + ": left out: " + one.why);
  }
  live.memory = MemoryOf(set);
  live.rules = set.rules.size() + set.correlations.size();
  live.engine = EngineOf(std::move(set));
  return live;
}

void Forget(LiveRules& live) { live.engine = EngineOf(sigma::RuleSet(live.engine->set())); }

std::string StampOfRules(const RulePlaces& places) {
  std::vector<std::string> files{places.pipeline};
  std::string stamp;
  for (const std::string& folder : places.folders) {
    auto found = sigma::FindFiles(folder, {".yml", ".yaml"});
    if (!found.has_value()) {
      stamp += folder + ": " + found.error().message + "\n";
      continue;
    }
    std::move(found->begin(), found->end(), std::back_inserter(files));
  }
  for (const std::string& file : files) {
    const auto one = os::StampOf(file);
    stamp += file;
    if (one.has_value()) {
      stamp += " " + std::to_string(one->bytes) + " " + std::to_string(one->modified_ns) + " " +
               std::to_string(one->inode);
    }
    stamp += "\n";
  }
  return stamp;
}

}  // namespace ringfence::detect

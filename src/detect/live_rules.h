#pragma once

// The rules that a server evaluates on its own events: found in folders, made ready with a
// pipeline, and read again when a file there changes.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sigma/engine.h"

namespace ringfence::detect {

struct RulePlaces {
  std::string pipeline;              // a file
  std::vector<std::string> folders;  // those of rules; one that is not there is a problem
};

struct LiveRules {
  std::unique_ptr<sigma::Engine> engine;
  std::size_t rules = 0;              // that are evaluated, correlations too
  Milliseconds memory{0};             // how far back a correlation looks
  std::vector<std::string> problems;  // with file and line; what has none is in the engine
};
LiveRules LoadLiveRules(const RulePlaces& places);
// The same rules, as if they had seen nothing yet.
void Forget(LiveRules& live);

// Differs when a file of the places was changed, added or removed.
std::string StampOfRules(const RulePlaces& places);

}  // namespace ringfence::detect

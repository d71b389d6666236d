#pragma once

// How big a risk is: what the check says, moved by what is known of the node, each step spelt out.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace ringfence::assure {

// One attack of `ringfence prove`.
struct Proof {
  std::string probe;
  std::string result;  // "held", "leaked", or another word: not tried
  Timestamp when{};
};

// What is known of a node beside its findings. Nothing is assumed where nothing was said.
struct Exposure {
  std::optional<int> tenants;
  std::string classification;     // "public", "internal", "confidential", "restricted"; empty: none
  std::optional<bool> reachable;  // from networks that are not the operator's
  std::vector<Proof> proofs;
  bool simulated = false;  // the proofs are of simulated GPUs
};
bool KnownClassification(std::string_view text);

struct RiskRule {
  std::string id;
  std::string says;
  std::string when;
  std::vector<std::string> classes;
  std::vector<std::string> checks;
  std::vector<std::string> probes;
  int likelihood = 0;
  int impact = 0;
  bool hardware = false;
};

struct RiskModel {
  std::vector<RiskRule> rules;
};
Result<RiskModel> ParseRiskModel(std::string_view yaml, const std::string& file);

// A step of the arithmetic.
struct RiskStep {
  std::string what;
  int likelihood = 0;
  int impact = 0;
};

struct Weighed {
  int likelihood = 1;  // 1..5, after the steps
  int impact = 1;
  std::vector<RiskStep> steps;

  int risk() const { return likelihood * impact; }
};

struct WeighedThing {
  std::string_view check;
  std::string_view area;
  int likelihood = 1;
  int impact = 1;
  bool transferred = false;  // somebody else bears the loss: impact less one
};
Weighed Weigh(const RiskModel& model, const WeighedThing& thing, const Exposure& exposure,
              Timestamp now);

// A proof counts for so long.
inline constexpr std::chrono::days kProofAge{30};

// 0 to 100: what is lost of all there is to lose, both in halves of risk.
int ScoreOf(std::int64_t lost, std::int64_t all);

}  // namespace ringfence::assure

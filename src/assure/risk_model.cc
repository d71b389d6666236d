#include <algorithm>
#include <array>

#include "assure/machine_view.h"
#include "assure/risk.h"
#include "base/json.h"
#include "wire/yaml.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kRulesMax = 1'000;
constexpr std::array<std::string_view, 9> kConditions = {
    "several_tenants", "one_tenant", "reachable", "isolated", "public",
    "restricted",      "always",     "proven",    "leaked"};

bool AnyMatches(const std::vector<std::string>& patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [text](const std::string& pattern) { return GlobMatches(pattern, text); });
}

bool Recent(const Proof& proof, Timestamp now) {
  return proof.when <= now && now - proof.when <= kProofAge;
}

// Of the last run of a probe alone: an older one says nothing any more.
bool Proven(const RiskRule& rule, const Exposure& exposure, Timestamp now) {
  if (rule.probes.empty() || (rule.hardware && exposure.simulated)) {
    return false;
  }
  return std::all_of(rule.probes.begin(), rule.probes.end(), [&](const std::string& probe) {
    const Proof* last = nullptr;
    for (const Proof& proof : exposure.proofs) {
      if (proof.probe == probe && (last == nullptr || proof.when > last->when)) {
        last = &proof;
      }
    }
    return last != nullptr && last->result == "held" && Recent(*last, now);
  });
}

bool Leaked(const RiskRule& rule, const Exposure& exposure, Timestamp now) {
  return std::any_of(exposure.proofs.begin(), exposure.proofs.end(), [&](const Proof& proof) {
    return proof.result == "leaked" && AnyMatches(rule.probes, proof.probe) && Recent(proof, now);
  });
}

bool Holds(const RiskRule& rule, const Exposure& exposure, Timestamp now) {
  if (rule.when == "several_tenants") {
    return exposure.tenants.value_or(0) > 1;
  }
  if (rule.when == "one_tenant") {
    return exposure.tenants.has_value() && *exposure.tenants <= 1;
  }
  if (rule.when == "reachable" || rule.when == "isolated") {
    return exposure.reachable == (rule.when == "reachable");
  }
  if (rule.when == "proven") {
    return Proven(rule, exposure, now);
  }
  if (rule.when == "leaked") {
    return Leaked(rule, exposure, now);
  }
  return rule.when == "always" || rule.when == exposure.classification;
}

bool IsAbout(const RiskRule& rule, const WeighedThing& thing) {
  return (rule.classes.empty() && rule.checks.empty()) || AnyMatches(rule.checks, thing.check) ||
         std::find(rule.classes.begin(), rule.classes.end(), thing.area) != rule.classes.end();
}

Result<RiskRule> ReadRule(const Json& value, const std::string& where) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(value, where));
  RiskRule rule;
  RINGFENCE_ASSIGN(rule.id, reader.String("id", 64));
  RINGFENCE_ASSIGN(rule.says, reader.String("says", 300));
  RINGFENCE_ASSIGN(rule.when, reader.String("when", 32));
  if (std::find(kConditions.begin(), kConditions.end(), rule.when) == kConditions.end()) {
    return Error{Code::kInvalidArgument,
                 where + ".when: there is no condition \"" + rule.when + "\"",
                 "the head of content/risk/model.yaml lists them"};
  }
  for (auto [name, into] : {std::pair{"classes", &rule.classes}, std::pair{"checks", &rule.checks},
                            std::pair{"probes", &rule.probes}}) {
    if (reader.Has(name)) {
      RINGFENCE_ASSIGN(*into, reader.Strings(name, 500, 64));
    }
  }
  RINGFENCE_ASSIGN(const auto likelihood, reader.IntOr("likelihood", 0, -4, 4));
  RINGFENCE_ASSIGN(const auto impact, reader.IntOr("impact", 0, -4, 4));
  RINGFENCE_ASSIGN(rule.hardware, reader.BoolOr("hardware", false));
  RINGFENCE_TRY(reader.Finish());
  rule.likelihood = static_cast<int>(likelihood);
  rule.impact = static_cast<int>(impact);
  if ((rule.when == "proven" || rule.when == "leaked") == rule.probes.empty()) {
    return Error{
        Code::kInvalidArgument,
        where + ": `probes` belongs to `when: proven` and `when: leaked`, and they need it"};
  }
  return rule;
}

}  // namespace

bool KnownClassification(std::string_view text) {
  return text == "public" || text == "internal" || text == "confidential" || text == "restricted";
}

Result<RiskModel> ParseRiskModel(std::string_view yaml, const std::string& file) {
  RINGFENCE_ASSIGN(const Json json, wire::YamlToJson(yaml, file));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_ASSIGN(const auto items, reader.Array("adjustments", kRulesMax));
  RINGFENCE_TRY(reader.Finish());
  RiskModel model;
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto rule = ReadRule(*items[i], "adjustments[" + std::to_string(i) + "]");
    if (!rule.has_value()) {
      return Prefix(file, rule.error());
    }
    model.rules.push_back(std::move(*rule));
  }
  return model;
}

Weighed Weigh(const RiskModel& model, const WeighedThing& thing, const Exposure& exposure,
              Timestamp now) {
  Weighed weighed{thing.likelihood, thing.impact, {}};
  for (const RiskRule& rule : model.rules) {
    if (IsAbout(rule, thing) && Holds(rule, exposure, now)) {
      weighed.steps.push_back({rule.says, rule.likelihood, rule.impact});
    }
  }
  if (thing.transferred) {
    weighed.steps.push_back({"somebody else bears the loss", 0, -1});
  }
  for (const RiskStep& step : weighed.steps) {
    weighed.likelihood += step.likelihood;
    weighed.impact += step.impact;
  }
  weighed.likelihood = std::clamp(weighed.likelihood, 1, 5);
  weighed.impact = std::clamp(weighed.impact, 1, 5);
  return weighed;
}

int ScoreOf(std::int64_t lost, std::int64_t all) {
  return all <= 0 ? 100 : static_cast<int>(100 - (100 * lost + all - 1) / all);
}

}  // namespace ringfence::assure

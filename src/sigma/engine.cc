#include "sigma/engine.h"

#include <algorithm>

#include "sigma/event_time.h"

namespace ringfence::sigma {

Engine::Engine(RuleSet set, EngineOptions options)
    : set_(std::make_unique<const RuleSet>(std::move(set))),
      options_(std::move(options)),
      correlator_(*set_, options_.limits) {
  if (options_.time_fields.empty()) {
    options_.time_fields = DefaultTimeFields();
  }
  options_.always_time = options_.always_time || !set_->correlations.empty();
  std::vector<std::string> fields = correlator_.Fields();
  if (options_.always_time) {
    fields.insert(fields.end(), options_.time_fields.begin(), options_.time_fields.end());
  }
  matcher_ = Matcher::Build(*set_, fields);
  session_ = std::make_unique<Matcher::Session>(*matcher_);
}

Engine::~Engine() = default;

std::optional<Timestamp> Engine::TimeOf() const {
  for (const std::string& field : options_.time_fields) {
    for (const std::string& text : session_->Values(field)) {
      if (const auto time = ParseEventTime(text)) {
        return time;
      }
    }
  }
  return std::nullopt;
}

Status Engine::Feed(std::uint64_t number, std::string_view json, bool padded,
                    const Report& report) {
  ++counts_.events;
  const auto matched = session_->Match(json, padded);
  if (!matched.has_value()) {
    ++counts_.malformed;
    return matched.error();
  }
  std::optional<Timestamp> time;
  if (options_.always_time) {
    time = TimeOf();
    counts_.without_time += time ? 0 : 1;
    last_time_ = time.value_or(last_time_);
  }
  for (const std::uint32_t index : **matched) {
    if (set_->rules[index].reported) {
      ++counts_.findings;
      report({&set_->rules[index].rule, index, nullptr, number, time});
    }
  }
  if (set_->correlations.empty()) {
    return {};
  }
  correlated_.clear();
  correlator_.Add(
      last_time_, number, **matched,
      [this](std::string_view field) { return session_->Values(field); }, correlated_);
  for (const CorrelationMatch& match : correlated_) {
    const ReadyCorrelation& correlation = set_->correlations[match.correlation];
    if (correlation.reported) {
      ++counts_.findings;
      report({&correlation.rule, match.correlation, &match, match.event, match.time});
    }
  }
  return {};
}

}  // namespace ringfence::sigma

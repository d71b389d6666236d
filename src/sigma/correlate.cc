#include "sigma/correlate.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ringfence::sigma {
namespace {

bool NeedsNumber(CorrelationType type) {
  return type == CorrelationType::kValueSum || type == CorrelationType::kValueAverage ||
         type == CorrelationType::kValuePercentile;
}

// Whether more events can only make it truer.
bool OnlyRises(const Correlation& rule) {
  if (rule.type == CorrelationType::kValueAverage ||
      rule.type == CorrelationType::kValuePercentile) {
    return false;
  }
  return std::all_of(rule.bounds.begin(), rule.bounds.end(), [](const Bound& bound) {
    return bound.op == Bound::Op::kGreater || bound.op == Bound::Op::kGreaterOrEqual;
  });
}

bool Holds(const ReadyCorrelation& correlation, double value) {
  const Correlation& rule = correlation.rule.correlation;
  if (rule.bounds.empty()) {  // temporal: all of the rules
    return value >= static_cast<double>(correlation.parts.size());
  }
  return std::all_of(rule.bounds.begin(), rule.bounds.end(),
                     [&](const Bound& bound) { return bound.Holds(value); });
}

// The field that `name` stands for in events of the rule that was written as `part`.
const std::string& Resolve(const Correlation& rule, const std::string& name,
                           const std::string& part) {
  const auto alias = rule.aliases.find(name);
  if (alias != rule.aliases.end()) {
    const auto field = alias->second.find(part);
    if (field != alias->second.end()) {
      return field->second;
    }
  }
  return name;
}

// The nearest rank: the least value that at least `percentile` per cent are not above.
double Percentile(std::vector<double> numbers, double percentile) {
  if (numbers.empty()) {
    return 0;
  }
  std::sort(numbers.begin(), numbers.end());
  const auto count = static_cast<double>(numbers.size());
  const auto rank = static_cast<std::size_t>(std::ceil(percentile / 100 * count));
  return numbers[std::min(numbers.size(), std::max<std::size_t>(rank, 1)) - 1];
}

}  // namespace

Correlator::Correlator(const RuleSet& set, CorrelatorLimits limits)
    : set_(set),
      limits_(limits),
      states_(set.correlations.size()),
      of_rule_(set.rules.size()),
      of_correlation_(set.correlations.size()) {
  for (std::size_t i = 0; i < set.correlations.size(); ++i) {
    states_[i].rising = OnlyRises(set.correlations[i].rule.correlation);
    for (std::uint32_t part = 0; part < set.correlations[i].parts.size(); ++part) {
      const auto& reference = set.correlations[i].parts[part];
      (reference.correlation ? of_correlation_ : of_rule_)[reference.index].emplace_back(i, part);
    }
  }
}

std::vector<std::string> Correlator::Fields() const {
  std::set<std::string> fields;
  for (const ReadyCorrelation& one : set_.correlations) {
    const Correlation& rule = one.rule.correlation;
    fields.insert(rule.group_by.begin(), rule.group_by.end());
    if (!rule.field.empty()) {
      fields.insert(rule.field);
    }
    for (const auto& [alias, by_rule] : rule.aliases) {
      for (const auto& [name, field] : by_rule) {
        fields.insert(field);
      }
    }
  }
  return {fields.begin(), fields.end()};
}

void Correlator::Add(Timestamp time, std::uint64_t event, const std::vector<std::uint32_t>& rules,
                     const Lookup& lookup, std::vector<CorrelationMatch>& out) {
  Advance(time, out);
  for (const std::uint32_t rule : rules) {
    for (const auto& [correlation, part] : of_rule_[rule]) {
      Feed(correlation, part, time, event, lookup, out);
    }
  }
}

void Correlator::Advance(Timestamp time, std::vector<CorrelationMatch>& out) {
  const Lookup nothing = [](std::string_view) { return std::vector<std::string>(); };
  for (std::size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    while (!state.closing.empty() && state.closing.begin()->first <= time) {
      const auto [end, key] = *state.closing.begin();
      state.closing.erase(state.closing.begin());
      Judge(i, key, end, nothing, out);
      state.groups.erase(key);
    }
  }
}

// Room for one more group; those that are over go first.
bool Correlator::MakeRoom(State& state, const Correlation& rule, Timestamp time) {
  if (state.groups.size() < limits_.groups_max) {
    return true;
  }
  if (state.rising) {
    std::erase_if(state.groups, [&](const auto& one) {
      return one.second.entries.empty() || one.second.entries.back().time < time - rule.timespan;
    });
  }
  return state.groups.size() < limits_.groups_max;
}

void Correlator::Feed(std::size_t correlation, std::uint32_t part, Timestamp time,
                      std::uint64_t event, const Lookup& lookup,
                      std::vector<CorrelationMatch>& out) {
  const ReadyCorrelation& ready = set_.correlations[correlation];
  const Correlation& rule = ready.rule.correlation;
  State& state = states_[correlation];
  std::string key;
  std::vector<std::pair<std::string, std::string>> names;
  for (const std::string& name : rule.group_by) {
    const auto values = lookup(Resolve(rule, name, ready.parts[part].written));
    if (values.empty()) {
      return;  // it belongs to no group
    }
    key += std::to_string(values.front().size()) + ":" + values.front();
    names.emplace_back(name, values.front());
  }
  Entry entry{time, event, part, {}, 0};
  if (!rule.field.empty()) {
    const auto values = lookup(Resolve(rule, rule.field, ready.parts[part].written));
    if (values.empty() || (NeedsNumber(rule.type) && !NumberOf(values.front(), entry.number))) {
      return;
    }
    entry.value = values.front();
  }
  auto group = state.groups.find(key);
  if (group == state.groups.end()) {
    if (!MakeRoom(state, rule, time)) {
      ++dropped_;
      return;
    }
    group = state.groups.emplace(key, Group{{}, std::move(names), time}).first;
    if (!state.rising) {
      state.closing.emplace(time + rule.timespan, key);
    }
  }
  std::deque<Entry>& entries = group->second.entries;
  if (state.rising) {
    while (!entries.empty() && entries.front().time < time - rule.timespan) {
      entries.pop_front();
    }
  }
  if (entries.size() >= limits_.entries_max) {
    ++dropped_;
    entries.pop_front();
  }
  const auto after = std::upper_bound(entries.begin(), entries.end(), time,
                                      [](Timestamp t, const Entry& e) { return t < e.time; });
  entries.insert(after, std::move(entry));
  if (state.rising) {
    Judge(correlation, key, time, lookup, out);
  }
}

double Correlator::ValueOf(const ReadyCorrelation& correlation, const Group& group) const {
  const Correlation& rule = correlation.rule.correlation;
  const auto& entries = group.entries;
  switch (rule.type) {
    case CorrelationType::kEventCount:
      return static_cast<double>(entries.size());
    case CorrelationType::kValueCount: {
      std::set<std::string_view> values;
      for (const Entry& entry : entries) {
        values.insert(entry.value);
      }
      return static_cast<double>(values.size());
    }
    case CorrelationType::kTemporal: {
      std::set<std::uint32_t> parts;
      for (const Entry& entry : entries) {
        parts.insert(entry.part);
      }
      return static_cast<double>(parts.size());
    }
    case CorrelationType::kTemporalOrdered: {
      std::uint32_t next = 0;  // how far the sequence has come
      for (const Entry& entry : entries) {
        next += entry.part == next ? 1 : 0;
      }
      return next;
    }
    case CorrelationType::kValueSum:
    case CorrelationType::kValueAverage: {
      double sum = 0;
      for (const Entry& entry : entries) {
        sum += entry.number;
      }
      return rule.type == CorrelationType::kValueSum || entries.empty()
                 ? sum
                 : sum / static_cast<double>(entries.size());
    }
    case CorrelationType::kValuePercentile: {
      std::vector<double> numbers;
      for (const Entry& entry : entries) {
        numbers.push_back(entry.number);
      }
      return Percentile(std::move(numbers), rule.percentile);
    }
  }
  return 0;
}

void Correlator::Judge(std::size_t correlation, const std::string& key, Timestamp time,
                       const Lookup& lookup, std::vector<CorrelationMatch>& out) {
  const ReadyCorrelation& ready = set_.correlations[correlation];
  const auto found = states_[correlation].groups.find(key);
  if (found == states_[correlation].groups.end() || found->second.entries.empty()) {
    return;
  }
  Group& group = found->second;
  const double value = ValueOf(ready, group);
  if (!Holds(ready, value)) {
    return;
  }
  CorrelationMatch match{correlation,          time,  group.entries.back().event,
                         group.entries.size(), value, group.names};
  const std::size_t skipped =
      group.entries.size() - std::min(group.entries.size(), kMatchMembersMax);
  for (std::size_t i = skipped; i < group.entries.size(); ++i) {
    match.members.push_back(group.entries[i].event);
  }
  if (states_[correlation].rising) {
    states_[correlation].groups.erase(found);
  }
  out.push_back(match);
  PassOn(match, lookup, out);
}

// What was found is an event to the correlations above: its fields are the group's, then those of
// the event that completed it.
void Correlator::PassOn(const CorrelationMatch& match, const Lookup& lookup,
                        std::vector<CorrelationMatch>& out) {
  const Lookup with_group = [&](std::string_view field) {
    for (const auto& [name, value] : match.group) {
      if (name == field) {
        return std::vector<std::string>{value};
      }
    }
    return lookup(field);
  };
  for (const auto& [above, part] : of_correlation_[match.correlation]) {
    Feed(above, part, match.time, match.event, with_group, out);
  }
}

}  // namespace ringfence::sigma

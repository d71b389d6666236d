#pragma once

// When a binding counts: the `when` of the kind Binding. All of it must hold. What is not known of
// a request does not hold.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "wire/yaml.h"

namespace ringfence::policy {

struct BindingCondition {
  std::vector<std::string> days;  // "mon" to "sun"; UTC, as are the hours
  // Minutes of the day, the second excluded; the first may be the later one: over midnight.
  std::optional<std::pair<int, int>> hours;
  std::optional<Timestamp> from;
  std::optional<Timestamp> until;
  std::vector<std::string> mfa_kinds;
  std::optional<Milliseconds> mfa_within;
  std::vector<std::string> networks;  // addresses with prefix
  std::vector<std::string> classes;
  std::vector<std::string> purposes;
  std::vector<std::string> classifications;
  std::vector<std::string> node;  // "attested", "patched"

  std::string ToCedar() const;  // an expression
};

// The map `when` of a spec; none without it. What is wrong goes to `problems`.
std::optional<BindingCondition> ReadCondition(wire::YamlReader& spec, const std::string& file,
                                              wire::YamlProblems& problems);

}  // namespace ringfence::policy

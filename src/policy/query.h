#pragma once

// Questions to a policy, with answers that say why: the rules that decided, with file and line, or
// the nearest rule that would have allowed it and what it lacked.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cedar/evaluator.h"
#include "cedar/value.h"
#include "policy/policy.h"

namespace ringfence::policy {

// What is known of a request, as Cedar's `context`.
cedar::ValueRecord ContextOf(const Circumstances& circumstances);
// One "mfa.age=10m", "class=mig", "network=10.0.0.7": the value is read as the schema has it.
Status AddContext(std::string_view assignment, cedar::ValueRecord& context);
// "2026-11-16T08:00:00Z", or a day: its first moment, in UTC.
Result<Timestamp> ParseTimeOrDay(std::string_view text);
// All assignments together, at a time. `at` is the time that was said; where none was, `usual` is
// taken, if there is one. Refused: what no request can have, and what contradicts the time.
struct WhenAsked {
  std::optional<Timestamp> at = {};
  std::optional<Timestamp> usual = {};
};
Result<cedar::ValueRecord> ReadContext(const std::vector<std::string>& assignments,
                                       const WhenAsked& when);

// kNotFound, with the nearest that there is.
Status CheckPrincipal(const Policy& policy, std::string_view name);
// "lease.request"; an error has the nearest that there is.
Result<Action> FindAction(std::string_view label);
// "acme/research" or "/"; it must be declared.
Result<model::TenantPath> FindResource(const Policy& policy, std::string_view text);

struct RuleInWords {
  std::string id;     // of the Cedar policy
  std::string where;  // "bindings.yaml:12"
  std::string words;  // "role developer at acme/research", or the policy's scope
};

struct Explanation {
  bool allowed = false;
  std::string reason;                  // in one line
  std::vector<RuleInWords> rules;      // that decided
  std::vector<std::string> errors;     // rules that could not be evaluated, and so did not count
  std::optional<RuleInWords> nearest;  // of a no by default: the rule that is nearest to a yes
  std::vector<std::string> missing;    // what it lacks
};

Explanation Explain(const Policy& policy, const Query& query, const cedar::ValueRecord& context);

// The request that a query comes to. The nearest declared tenant stands for one that is not.
cedar::Request RequestOf(const Policy& policy, const Query& query,
                         const cedar::ValueRecord& context);
// What a rule says, for one principal: with the binding that makes it apply to him, if there is
// one.
RuleInWords InWords(const Policy& policy, std::size_t rule, std::string_view principal);

}  // namespace ringfence::policy

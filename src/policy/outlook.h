#pragma once

// The reverse questions: who can do this, and what can this one do. Answered for the whole policy
// by partial evaluation: yes and no hold whatever the circumstances are, "if" comes with the
// condition that remains.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cedar/partial.h"
#include "policy/policy.h"

namespace ringfence::policy {

struct Point {
  std::string principal;
  Action action = Action::kStatusRead;
  model::TenantPath tenant = model::TenantPath::Root();
  cedar::Outlook::Answer answer = cedar::Outlook::Answer::kNo;
  std::string condition;  // of kIf, as Cedar
  // What makes it so, as places in Rulebook::rules(): the permits, and of kIf the forbids too.
  std::vector<std::uint32_t> rules = {};
};
std::string_view Name(cedar::Outlook::Answer answer);  // "no", "yes", "if"

// `known` are the members of the context that are certain. Every principal of the policy, by name.
std::vector<Point> WhoCan(const Policy& policy, Action action, const model::TenantPath& tenant,
                          const cedar::ValueRecord& known);
// Every action, each at "/" and at every tenant that it can be about. kNotFound: nobody of that
// name.
Result<std::vector<Point>> WhatCan(const Policy& policy, const std::string& principal,
                                   const cedar::ValueRecord& known);

// "A", "(A) or (B)", "(A) and not (C)".
std::string ConditionText(const cedar::Outlook& outlook);

}  // namespace ringfence::policy

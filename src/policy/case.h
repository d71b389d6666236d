#pragma once

// Cases beside the policy: the kind Case of the folder, for `ringfence policy test`.

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "cedar/value.h"
#include "policy/authorizer.h"
#include "policy/source.h"

namespace ringfence::policy {

class Policy;

struct PolicyCase {
  std::string name;
  Query query;  // its circumstances do not count
  std::optional<Timestamp> at;
  std::vector<std::string> context;  // "class=mig"
  bool allow = false;                // what is expected
  std::string rule;                  // an id that must be among those that decided; may be empty
  Source source;
};

struct CaseResult {
  bool passed = false;
  std::string why;  // what happened instead
};

// `now` stands for cases that say no time.
CaseResult RunCase(const Policy& policy, const PolicyCase& one, Timestamp now);

}  // namespace ringfence::policy

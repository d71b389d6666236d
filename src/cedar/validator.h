#pragma once

// Policies against a schema: would they ever err, and can they ever apply? Sound as the
// reference's validator is: a policy without errors evaluates without errors but for overflow and
// entities that are missing, on requests and entities that conform to the schema.

#include <string>
#include <vector>

#include "cedar/ast.h"
#include "cedar/schema.h"

namespace ringfence::cedar {

struct Finding {
  std::string policy;
  std::size_t offset = 0;  // in the policies' text
  std::string message;
  bool operator==(const Finding&) const = default;
};

struct ValidationResult {
  std::vector<Finding> errors;
  std::vector<Finding> warnings;  // policies that can never apply, confusable text
  bool passed() const { return errors.empty(); }
};

ValidationResult Validate(const PolicySet& policies, const Schema& schema,
                          ValidationMode mode = ValidationMode::kStrict);

}  // namespace ringfence::cedar

#pragma once

// The plain evaluator: it walks the tree and does what the language says, one line an operator.
// cedar/engine.h is the fast one; tests hold them against each other.

#include <string>
#include <vector>

#include "base/result.h"
#include "cedar/ast.h"
#include "cedar/entities.h"
#include "cedar/value.h"

namespace ringfence::cedar {

struct Request {
  EntityUid principal;
  EntityUid action;
  EntityUid resource;
  Value context = Value::Record({});
};

// An error is what Cedar calls an evaluation error: a missing attribute, an overflow, a wrong type.
Result<Value> Evaluate(const Expr& expr, const Request& request, const Entities& entities,
                       const SlotValues& slots = {});

enum class Decision : std::uint8_t { kDeny, kAllow };
std::string_view Name(Decision decision);  // "allow", "deny"

struct PolicyError {
  std::string policy;
  std::string message;
};

struct Response {
  Decision decision = Decision::kDeny;
  std::vector<std::string> reasons;  // the policies that decided, in the set's order
  std::vector<PolicyError> errors;   // policies that could not be evaluated, and so did not count
};

// Deny unless a permit holds; a forbid that holds wins over every permit.
Response IsAuthorized(const PolicySet& policies, const Request& request, const Entities& entities);

}  // namespace ringfence::cedar

#pragma once

// Cedar's policy syntax. Errors say line and column ("3:14: ...") and what was expected.

#include <string>
#include <string_view>

#include "base/result.h"
#include "cedar/ast.h"

namespace ringfence::cedar {

struct ParseOptions {
  bool id_annotations = false;  // `@id("x")` names the policy, as the reference's command line does
};

// Static policies and templates in any number; ids are policy0, policy1 … in the text's order.
Result<PolicySet> ParsePolicies(std::string_view text, const ParseOptions& options = {});

struct ParsedExpr {
  std::shared_ptr<ExprArena> arena;
  const Expr* expr = nullptr;
};
Result<ParsedExpr> ParseExpr(std::string_view text);

// `Acme::User::"alice"`.
Result<EntityUid> ParseEntityUid(std::string_view text);
// `Acme::User`; the normal form without blanks.
Result<std::string> ParseTypeName(std::string_view text);

}  // namespace ringfence::cedar

#pragma once

// The JSON form of policies.

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "cedar/ast.h"

namespace ringfence::cedar {

// {"staticPolicies": {id: policy}, "templates": {..}, "templateLinks": [..]}, or one policy alone
// (its id is then policy0).
Result<PolicySet> PoliciesFromJson(std::string_view text);
Json ToJson(const PolicySet& policies);
Json ToJson(const PolicyBody& body);
Json ToJson(const Expr& expr);

// [{"template_id": .., "link_id": .., "args": {"?principal": "User::\"alice\""}}], the file of
// links that the reference's command line reads.
Status AddLinksFromJson(std::string_view text, PolicySet& policies);

}  // namespace ringfence::cedar

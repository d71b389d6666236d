#pragma once

// Cedar's JSON: text, values, entity ids.

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "cedar/types.h"
#include "cedar/value.h"

namespace ringfence::cedar {

// As ringfence::ParseJson, but as deep as policies in JSON need: kJsonTextDepthMax.
inline constexpr int kJsonTextDepthMax = 500;
Result<Json> ReadJson(std::string_view text);

// A value. With a type, short forms are understood too (an entity without "__entity", an address
// as bare text), as the reference does; the result need not be of the type.
Result<Value> ValueFromJson(const Json& json, const Type* expected, const std::string& where);
Json ToJson(const Value& value);

// {"type": .., "id": ..} or {"__entity": ..}.
Result<EntityUid> UidFromJson(const Json& json, const std::string& where);
Json ToJson(const EntityUid& uid);

// The context of a request: a record.
Result<Value> ContextFromJson(const Json& json, const Type* expected);

}  // namespace ringfence::cedar

#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace ringfence::store {

// Brings the schema up to date inside the caller's transaction. Migrations are only ever added at
// the end, and each leaves the schema such that the version before it can still work.
Status Migrate(Connection& connection);
int NewestSchema();

}  // namespace ringfence::store

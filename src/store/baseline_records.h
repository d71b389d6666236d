#pragma once

// What was learned of live series, by name. The state's bytes are the caller's.

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "store/database.h"

namespace ringfence::store {

struct BaselineRow {
  std::string name;
  Timestamp heard;
  Bytes state;
};
Status PutBaselines(Connection& db, const std::vector<BaselineRow>& rows);
Result<std::vector<BaselineRow>> ListBaselines(Connection& db, std::int64_t limit);
Status ForgetBaselines(Connection& db, Timestamp before);

}  // namespace ringfence::store

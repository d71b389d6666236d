#pragma once

// What came of attacking nodes: the last result of each probe, by node.

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "store/database.h"

namespace ringfence::store {

struct LeakingNode {
  std::string node;
  std::string probe;  // the first that got through
  Timestamp time;
};

// The document of that node; an empty object where nothing was proved yet.
Result<JsonObject> GetProofs(Connection& db, const std::string& node);
// `leak`: a probe got through a wall of whole GPUs, or none did.
Status PutProofs(Connection& db, const std::string& node, const JsonObject& document,
                 const LeakingNode* leak);
Result<std::vector<LeakingNode>> LeakingNodes(Connection& db);

}  // namespace ringfence::store

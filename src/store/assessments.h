#pragma once

// What checks found on nodes: the last assessment of each in full, and a line for each before it.

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "store/database.h"

namespace ringfence::store {

inline constexpr std::size_t kAssessmentPointsMax = 200;

// The documents of that node; empty objects where it was never assessed.
Result<JsonObject> GetAssessment(Connection& db, const std::string& node);
Result<JsonObject> GetAssessmentTrend(Connection& db, const std::string& node);
Status PutAssessment(Connection& db, const std::string& node, const JsonObject& assessment,
                     const JsonObject& trend);
// The trends of all nodes, by name.
Result<JsonArray> ListAssessmentTrends(Connection& db);

}  // namespace ringfence::store

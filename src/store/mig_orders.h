#pragma once

// What was ordered last of each GPU's MIG, and what became of it. An order that is open keeps its
// GPU from being leased.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "store/database.h"

namespace ringfence::store {

enum class MigOrderState { kOrdered, kApplying, kApplied, kFailed };
std::string_view Name(MigOrderState state);

struct MigOrder {
  std::string id;
  std::string gpu;
  std::string node;
  std::int64_t serial = 0;  // rises with each order for a GPU
  std::string aim;          // gpu::ParseMigAim
  std::string target;       // as the server planned it; the node plans again
  MigOrderState state = MigOrderState::kOrdered;
  std::string reason;  // why it failed, or why it is not done yet
  std::string ordered_by;
  Timestamp ordered;
  Timestamp updated;

  bool is_open() const {
    return state == MigOrderState::kOrdered || state == MigOrderState::kApplying;
  }
};
JsonObject MigOrderToJson(const MigOrder& order);

Status PutMigOrder(Connection& db, const MigOrder& order);
Result<std::optional<MigOrder>> FindMigOrder(Connection& db, const std::string& gpu);
Result<std::vector<MigOrder>> OpenMigOrders(Connection& db);
Result<std::vector<MigOrder>> ListMigOrders(Connection& db);

}  // namespace ringfence::store

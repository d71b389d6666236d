#include "store/mig_orders.h"

#include <utility>

namespace ringfence::store {
namespace {

constexpr std::size_t kRecordBytesMax = 64 * 1024;
constexpr std::size_t kTextBytesMax = 4096;

constexpr std::pair<MigOrderState, std::string_view> kStates[] = {
    {MigOrderState::kOrdered, "ordered"},
    {MigOrderState::kApplying, "applying"},
    {MigOrderState::kApplied, "applied"},
    {MigOrderState::kFailed, "failed"},
};

Result<MigOrder> FromText(const std::string& text) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kRecordBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "order"));
  MigOrder order;
  RINGFENCE_ASSIGN(order.id, reader.String("id"));
  RINGFENCE_ASSIGN(order.gpu, reader.String("gpu"));
  RINGFENCE_ASSIGN(order.node, reader.String("node"));
  RINGFENCE_ASSIGN(order.serial, reader.Int("serial", 1, std::int64_t{1} << 53U));
  RINGFENCE_ASSIGN(order.aim, reader.String("aim"));
  RINGFENCE_ASSIGN(order.target, reader.String("target"));
  RINGFENCE_ASSIGN(const std::string state, reader.String("state"));
  RINGFENCE_ASSIGN(order.reason, reader.String("reason", kTextBytesMax));
  RINGFENCE_ASSIGN(order.ordered_by, reader.String("ordered_by"));
  RINGFENCE_ASSIGN(const std::string ordered, reader.String("ordered"));
  RINGFENCE_ASSIGN(const std::string updated, reader.String("updated"));
  RINGFENCE_TRY(reader.Finish());
  RINGFENCE_ASSIGN(order.ordered, ParseTime(ordered));
  RINGFENCE_ASSIGN(order.updated, ParseTime(updated));
  for (const auto& [value, name] : kStates) {
    if (name == state) {
      order.state = value;
      return order;
    }
  }
  return Error{Code::kCorrupt, "an order for MIG has the unknown state " + state};
}

Result<std::vector<MigOrder>> Read(Connection& db, std::string_view sql) {
  RINGFENCE_ASSIGN(const auto rows, db.Run(sql, {}));
  std::vector<MigOrder> orders;
  for (const Row& row : rows) {
    RINGFENCE_ASSIGN(MigOrder order, FromText(TextAt(row, 0)));
    orders.push_back(std::move(order));
  }
  return orders;
}

}  // namespace

std::string_view Name(MigOrderState state) {
  for (const auto& [value, name] : kStates) {
    if (value == state) {
      return name;
    }
  }
  return "";
}

JsonObject MigOrderToJson(const MigOrder& order) {
  return JsonObject{{"id", order.id},
                    {"gpu", order.gpu},
                    {"node", order.node},
                    {"serial", order.serial},
                    {"aim", order.aim},
                    {"target", order.target},
                    {"state", std::string(Name(order.state))},
                    {"reason", order.reason.substr(0, kTextBytesMax)},
                    {"ordered_by", order.ordered_by},
                    {"ordered", FormatTime(order.ordered)},
                    {"updated", FormatTime(order.updated)}};
}

Status PutMigOrder(Connection& db, const MigOrder& order) {
  RINGFENCE_TRY(
      db.Run("INSERT INTO mig_orders (gpu, node, is_open, record) VALUES ($1, $2, $3, $4)"
             " ON CONFLICT (gpu) DO UPDATE SET node = excluded.node, is_open = excluded.is_open,"
             " record = excluded.record",
             {order.gpu, order.node, std::int64_t{order.is_open() ? 1 : 0},
              CanonicalJson(MigOrderToJson(order))}));
  return {};
}

Result<std::optional<MigOrder>> FindMigOrder(Connection& db, const std::string& gpu) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT record FROM mig_orders WHERE gpu = $1", {gpu}));
  if (rows.empty()) {
    return std::optional<MigOrder>();
  }
  RINGFENCE_ASSIGN(MigOrder order, FromText(TextAt(rows[0], 0)));
  return std::optional<MigOrder>(std::move(order));
}

Result<std::vector<MigOrder>> OpenMigOrders(Connection& db) {
  return Read(db, "SELECT record FROM mig_orders WHERE is_open = 1 ORDER BY gpu");
}

Result<std::vector<MigOrder>> ListMigOrders(Connection& db) {
  return Read(db, "SELECT record FROM mig_orders ORDER BY gpu");
}

}  // namespace ringfence::store

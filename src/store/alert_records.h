#pragma once

// Alerts as they are kept. `record` is the API's JSON; what is beside it is searched by.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace ringfence::store {

// The newest so many are kept, whatever their status.
inline constexpr std::int64_t kAlertsMax = 20000;

struct AlertRow {
  std::string id;
  std::int64_t number = 0;  // in the order they came; given by InsertAlert
  std::string what;         // the rule and whom it is about: matches with the same are one alert
  std::string tenant;
  std::string status;
  std::int64_t severity = 0;
  bool told = true;  // whoever is to be told of it has been
  std::string record;
};

// Drops the oldest beyond kAlertsMax.
Status InsertAlert(Connection& db, const AlertRow& row);
Status UpdateAlert(Connection& db, const AlertRow& row);
Result<AlertRow> GetAlert(Connection& db, const std::string& id);  // kNotFound
// The newest about the same.
Result<std::optional<AlertRow>> FindAlert(Connection& db, const std::string& what);

struct AlertFilter {
  std::string status;
  std::string tenant;  // this and below
  std::int64_t severity_least = 0;
  std::int64_t before = 0;  // older than this number; 0: from the newest
  std::int64_t limit = 100;
};
// Newest first.
Result<std::vector<AlertRow>> ListAlerts(Connection& db, const AlertFilter& filter);
Result<std::int64_t> CountAlerts(Connection& db, const std::string& status);

// Oldest first.
Result<std::vector<AlertRow>> UntoldAlerts(Connection& db, std::int64_t limit);
Status SetTold(Connection& db, const std::string& id);

}  // namespace ringfence::store

#include "store/database.h"

#include "base/check.h"

namespace ringfence::store {

std::int64_t IntAt(const Row& row, std::size_t column) {
  RINGFENCE_CHECK(column < row.size() && std::holds_alternative<std::int64_t>(row[column]));
  return std::get<std::int64_t>(row[column]);
}

const std::string& TextAt(const Row& row, std::size_t column) {
  RINGFENCE_CHECK(column < row.size() && std::holds_alternative<std::string>(row[column]));
  return std::get<std::string>(row[column]);
}

const Bytes& BlobAt(const Row& row, std::size_t column) {
  RINGFENCE_CHECK(column < row.size() && std::holds_alternative<Bytes>(row[column]));
  return std::get<Bytes>(row[column]);
}

namespace {
constexpr std::string_view kUnknown =
    "the database went away while it committed, and did not come back to say how that ended";
}  // namespace

Error OutcomeUnknown() {
  return Error{Code::kUnavailable, std::string(kUnknown),
               "look whether it happened, or repeat it with the same idempotency key"};
}

bool IsOutcomeUnknown(const Error& error) { return error.message.ends_with(kUnknown); }

bool IsPostgresUrl(std::string_view where) {
  return where.starts_with("postgresql://") || where.starts_with("postgres://");
}

Result<std::unique_ptr<Database>> Open(const std::string& where) {
  if (!IsPostgresUrl(where) && where.find("://") != std::string::npos) {
    return Error{Code::kInvalidArgument, "this is no URL of a database we know",
                 "name a file, or postgresql://USER@HOST/DATABASE"};
  }
  return IsPostgresUrl(where) ? OpenPostgres(where) : OpenSqlite(where);
}

}  // namespace ringfence::store

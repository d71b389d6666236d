#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/database.h"

namespace ringfence::store {

enum class Dialect { kSqlite, kPostgres };

// Brings the schema up to date inside the caller's transaction, which no other may write beside.
// A database that is newer than we know is left as it is if we can live with it, and is
// kFailedPrecondition if not. How to write a migration: docs/formats/database.md. `known` is the
// newest schema that the program knows: less than ours where a test plays an older one.
int NewestSchema();
Status Migrate(Connection& connection, Dialect dialect, int known = NewestSchema());

// What the database at `where` has, and whether this program can work with it, without changing
// anything: kNotFound where there is none yet, kFailedPrecondition when it is too new for us.
Result<int> SchemaAt(const std::string& where);
Result<int> SchemaAtSqlite(const std::string& path);
Result<int> SchemaAtPostgres(const std::string& url);
Result<int> SchemaSeen(Connection& connection);

// The schema that first has this table.
int SchemaWith(std::string_view table);

// The database demands programs that know schema `least`, and this one does not.
Error TooOld(std::int64_t have, std::int64_t least);

// A statement of a migration, written in SQLite's types, as `dialect` has it.
std::string InDialect(std::string_view statement, Dialect dialect);

}  // namespace ringfence::store

#pragma once

// The tables of the schema as data, for whoever copies all records: the order of keys and columns
// is the same on every database that stands behind store::Database.

#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace ringfence::store {

enum class Copies {
  kRows,     // row by row
  kOutput,   // row by row, if what jobs printed is wanted
  kEntries,  // the audit log's entries: copied as entries, all else follows from them
  kNothing,  // of no use elsewhere
};

struct TableSpec {
  std::string_view name;
  Copies copies = Copies::kRows;
  std::vector<std::string_view> key;      // the primary key
  std::vector<std::string_view> columns;  // all of them, the key's first
};

// Every table, in an order in which their rows can be inserted.
const std::vector<TableSpec>& AllTables();
const TableSpec* FindTable(std::string_view name);  // null: none of that name

// Each row, with its columns in the order of `table.columns`, in the order of the key. Reads a page
// at a time, so that memory does not grow with the table. Inside one Database::Read all of it is of
// one moment.
Status ForEachRow(Connection& db, const TableSpec& table,
                  const std::function<Status(const Row&)>& visit);

// `columns` are those of `row`; others get their defaults.
Status InsertRow(Connection& db, const TableSpec& table,
                 const std::vector<std::string_view>& columns, const Row& row);

Result<bool> IsEmpty(Connection& db, const TableSpec& table);

}  // namespace ringfence::store

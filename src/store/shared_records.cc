#include "store/shared_records.h"

#include "base/json.h"

namespace ringfence::store {
namespace {

constexpr std::size_t kPolicyJsonBytesMax = std::size_t{256} << 20U;

Result<std::map<std::string, std::string>> FilesOf(const std::string& text) {
  const Error damaged{Code::kCorrupt, "the stored policy is damaged", "restore from a backup"};
  const auto json = ParseJson(text, kPolicyJsonBytesMax);
  if (!json.has_value() || !json->is_object()) {
    return damaged;
  }
  std::map<std::string, std::string> files;
  for (const auto& [name, value] : json->as_object()) {
    if (!value.is_string()) {
      return damaged;
    }
    files.emplace(std::string(name), std::string(value.as_string()));
  }
  return files;
}

}  // namespace

Result<std::string> SettleFact(Connection& db, const std::string& name, const std::string& value) {
  RINGFENCE_TRY(
      db.Run("INSERT INTO facts (name, value) VALUES ($1, $2)"
             " ON CONFLICT (name) DO NOTHING",
             {name, value}));
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT value FROM facts WHERE name = $1", {name}));
  return TextAt(rows[0], 0);
}

Result<std::string> GetFact(Connection& db, const std::string& name) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT value FROM facts WHERE name = $1", {name}));
  return rows.empty() ? std::string() : TextAt(rows[0], 0);
}

Status PutPolicy(Connection& db, const StoredPolicy& policy) {
  JsonObject files;
  for (const auto& [name, text] : policy.files) {
    files[name] = text;
  }
  RINGFENCE_TRY(
      db.Run("INSERT INTO policies (digest, number, files) VALUES"
             " ($1, (SELECT COALESCE(MAX(number), 0) + 1 FROM policies), $2)"
             " ON CONFLICT (digest) DO UPDATE SET number = excluded.number",
             {policy.digest, CanonicalJson(files)}));
  return {};
}

Result<std::optional<std::string>> NewestPolicy(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT digest FROM policies ORDER BY number DESC LIMIT 1", {}));
  return rows.empty() ? std::nullopt : std::optional(TextAt(rows[0], 0));
}

Result<StoredPolicy> GetPolicy(Connection& db, const std::string& digest) {
  RINGFENCE_ASSIGN(const auto rows,
                   db.Run("SELECT files FROM policies WHERE digest = $1", {digest}));
  if (rows.empty()) {
    return Error{Code::kNotFound, "no policy " + digest + " was ever in force"};
  }
  RINGFENCE_ASSIGN(auto files, FilesOf(TextAt(rows[0], 0)));
  return StoredPolicy{digest, std::move(files)};
}

Status PutPulse(Connection& db, const std::string& node, const Pulse& pulse) {
  RINGFENCE_TRY(
      db.Run("INSERT INTO pulses (node, seen_ms, witnessed) VALUES ($1, $2, $3)"
             " ON CONFLICT (node) DO UPDATE SET seen_ms = $2, witnessed = $3"
             " WHERE pulses.seen_ms <= $2",
             {node, std::int64_t{pulse.seen.time_since_epoch().count()},
              static_cast<std::int64_t>(pulse.witnessed)}));
  return {};
}

Result<std::map<std::string, Pulse>> ListPulses(Connection& db) {
  RINGFENCE_ASSIGN(const auto rows, db.Run("SELECT node, seen_ms, witnessed FROM pulses", {}));
  std::map<std::string, Pulse> pulses;
  for (const Row& row : rows) {
    pulses.emplace(TextAt(row, 0), Pulse{Timestamp(Milliseconds(IntAt(row, 1))),
                                         static_cast<std::uint64_t>(IntAt(row, 2))});
  }
  return pulses;
}

}  // namespace ringfence::store

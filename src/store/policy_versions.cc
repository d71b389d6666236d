#include "store/policy_versions.h"

#include "store/migrations.h"

namespace ringfence::store {
namespace {

constexpr std::string_view kSelect = "SELECT number, digest, envelope FROM policy_versions ";

PolicyVersion VersionOf(const Row& row) { return {IntAt(row, 0), TextAt(row, 1), TextAt(row, 2)}; }

// With the files, unless another version has the same.
Status Drop(Connection& db, const PolicyVersion& version) {
  RINGFENCE_TRY(db.Run("DELETE FROM policy_versions WHERE number = $1", {version.number}));
  RINGFENCE_TRY(
      db.Run("DELETE FROM policies WHERE digest = $1 AND number <"
             " (SELECT MAX(number) FROM policies) AND NOT EXISTS"
             " (SELECT 1 FROM policy_versions WHERE digest = $1)",
             {version.digest}));
  return {};
}

}  // namespace

Result<bool> HasPolicyVersions(Connection& db) {
  RINGFENCE_ASSIGN(const int schema, SchemaSeen(db));
  return schema >= SchemaWith("policy_versions");
}

Status InsertPolicyVersion(Connection& db, const PolicyVersion& version) {
  RINGFENCE_TRY(db.Run("INSERT INTO policy_versions (number, digest, envelope) VALUES ($1, $2, $3)",
                       {version.number, version.digest, version.envelope}));
  return {};
}

Result<std::optional<PolicyVersion>> NewestPolicyVersion(Connection& db) {
  RINGFENCE_ASSIGN(const auto versions, ListPolicyVersions(db, 0, 1));
  return versions.empty() ? std::optional<PolicyVersion>() : std::optional(versions[0]);
}

Result<PolicyVersion> GetPolicyVersion(Connection& db, std::int64_t number) {
  RINGFENCE_ASSIGN(const auto rows, db.Run(std::string(kSelect) + "WHERE number = $1", {number}));
  if (rows.empty()) {
    return Error{Code::kNotFound,
                 "there is no version " + std::to_string(number) + " of the policy",
                 "`ringfence policy versions` lists those there are"};
  }
  return VersionOf(rows[0]);
}

Result<std::vector<PolicyVersion>> ListPolicyVersions(Connection& db, std::int64_t before,
                                                      std::int64_t limit) {
  RINGFENCE_ASSIGN(
      const auto rows,
      db.Run(std::string(kSelect) + "WHERE $1 = 0 OR number < $1 ORDER BY number DESC LIMIT $2",
             {before, limit}));
  std::vector<PolicyVersion> versions;
  versions.reserve(rows.size());
  for (const Row& row : rows) {
    versions.push_back(VersionOf(row));
  }
  return versions;
}

Status ForgetPolicyVersions(Connection& db, std::int64_t versions_max, std::int64_t bytes_max) {
  for (;;) {
    RINGFENCE_ASSIGN(
        const auto counts,
        db.Run("SELECT CAST(COUNT(*) AS BIGINT), (SELECT CAST(COALESCE(SUM(LENGTH(files)), 0)"
               " AS BIGINT) FROM policies WHERE digest IN (SELECT digest FROM policy_versions))"
               " FROM policy_versions",
               {}));
    const std::int64_t count = IntAt(counts[0], 0);
    if (count <= 1 || (count <= versions_max && IntAt(counts[0], 1) <= bytes_max)) {
      return {};
    }
    RINGFENCE_ASSIGN(const auto oldest,
                     db.Run(std::string(kSelect) + "ORDER BY number LIMIT 1", {}));
    RINGFENCE_TRY(Drop(db, VersionOf(oldest[0])));
  }
}

}  // namespace ringfence::store

#pragma once

// Which policies were in force, one row for each time that one came into force. The row with the
// highest number is the one that counts; its files are in the table of shared_records.h.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace ringfence::store {

// The oldest go beyond either of these, never the one in force. What was in force when stays in
// the audit log.
inline constexpr std::int64_t kPolicyVersionsMax = 1000;
inline constexpr std::int64_t kPolicyBytesKeptMax = std::int64_t{256} << 20U;

struct PolicyVersion {
  std::int64_t number = 0;  // from 1
  std::string digest;
  std::string envelope;  // who, when and why, signed by the server
};

// False in a database that a program of before has left as it was.
Result<bool> HasPolicyVersions(Connection& db);
Status InsertPolicyVersion(Connection& db, const PolicyVersion& version);
Result<std::optional<PolicyVersion>> NewestPolicyVersion(Connection& db);
Result<PolicyVersion> GetPolicyVersion(Connection& db, std::int64_t number);  // kNotFound
// Newest first; `before` 0: from the newest.
Result<std::vector<PolicyVersion>> ListPolicyVersions(Connection& db, std::int64_t before,
                                                      std::int64_t limit);
// Drops what is beyond the two limits above.
Status ForgetPolicyVersions(Connection& db, std::int64_t versions_max = kPolicyVersionsMax,
                            std::int64_t bytes_max = kPolicyBytesKeptMax);

}  // namespace ringfence::store

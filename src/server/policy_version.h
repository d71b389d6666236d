#pragma once

// A version of the policy: which files came into force, when, by whom, why, and instead of what.
// Signed by the server, so that a policy that somebody wrote into the database by other ways is
// not followed.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "audit/entry.h"
#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "crypto/ed25519.h"
#include "policy/policy.h"
#include "store/policy_versions.h"

namespace ringfence::server {

inline constexpr std::string_view kPolicyVersionType =
    "application/vnd.ringfence.policy-version+json";
inline constexpr std::size_t kPolicyReasonBytesMax = 500;

// How a version came into force. As long as the newest one came from the folder, the folder
// counts: it is read when the server starts and when it is told to reload.
inline constexpr std::string_view kFromFolder = "folder";
inline constexpr std::string_view kFromApply = "apply";
inline constexpr std::string_view kFromRollback = "rollback";

// Why a policy comes into force.
struct PolicyChange {
  audit::Actor actor;
  std::string_view origin = kFromFolder;
  std::int64_t restores = 0;  // of a rollback: the version that is in force again
  bool forced = false;        // against a check that would have refused it
  std::string reason = {};
  std::optional<std::int64_t> expected = {};  // kConflict when another version is in force
  policy::Decision decision = {true, {}};     // that allowed it
};

struct VersionFacts {
  std::int64_t number = 0;
  std::string digest;
  std::int64_t previous = 0;  // 0: none
  std::string previous_digest;
  Timestamp time;
  std::string by;
  std::string via;
  std::string origin;
  std::int64_t restores = 0;
  bool forced = false;
  std::string reason;

  JsonObject ToJson() const;
};

// What became of putting a policy in force.
struct PolicyApplied {
  VersionFacts facts;
  bool changed = false;  // false: it was in force already
};

store::PolicyVersion Sign(const crypto::SigningKey& key, const VersionFacts& facts);
// kCorrupt when it is not what a server with this key signed, or signed for another row.
Result<VersionFacts> Open(const crypto::PublicKey& key, const store::PolicyVersion& version);

// The policy of that version, out of the database. kCorrupt when the files are not the signed ones.
Result<std::shared_ptr<const policy::Policy>> PolicyOf(store::Database& database,
                                                       const VersionFacts& facts);

// Why nobody could change the policy any more once this one is in force; empty: somebody could.
// Asks for a principal who may apply policy in these circumstances (those of whoever brings it) and
// holds a token that is good now.
Result<std::string> WhoIsLockedOut(store::Database& database, const policy::Policy& policy,
                                   const policy::Circumstances& circumstances, Timestamp now);

}  // namespace ringfence::server

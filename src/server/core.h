#pragma once

// What every route works with: the records, the policy, the clock, the keys, and the one way to
// change state, which writes the audit entry in the same transaction.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "audit/entry.h"
#include "base/result.h"
#include "base/time.h"
#include "identity/token.h"
#include "model/lease.h"
#include "model/node.h"
#include "net/http.h"
#include "policy/policy.h"
#include "server/access_ledger.h"
#include "server/detector.h"
#include "server/keys.h"
#include "server/policy_version.h"
#include "server/sequencer.h"
#include "server/telemetry_board.h"
#include "server/waiters.h"
#include "store/database.h"
#include "store/output_records.h"
#include "store/records.h"

namespace ringfence::server {

// Who is calling, once proven.
struct Caller {
  std::string principal;
  std::string kind;  // "user", "service", "node"
  std::string via;   // token id or certificate fingerprint
  std::string address;
  Timestamp expires;  // of the token or certificate
};

audit::Actor ActorOf(const Caller& caller);

// What a node said of itself lately. With one server it is lost with it, and said again within
// seconds; several tell each other through the database.
struct NodePulse {
  Timestamp last_seen;
  std::uint64_t witnessed_size = 0;
  Timestamp stored;  // its last_seen when it was last written to the database
};

struct Counters {
  std::atomic<std::uint64_t> allowed{0};
  std::atomic<std::uint64_t> denied{0};
  std::atomic<std::uint64_t> unauthenticated{0};
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> leases_requested{0};
  std::atomic<std::uint64_t> scrubs{0};
  std::atomic<std::uint64_t> scrubs_failed{0};
  std::atomic<std::uint64_t> incidents{0};
};

// Changes that wait for the disk at once. Fewer than the server has handlers: when the disk stands
// still, health and reads are answered all the same.
inline constexpr std::size_t kChangesAtOnceMax = 72;

// Since when uses of permissions are recorded in this database.
inline const std::string kUsesSinceFact = "access_uses_since";

// Any thread. Its members outlive the HTTP server, which calls into it.
class Core {
 public:
  struct Parts {
    std::unique_ptr<store::Database> database;
    ServerKeys keys;
    std::string policy_folder;
    std::shared_ptr<const policy::Policy> policy;
    bool shared = false;  // other servers may work on the same database
    Milliseconds keep_output = std::chrono::hours(24 * 30);
    std::int64_t policy_version = 0;
    std::string local_principal = {};  // whom `ringfence up` signs in here; empty: nobody
  };
  Core(Parts parts, const Clock& clock);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  store::Database& database() { return *database_; }
  const Clock& clock() const { return clock_; }
  Timestamp Now() const { return clock_.Now(); }
  const ServerKeys& keys() const { return keys_; }
  const identity::TokenMint& mint() const { return mint_; }
  bool shared() const { return shared_; }
  Milliseconds keep_output() const { return keep_output_; }
  Waiters& waiters() { return waiters_; }
  Counters& counters() { return counters_; }
  TelemetryBoard& telemetry() { return telemetry_; }
  AccessLedger& uses() { return uses_; }
  // Writes the uses that were collected, for all servers to read.
  Status KeepUses();
  Sequencer& sequencer() { return *sequencer_; }
  void SetSequencer(std::unique_ptr<Sequencer> sequencer) { sequencer_ = std::move(sequencer); }
  Detector* detector() { return detector_.get(); }  // null: nothing is detected here
  void SetDetector(std::unique_ptr<Detector> detector) { detector_ = std::move(detector); }
  Timestamp started() const { return started_; }
  void SetPublicAddress(std::string address) { public_address_ = std::move(address); }
  const std::string& public_address() const { return public_address_; }

  std::shared_ptr<const policy::Policy> policy() const { return std::atomic_load(&policy_); }
  Timestamp policy_loaded() const;
  // kInvalidArgument with every error when the folder is bad; the old policy stays in force.
  Result<std::shared_ptr<const policy::Policy>> LoadPolicy() const;
  // Puts it in force on all servers of this database, as a new signed version, with its entry; all
  // of it in one transaction.
  Result<PolicyApplied> ApplyPolicy(std::shared_ptr<const policy::Policy> policy,
                                    const PolicyChange& change);
  // Puts the folder in force. kFailedPrecondition once something was applied, unless forced;
  // kInvalidArgument with every error of the folder, on record. The old policy stays.
  // `check` may refuse what was read, before it is in force.
  Result<PolicyApplied> ReloadFolder(
      PolicyChange change, const std::function<Status(const policy::Policy&)>& check = {});
  // Puts on record that a policy was not put in force, and why.
  Status RefusePolicy(const PolicyChange& change, const std::string& why);
  // What the newest version is, as it was signed; none: a policy from before there were versions.
  Result<std::optional<VersionFacts>> NewestVersion();
  std::int64_t policy_version() const { return policy_version_; }  // 0: not known
  const std::string& local_principal() const { return local_principal_; }
  // Takes over the policy that another server has put in force. Until that works, this server is
  // not ready: see policy_problem().
  void FollowPolicy();
  std::string policy_problem() const;

  // An entry with the time, a random id and the policy filled in.
  audit::Entry NewEntry(const audit::Actor& actor, std::string_view action) const;
  // Appends inside the caller's transaction.
  static Status Record(store::Connection& db, const audit::Entry& entry);
  // Runs `work` and wakes the sequencer once it is durable. kExhausted when kChangesAtOnceMax are
  // under way.
  Status Change(const std::function<Status(store::Connection&)>& work);
  // An entry by itself: a denial, a read of the log.
  Status RecordAlone(const audit::Entry& entry);

  // Entry for one step of a lease.
  audit::Entry StepEntry(const audit::Actor& actor, std::string_view action,
                         const model::Lease& lease) const;

  // Whether a copy of the log by this token is a new one, to be recorded: the first file in ten
  // minutes. The other files of it are counted.
  bool BeginsLogCopy(const std::string& token);

  void SawNode(const std::string& node);
  // Tells the other servers which nodes were heard of here.
  Status KeepPulses();
  void SetWitnessed(const std::string& node, std::uint64_t size);
  // Nodes with what they said lately.
  Result<std::vector<model::Node>> Nodes(store::Connection& db) const;
  Result<model::Node> NodeNamed(store::Connection& db, const std::string& name) const;

  // Something changed: wake those who wait for it, at every server.
  void NotifyLease(const std::string& lease) { Notify("lease:" + lease); }
  void NotifyWork(const std::string& node) { Notify("work:" + node); }
  void NotifyEvents() { Notify("event"); }
  void NotifyAlerts() { Notify("alert"); }
  // Another server said so; "": it may have said anything.
  void Heard(const std::string& topic);
  void NotifyAllWork();  // of the nodes that speak to this server

 private:
  static constexpr std::string_view kPolicyTopic = "policy";

  // null: the policy is the one we have, only its version is another.
  void SetPolicy(std::shared_ptr<const policy::Policy> policy, std::int64_t version);
  std::string Follow();  // what is in the way of following; empty: nothing
  void Notify(const std::string& topic);
  Status AddPulses(store::Connection& db, std::vector<model::Node>& nodes) const;

  const Clock& clock_;
  const Timestamp started_;
  const std::unique_ptr<store::Database> database_;
  const ServerKeys keys_;
  const identity::TokenMint mint_;
  const std::string policy_folder_;
  const bool shared_;
  const Milliseconds keep_output_;
  const std::string local_principal_;
  Waiters waiters_;
  Counters counters_;
  TelemetryBoard telemetry_;
  AccessLedger uses_;
  std::atomic<std::size_t> changes_{0};           // under way
  std::shared_ptr<const policy::Policy> policy_;  // shared: requests under way keep the old one
  std::atomic<std::int64_t> policy_version_;
  std::atomic<Timestamp> policy_loaded_;
  std::string public_address_;
  std::string policy_problem_;  // under mutex_
  mutable std::mutex mutex_;
  std::map<std::string, NodePulse> pulses_;
  std::map<std::string, Timestamp> log_copies_;
  std::unique_ptr<Sequencer> sequencer_;  // last: stops before what it uses goes
  std::unique_ptr<Detector> detector_;    // uses all of the above
};

// The time-driven part: leases that were never started, old idempotency answers and output.
Status Sweep(Core& core);

}  // namespace ringfence::server

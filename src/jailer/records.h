#pragma once

// What the jailer must still know after it was killed: which leases it started, which GPUs are
// clean, which lease ids were ever used. One folder, one owner, one thread.
//   state.json  leases and clean GPUs, replaced whole
//   used        a line for each forgotten lease: "TIME LEASE\n", appended
//   mig.json    what was ordered of GPUs' MIG (jailer/mig_book.h)
//   uids        which range of user ids is which tenant's (jailer/uid_ranges.h)
//   incidents/  a signed statement each, oldest first by name

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "gpu/device_files.h"
#include "isolate/jailer_client.h"
#include "jailer/mig_book.h"
#include "jailer/uid_ranges.h"
#include "model/isolation.h"
#include "os/file.h"

namespace ringfence::jailer {

inline constexpr std::size_t kUsedMax = 500'000;
// So many used ids, or twice as many as were left the last time, and those of old are dropped.
inline constexpr std::size_t kUsedLookedThrough = 512;
// A grant is refused for its age by then, whatever the clock did meanwhile within reason.
inline constexpr auto kUsedKept = std::chrono::hours(24);

// The GPU is not the lease's alone: others of the same class may be on it.
struct RecordShare {
  model::IsolationClass isolation = model::IsolationClass::kTime;
  std::string tenant;
};

// Which leases had shares of a GPU since it was last clean.
struct SharedGpu {
  std::vector<std::string> leases;
  bool open = true;  // false once a scrub was begun, or after a reboot: nobody joins any more
};

struct LeaseRecord {
  std::string lease;
  isolate::BoxState state = isolate::BoxState::kPreparing;
  std::vector<gpu::WantedGpu> gpus;
  unsigned slot = 0;
  std::string grant_digest;  // hex SHA-256 of the envelope
  Timestamp start_before;
  Timestamp changed;
  std::string receipt;  // envelope
  std::optional<RecordShare> share;
};

class Records {
 public:
  // Makes the folder's files if absent. After a reboot no GPU counts as clean.
  static Result<Records> Open(const std::string& folder, const std::string& boot_id, Timestamp now);

  const std::map<std::string, LeaseRecord>& leases() const { return leases_; }
  const LeaseRecord* Find(const std::string& lease) const;
  bool WasUsed(const std::string& lease) const;
  bool IsClean(const std::string& uuid) const { return clean_.contains(uuid); }
  bool HoldsWhole(const std::string& uuid) const;  // some lease, not only a slice of it
  std::vector<std::string> Clean() const;          // UUIDs
  // The lease that holds the GPU, or a slice of it, and is not scrubbed yet; empty when none does.
  std::string HolderOf(const std::string& uuid) const;
  // Every lease that holds the GPU and is not scrubbed yet.
  std::vector<const LeaseRecord*> HoldersOf(const std::string& uuid) const;
  const SharedGpu* FindShared(const std::string& uuid) const;
  // A range of user ids that is this tenant's and no box's now; durably the tenant's.
  Result<unsigned> TakeSlot(const std::string& tenant);

  // Returns once durable: from here on the lease is used and its GPUs are not clean, even if the
  // machine stops now.
  Status Begin(const LeaseRecord& record);
  // Not kept: after a crash it is found out anew.
  void SetState(const std::string& lease, isolate::BoxState state, Timestamp now);
  // Returns once durable: the GPUs are clean by this receipt. `lease` may be empty.
  Status SetScrubbed(const std::string& lease, const std::vector<std::string>& gpus,
                     const std::string& receipt_id, const std::string& receipt, Timestamp now);
  // Before GPUs are scrubbed without a lease: if that fails half-way they must not count as clean.
  Status SetDirty(const std::vector<std::string>& gpus);
  // Drops a scrubbed lease; its id stays used. Durable.
  Status Forget(const std::string& lease, Timestamp now);

  MigBook& mig() { return mig_; }
  const MigBook& mig() const { return mig_; }

  Result<std::vector<std::string>> Incidents() const;
  // Durable. kExhausted when there is no room: the count of those is kept for the next one.
  Status AddIncident(const std::string& envelope);
  std::uint64_t IncidentsDropped() const;
  Status AckIncidents(std::uint32_t count);

 private:
  Records(std::string folder, std::string boot_id, os::AppendFile used, UidRanges ranges,
          MigBook mig)
      : folder_(std::move(folder)),
        boot_id_(std::move(boot_id)),
        used_file_(std::move(used)),
        ranges_(std::move(ranges)),
        mig_(std::move(mig)) {}
  Status Load();
  // Reads which ids were used, and leaves out of the file those that need not be kept any more.
  Status LoadUsed(Timestamp now);
  Status OpenUsed();
  void AddUsed(const std::string& lease);
  Json ToJson() const;
  Status Save() const;
  Result<std::vector<std::string>> IncidentNames() const;

  std::string folder_;
  std::string boot_id_;
  os::AppendFile used_file_;
  UidRanges ranges_;
  MigBook mig_;
  bool used_torn_ = false;      // its last line may be half there
  bool used_replaced_ = false;  // by another file, which is not open yet
  std::map<std::string, LeaseRecord> leases_;
  std::map<std::string, std::string> clean_;  // UUID -> receipt id
  std::map<std::string, SharedGpu> shared_;   // by UUID
  // Hashes of ids, in order: a node that runs a job a second uses 86,400 a day. Two ids with one
  // hash would cost the later one its start, once in many millions of years.
  std::vector<std::uint64_t> used_;
  std::size_t look_through_at_ = kUsedLookedThrough;
};

}  // namespace ringfence::jailer

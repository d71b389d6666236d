#pragma once

// What leases used, for audit and charge-back: leases in, sums out. A lease holds its GPUs from the
// moment it is placed until its job has ended; the scrub after it is counted apart, as it is the
// operator's. Both moments are entries of the audit log with the same times, so whoever has the log
// comes to the same sums.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/lease.h"
#include "model/node.h"

namespace ringfence::lease {

enum class UsageBy : std::uint8_t { kTenant, kPrincipal, kGpu, kLease };
std::string_view Name(UsageBy by);
Result<UsageBy> ParseUsageBy(std::string_view text);

struct UsageWindow {
  Timestamp from;
  Timestamp to;  // not in it; at most now, which is as long as a lease that goes on counts
};

struct UsageSums {
  std::uint64_t leases = 0;
  Milliseconds gpu{0};    // a GPU held for a second is 1000, a slice as much of it as it has memory
  Milliseconds slice{0};  // each slice counted as one, however large; a whole GPU is one too
  Milliseconds scrub{0};  // GPUs that nobody could have yet
  std::uint64_t memory_mib_seconds = 0;
  Milliseconds memory_unknown{0};  // the part of `gpu` on GPUs whose memory is not known any more

  std::uint64_t memory_mib_milliseconds_rest = 0;  // below a MiB-second, carried
};

struct UsageRow {
  std::string key;        // tenant, principal, GPU or lease
  std::string tenant;     // by lease
  std::string principal;  // by lease
  std::string node;       // by GPU and by lease
  UsageSums sums;
};

// When a lease held its GPUs, as far as it lies in `window`; zero when it does not.
struct Held {
  Milliseconds used{0};
  Milliseconds scrubbed{0};
};
Held HeldWithin(const model::Lease& lease, const UsageWindow& window);

// For one thread.
class UsageLedger {
 public:
  UsageLedger(UsageBy by, UsageWindow window, const std::vector<model::Gpu>& gpus);

  void Add(const model::Lease& lease);
  std::vector<UsageRow> rows() const;  // by key
  const UsageSums& total() const { return total_; }

 private:
  std::optional<std::uint64_t> MemoryOf(const model::Lease& lease, const std::string& uuid) const;
  void AddTo(UsageSums& sums, const model::Lease& lease, const std::vector<std::string>& gpus,
             const Held& held) const;

  const UsageBy by_;
  const UsageWindow window_;
  std::map<std::string, std::uint64_t> memory_mib_;  // by UUID
  std::map<std::string, UsageRow> rows_;
  UsageSums total_;
};

}  // namespace ringfence::lease

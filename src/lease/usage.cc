#include "lease/usage.h"

#include <algorithm>
#include <array>

namespace ringfence::lease {
namespace {

struct ByName {
  UsageBy by;
  std::string_view name;
};
constexpr std::array kNames = {ByName{UsageBy::kTenant, "tenant"},
                               ByName{UsageBy::kPrincipal, "principal"},
                               ByName{UsageBy::kGpu, "gpu"}, ByName{UsageBy::kLease, "lease"}};

// The first time that it came to `state`.
std::optional<Timestamp> ReachedAt(const model::Lease& lease, model::LeaseState state) {
  for (const model::LeaseStep& step : lease.steps) {
    if (step.state == state) {
      return step.time;
    }
  }
  return std::nullopt;
}

// Of [from, to) the part in the window. A clock that was put back makes nothing negative.
Milliseconds Overlap(Timestamp from, Timestamp to, const UsageWindow& window) {
  const Timestamp first = std::max(from, window.from);
  const Timestamp last = std::min(to, window.to);
  return std::max(Milliseconds(0), last - first);
}

// At most some 2^58: a MiB-millisecond of the largest lease of the longest time.
void AddMemory(UsageSums& sums, std::uint64_t mib, Milliseconds used) {
  sums.memory_mib_milliseconds_rest += mib * static_cast<std::uint64_t>(used.count());
  sums.memory_mib_seconds += sums.memory_mib_milliseconds_rest / 1000;
  sums.memory_mib_milliseconds_rest %= 1000;
}

// Of a GPU that a lease has a share of it has as much as of its memory.
void AddShare(UsageSums& sums, const model::ShareRequest& share,
              std::optional<std::uint64_t> gpu_mib, Milliseconds used) {
  const std::uint64_t mib = share.memory_bytes >> 20U;
  const std::uint64_t whole = std::max({mib, gpu_mib.value_or(mib), std::uint64_t{1}});
  sums.gpu += Milliseconds(
      static_cast<std::int64_t>(static_cast<std::uint64_t>(used.count()) * mib / whole));
  AddMemory(sums, mib, used);
}

}  // namespace

std::string_view Name(UsageBy by) {
  for (const ByName& one : kNames) {
    if (one.by == by) {
      return one.name;
    }
  }
  return "unknown";
}

Result<UsageBy> ParseUsageBy(std::string_view text) {
  for (const ByName& one : kNames) {
    if (one.name == text) {
      return one.by;
    }
  }
  return Error{Code::kInvalidArgument, "by: \"" + std::string(text) + "\" is nothing to sum up by",
               "write tenant, principal, gpu or lease", "by"};
}

Held HeldWithin(const model::Lease& lease, const UsageWindow& window) {
  const auto placed = ReachedAt(lease, model::LeaseState::kPlaced);
  if (!placed.has_value()) {
    return {};
  }
  Held held;
  held.used = Overlap(*placed, lease.ended.value_or(window.to), window);
  const auto scrubbing = ReachedAt(lease, model::LeaseState::kScrubbing);
  if (scrubbing.has_value() && lease.ended.has_value()) {
    // Quarantine is nobody's use, and may last for weeks.
    const auto clean = ReachedAt(lease, model::LeaseState::kClosed);
    const auto failed = ReachedAt(lease, model::LeaseState::kQuarantined);
    held.scrubbed =
        Overlap(*lease.ended, failed.has_value() ? *failed : clean.value_or(window.to), window);
  }
  return held;
}

UsageLedger::UsageLedger(UsageBy by, UsageWindow window, const std::vector<model::Gpu>& gpus)
    : by_(by), window_(window) {
  for (const model::Gpu& gpu : gpus) {
    memory_mib_[gpu.uuid] = gpu.memory_bytes >> 20U;
  }
}

std::optional<std::uint64_t> UsageLedger::MemoryOf(const model::Lease& lease,
                                                   const std::string& uuid) const {
  if (lease.slice.has_value()) {
    return lease.slice->memory_bytes >> 20U;
  }
  const auto memory = memory_mib_.find(uuid);
  return memory == memory_mib_.end() ? std::nullopt : std::optional(memory->second);
}

void UsageLedger::AddTo(UsageSums& sums, const model::Lease& lease,
                        const std::vector<std::string>& gpus, const Held& held) const {
  ++sums.leases;
  const auto part = [&](Milliseconds time) {
    return lease.slice.has_value() ? time * lease.slice->gpu_millis / 1000 : time;
  };
  for (const std::string& uuid : gpus) {
    sums.slice += held.used;
    if (lease.request.share.has_value()) {
      AddShare(sums, *lease.request.share, MemoryOf(lease, uuid), held.used);
      continue;
    }
    sums.gpu += part(held.used);
    sums.scrub += part(held.scrubbed);
    const auto memory = MemoryOf(lease, uuid);
    if (!memory.has_value()) {
      sums.memory_unknown += held.used;
      continue;
    }
    AddMemory(sums, *memory, held.used);
  }
}

void UsageLedger::Add(const model::Lease& lease) {
  const Held held = HeldWithin(lease, window_);
  if (held.used.count() == 0 && held.scrubbed.count() == 0) {
    return;
  }
  AddTo(total_, lease, lease.gpus, held);
  if (by_ == UsageBy::kGpu) {
    for (const std::string& uuid : lease.gpus) {
      UsageRow& row = rows_[uuid];
      row.key = uuid;
      row.node = lease.node;
      AddTo(row.sums, lease, {uuid}, held);
    }
    return;
  }
  const std::string& key = by_ == UsageBy::kTenant      ? lease.request.tenant.text()
                           : by_ == UsageBy::kPrincipal ? lease.principal
                                                        : lease.id;
  UsageRow& row = rows_[key];
  row.key = key;
  if (by_ == UsageBy::kLease) {
    row.tenant = lease.request.tenant.text();
    row.principal = lease.principal;
    row.node = lease.node;
  }
  AddTo(row.sums, lease, lease.gpus, held);
}

std::vector<UsageRow> UsageLedger::rows() const {
  std::vector<UsageRow> rows;
  rows.reserve(rows_.size());
  for (const auto& [key, row] : rows_) {
    rows.push_back(row);
  }
  return rows;
}

}  // namespace ringfence::lease

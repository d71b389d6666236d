#include "judge.h"

#include <algorithm>

#include "audit/entry.h"
#include "base/json.h"
#include "policy/boundary.h"
#include "store/records.h"

namespace ringfence::simulation {
namespace {

using model::GpuState;
using model::LeaseState;

struct EntryFacts {
  std::string id;
  std::string action;
  std::string lease;
};

EntryFacts FactsOf(const Bytes& bytes) {
  EntryFacts facts;
  const auto json = ParseJson(AsText(bytes), bytes.size());
  if (!json.has_value() || !json->is_object()) {
    return facts;
  }
  const auto text = [&](const char* name) {
    const Json* value = json->get_object().if_contains(name);
    return value != nullptr && value->is_string()
               ? std::string(value->get_string().data(), value->get_string().size())
               : std::string();
  };
  return {text("id"), text("action"), text("lease")};
}

// The entries of which one must stand beside a step, in the same transaction.
std::vector<std::string> WitnessesOf(LeaseState state) {
  switch (state) {
    case LeaseState::kRequested:
      return {"lease.request"};
    case LeaseState::kAdmitted:
      return {"lease.admit"};
    case LeaseState::kQueued:
      return {"lease.queue"};
    case LeaseState::kPlaced:
      return {"lease.place"};
    case LeaseState::kPreparing:
      return {"lease.grant"};
    case LeaseState::kActive:
      return {"lease.start"};
    case LeaseState::kEnding:
      return {"lease.end", "lease.job_end", "lease.start"};
    case LeaseState::kScrubbing:
      return {"lease.scrub", "gpu.scrub_order"};
    case LeaseState::kClosed:
      return {"lease.close", "lease.end"};
    case LeaseState::kQuarantined:
      return {"gpu.quarantine"};
  }
  return {};
}

bool IsWithin(const model::TenantPath& tenant, const model::TenantPath& above) {
  return above.is_root() || tenant.text() == above.text() ||
         tenant.text().starts_with(above.text() + "/");
}

}  // namespace

void Judge::Condemn(const std::string& what) {
  scheduler_.Trace("!! " + what);
  if (verdict_.empty()) {
    verdict_ = what;
  }
}

bool Judge::IsOpen(const model::Lease& lease) const { return lease.state != LeaseState::kClosed; }

void Judge::OnCommit(store::Connection& db, const Touched& touched) {
  std::map<std::string, std::multiset<std::string>> actions;
  for (const Bytes& bytes : touched.entries) {
    const EntryFacts facts = FactsOf(bytes);
    if (facts.id.empty() || facts.action.empty()) {
      Condemn("an audit entry without id or action");
    }
    if (!entry_ids_.insert(facts.id).second) {
      Condemn("audit entry " + facts.id + " was written twice");
    }
    if (facts.action == "audit.witness_refused") {
      Condemn("a node refused the audit log: " + std::string(AsText(bytes)));
    }
    actions[facts.lease].insert(facts.action);
    entries_.push_back(bytes);
    scheduler_.Trace("   audit " + facts.action + " " + facts.lease);
  }
  tally_.entries += touched.entries.size();
  tally_.receipts += touched.receipts.size();
  for (const std::string& uuid : touched.gpus) {
    const auto gpu = store::GetGpu(db, uuid);
    if (gpu.has_value()) {
      SeeGpu(*gpu, touched);
    } else {
      Condemn("GPU " + uuid + " was written and is not there");
    }
  }
  for (const std::string& id : touched.leases) {
    const auto lease = store::GetLease(db, id);
    if (lease.has_value()) {
      SeeLease(*lease, actions[id]);
    } else {
      Condemn("lease " + id + " was written and is not there");
    }
  }
}

// A GPU becomes free in one of two ways: by a receipt in the same transaction, or back from a lease
// whose grant never left the server.
void Judge::SeeGpu(const model::Gpu& gpu, const Touched& touched) {
  const auto before = gpus_.find(gpu.uuid);
  const bool was_free = before != gpus_.end() && before->second.state == GpuState::kFree;
  if (gpu.state == GpuState::kFree && !was_free) {
    const bool by_receipt = std::find(touched.receipts.begin(), touched.receipts.end(),
                                      gpu.last_receipt) != touched.receipts.end();
    if (by_receipt) {
      clean_.insert(gpu.uuid);
    } else if (!clean_.contains(gpu.uuid)) {
      Condemn(gpu.uuid + " became free without a receipt");
    }
    // After a reboot nobody knows; the node's first report makes the card dirty again.
    if (const std::string left = truth_.residue(gpu.uuid); !left.empty() && left != "?") {
      Condemn(gpu.uuid + " became free with what " + left + " left there");
    }
  }
  if (gpu.state == GpuState::kDirty || gpu.state == GpuState::kQuarantined ||
      gpu.state == GpuState::kLost) {
    clean_.erase(gpu.uuid);
  }
  if (gpu.state == GpuState::kFree && !gpu.lease.empty()) {
    Condemn(gpu.uuid + " is free and of lease " + gpu.lease);
  }
  scheduler_.Trace("   gpu " + gpu.uuid + " " + std::string(Name(gpu.state)) + " " + gpu.lease);
  gpus_[gpu.uuid] = gpu;
}

void Judge::SeeNew(const model::Lease& lease) {
  ++tally_.leases;
  if (lease.gpus.size() != lease.request.gpus) {
    Condemn(lease.id + " has other than the GPUs it asked for");
  }
  const std::string& key = lease.request.command.at(1);
  if (!by_key_.emplace(key, lease.id).second) {
    Condemn("request " + key + " made two leases: " + by_key_[key] + " and " + lease.id);
  }
  for (const std::string& uuid : lease.gpus) {
    if (const auto held = holder_.find(uuid); held != holder_.end()) {
      Condemn(uuid + " was given to " + lease.id + " while " + held->second + " holds it");
    }
    if (!clean_.contains(uuid)) {
      Condemn(uuid + " was given to " + lease.id + " without a receipt since its last use");
    }
    if (gpus_[uuid].node != lease.node) {
      Condemn(uuid + " was given to " + lease.id + " on another node");
    }
    holder_[uuid] = lease.id;
  }
  CheckQuotas(lease);
  CheckBoundaries(lease);
}

void Judge::CheckQuotas(const model::Lease& lease) {
  for (const policy::Quota& quota : policy_.quotas()) {
    std::size_t held = 0;
    for (const std::string& id : open_) {
      const model::Lease& other = leases_[id];
      if (!other.ended.has_value() && IsWithin(other.request.tenant, quota.tenant)) {
        held += other.gpus.size();
      }
    }
    if (IsWithin(lease.request.tenant, quota.tenant) && held + lease.gpus.size() > quota.gpus_max) {
      Condemn(lease.id + " breaks the quota of " + quota.tenant.text());
    }
  }
}

void Judge::CheckBoundaries(const model::Lease& lease) {
  for (const policy::Boundary& boundary : policy_.boundaries()) {
    if (boundary.scope != policy::BoundaryScope::kPair ||
        boundary.least != model::IsolationClass::kNode) {
      continue;
    }
    for (const std::string& id : open_) {
      const model::Lease& other = leases_[id];
      const auto parted = [&](const model::TenantPath& a, const model::TenantPath& b) {
        return IsWithin(lease.request.tenant, a) && IsWithin(other.request.tenant, b);
      };
      if (other.node == lease.node &&
          (parted(boundary.a, boundary.b) || parted(boundary.b, boundary.a))) {
        Condemn(lease.id + " shares node " + lease.node + " with " + id + " across a boundary");
      }
    }
  }
}

void Judge::SeeLease(const model::Lease& lease, const std::multiset<std::string>& actions) {
  const auto found = leases_.find(lease.id);
  const std::vector<model::LeaseStep> none;
  const auto& before = found == leases_.end() ? none : found->second.steps;
  if (found == leases_.end()) {
    SeeNew(lease);
  }
  if (lease.steps.size() < before.size() ||
      !std::equal(before.begin(), before.end(), lease.steps.begin(),
                  [](const auto& a, const auto& b) {
                    return a.state == b.state && a.time == b.time && a.reason == b.reason;
                  })) {
    Condemn(lease.id + "'s history was rewritten");
    return;
  }
  if (lease.steps.empty() || lease.steps.back().state != lease.state) {
    Condemn(lease.id + "'s state is not its last step");
  }
  for (std::size_t i = before.size(); i < lease.steps.size(); ++i) {
    const LeaseState state = lease.steps[i].state;
    if (i == 0 ? state != LeaseState::kRequested
               : !model::MayFollow(lease.steps[i - 1].state, state)) {
      Condemn(lease.id + " stepped to " + std::string(Name(state)) + " out of turn");
    }
    const auto witnesses = WitnessesOf(state);
    if (std::none_of(witnesses.begin(), witnesses.end(),
                     [&](const std::string& one) { return actions.contains(one); })) {
      Condemn(lease.id + " stepped to " + std::string(Name(state)) + " without an audit entry");
    }
    scheduler_.Trace("   " + lease.id + " " + std::string(Name(state)) + " on " + lease.node);
    tally_.ran += state == LeaseState::kActive;
    if (state == LeaseState::kQuarantined) {
      ++tally_.quarantined;
      // A card may fail its scrub; it may not be lost to a quarrel over who holds it.
      if (lease.steps[i].reason.find("held by lease") != std::string::npos) {
        Condemn(lease.id + " was quarantined: " + lease.steps[i].reason);
      }
    }
    if (state == LeaseState::kPreparing) {  // its grant may be out from here on
      for (const std::string& uuid : lease.gpus) {
        clean_.erase(uuid);
      }
    }
    if (state == LeaseState::kClosed) {
      ++tally_.closed;
      if (truth_.box_runs(lease.id)) {
        Condemn(lease.id + " was closed while its box runs");
      }
      for (const std::string& uuid : lease.gpus) {
        holder_.erase(uuid);
      }
    }
  }
  for (const std::string& action : actions) {
    if (actions.count(action) > 1) {
      Condemn(lease.id + " has " + action + " twice in one change");
    }
  }
  leases_[lease.id] = lease;
  if (IsOpen(lease)) {
    open_.insert(lease.id);
  } else {
    open_.erase(lease.id);
  }
}

void Judge::OnAcknowledged(const std::string& key, const std::string& lease) {
  const auto [known, added] = acknowledged_.emplace(key, lease);
  if (!added && known->second != lease) {
    Condemn("request " + key + " was answered with two leases");
  }
  const auto made = by_key_.find(key);
  if (made == by_key_.end() || made->second != lease) {
    Condemn("request " + key + " was answered with " + lease + ", which is not committed");
  }
}

void Judge::AtTheEnd(store::Connection& db, const std::vector<Bytes>& logged) {
  if (logged != entries_) {
    std::size_t at = 0;
    while (at < logged.size() && at < entries_.size() && logged[at] == entries_[at]) {
      ++at;
    }
    Condemn("the audit log differs from what was acknowledged, from entry " + std::to_string(at) +
            " on (" + std::to_string(logged.size()) + " logged, " +
            std::to_string(entries_.size()) + " acknowledged)");
  }
  for (const std::string& id : open_) {
    Condemn(id + " is still " + std::string(Name(leases_[id].state)) + " on " + leases_[id].node +
            " long after everything healed");
  }
  for (const auto& [uuid, gpu] : gpus_) {
    if (gpu.state != GpuState::kFree) {
      Condemn(uuid + " is still " + std::string(Name(gpu.state)) + " (" + gpu.reason +
              ") long after everything healed");
    }
  }
  for (const auto& [key, id] : acknowledged_) {
    if (!store::GetLease(db, id).has_value()) {
      Condemn("acknowledged lease " + id + " is gone");
    }
  }
}

}  // namespace ringfence::simulation

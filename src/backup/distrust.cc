#include "backup/distrust.h"

#include "audit/entry.h"
#include "crypto/random.h"
#include "lease/life.h"
#include "store/records.h"
#include "store/strays.h"

namespace ringfence::backup {
namespace {

constexpr std::int64_t kTokensPerPage = 500;

const audit::Actor kSystem{"ringfence", "system", "", ""};

audit::Entry NewEntry(const DistrustOptions& options, std::string_view action) {
  audit::Entry entry;
  entry.time = options.now;
  entry.id = crypto::RandomId("a");
  entry.actor = kSystem;
  entry.action = action;
  entry.result = "ok";
  entry.policy = options.policy;
  return entry;
}

Status Record(store::Connection& db, const audit::Entry& entry) {
  RINGFENCE_ASSIGN(const Bytes bytes, entry.ToBytes());
  return store::AppendAudit(db, entry.action, entry.lease, bytes);
}

std::string Why(const DistrustOptions& options) {
  return "the server was restored from a backup of " + FormatTime(options.manifest.about.created);
}

Result<std::uint64_t> DirtyGpus(store::Connection& db, const DistrustOptions& options) {
  RINGFENCE_ASSIGN(auto gpus, store::ListGpus(db));
  std::uint64_t count = 0;
  for (model::Gpu& gpu : gpus) {
    gpu.lease.clear();
    gpu.tenant.clear();
    if (gpu.state == model::GpuState::kFree || gpu.state == model::GpuState::kLeased ||
        gpu.state == model::GpuState::kDirty || gpu.state == model::GpuState::kShared) {
      lease::Dirty(gpu, options.now, Why(options));
      ++count;
    }
    // What is quarantined or lost stays that: a scrub comes after an operator, or its return.
    RINGFENCE_TRY(store::PutGpu(db, gpu));
  }
  return count;
}

// The jobs may have ended long ago, or still run. Their nodes are told to end what still runs, and
// the GPUs are scrubbed on their own account.
Status EndLease(store::Connection& db, model::Lease& lease, const DistrustOptions& options) {
  const std::string why = Why(options);
  if (!model::MayFollow(lease.state, model::LeaseState::kClosed)) {
    RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kQuarantined, options.now, why));
  }
  RINGFENCE_TRY(lease::Step(lease, model::LeaseState::kClosed, options.now, why));
  if (!lease.ended.has_value()) {
    lease.outcome = "failed";
    lease.ended = options.now;
  }
  lease.reason = why;
  RINGFENCE_TRY(store::UpdateLease(db, lease));
  audit::Entry entry = NewEntry(options, "lease.close");
  entry.tenant = lease.request.tenant.text();
  entry.lease = lease.id;
  entry.node = lease.node;
  entry.gpus = lease.gpus;
  entry.detail["state"] = std::string(Name(lease.state));
  entry.detail["reason"] = why;
  return Record(db, entry);
}

Status RevokeTokens(store::Connection& db, const DistrustOptions& options, Distrusted& result) {
  std::string after;
  for (;;) {
    RINGFENCE_ASSIGN(auto tokens, store::ListTokens(db, after, kTokensPerPage));
    for (store::Token& token : tokens) {
      after = token.id;
      if (!token.revoked.empty() || token.expires <= options.now) {
        continue;
      }
      ++(options.keep_tokens ? result.tokens_in_force : result.tokens_revoked);
      if (!options.keep_tokens) {
        token.revoked = FormatTime(options.now);
        RINGFENCE_TRY(store::PutToken(db, token));
      }
    }
    if (static_cast<std::int64_t>(tokens.size()) < kTokensPerPage) {
      return {};
    }
  }
}

}  // namespace

Result<Distrusted> Distrust(store::Connection& db, const DistrustOptions& options) {
  Distrusted result;
  RINGFENCE_ASSIGN(result.gpus, DirtyGpus(db, options));
  RINGFENCE_TRY(RevokeTokens(db, options, result));
  RINGFENCE_ASSIGN(const auto joins, db.Run("SELECT COUNT(*) FROM join_tokens", {}));
  result.join_tokens_dropped = static_cast<std::uint64_t>(store::IntAt(joins.at(0), 0));
  RINGFENCE_TRY(db.Run("DELETE FROM join_tokens", {}));
  // Until a node has said what it holds, nothing of it is scrubbed on its own account.
  RINGFENCE_ASSIGN(const auto nodes, store::ListNodes(db));
  for (const model::Node& node : nodes) {
    RINGFENCE_TRY(store::SetStrays(db, node.name, {.held = true, .to_end = {}}));
  }
  RINGFENCE_ASSIGN(auto leases, store::OpenLeases(db));
  result.leases_ended = leases.size();

  audit::Entry entry = NewEntry(options, "server.restored");
  entry.detail = {{"backup_created", FormatTime(options.manifest.about.created)},
                  {"backup_version", options.manifest.about.version},
                  {"backup_entries", static_cast<std::int64_t>(options.manifest.entries)},
                  {"log_size", static_cast<std::int64_t>(options.manifest.log_size)},
                  {"log_root", options.manifest.log_root},
                  {"version", RINGFENCE_VERSION},
                  {"gpus_to_scrub", static_cast<std::int64_t>(result.gpus)},
                  {"leases_ended", static_cast<std::int64_t>(result.leases_ended)},
                  {"tokens_revoked", static_cast<std::int64_t>(result.tokens_revoked)},
                  {"tokens_kept", static_cast<std::int64_t>(result.tokens_in_force)},
                  {"join_tokens_dropped", static_cast<std::int64_t>(result.join_tokens_dropped)},
                  {"rollback_accepted", options.rollback_accepted}};
  RINGFENCE_TRY(Record(db, entry));
  for (model::Lease& lease : leases) {
    RINGFENCE_TRY(EndLease(db, lease, options));
  }
  return result;
}

}  // namespace ringfence::backup

// Scrub receipts: what makes a GPU leasable again, or puts it into quarantine.

#include <algorithm>

#include "base/encoding.h"
#include "crypto/dsse.h"
#include "crypto/sha256.h"
#include "isolate/grant.h"
#include "lease/life.h"
#include "os/failpoint.h"
#include "server/agent_work.h"
#include "server/queue.h"
#include "server/routes.h"
#include "server/shared_gpus.h"

namespace ringfence::server {
namespace {

// How far a node's clock may be behind ours.
constexpr Milliseconds kClockSkewMax = std::chrono::minutes(2);

struct ScrubNews {
  std::string lease;
  std::vector<std::string> gpus;
  std::string envelope;
  std::string error;
};

Result<ScrubNews> ReadNews(const net::Request& request) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  ScrubNews news;
  RINGFENCE_ASSIGN(news.lease, reader.StringOr("lease", "", 64));
  RINGFENCE_ASSIGN(news.gpus, reader.Strings("gpus", 64, 80));
  RINGFENCE_ASSIGN(news.envelope, reader.StringOr("envelope", "", crypto::kEnvelopeBytesMax));
  RINGFENCE_ASSIGN(news.error, reader.StringOr("error", "", 2048));
  RINGFENCE_TRY(reader.Finish());
  if (news.envelope.empty() == news.error.empty()) {
    return Error{Code::kInvalidArgument, "either envelope or error must be given", {}, "envelope"};
  }
  return news;
}

// Whether the receipt says that this GPU is clean now.
Status Covers(const isolate::Receipt& receipt, const model::Gpu& gpu, const std::string& lease,
              Timestamp now) {
  const auto found =
      std::find_if(receipt.gpus.begin(), receipt.gpus.end(),
                   [&](const isolate::GpuScrub& scrub) { return scrub.uuid == gpu.uuid; });
  const auto bad = [&](std::string_view why) {
    return Error{Code::kFailedPrecondition, "receipt " + receipt.id + " does not show " + gpu.uuid +
                                                " clean: " + std::string(why)};
  };
  if (found == receipt.gpus.end()) {
    return bad("it is not in it");
  }
  if (found->parent != gpu.parent || found->profile != gpu.profile) {
    return bad("it is of " + (found->parent.empty() ? std::string("a whole GPU")
                                                    : found->profile + " of " + found->parent));
  }
  if (found->mismatch_bytes != 0) {
    return bad(std::to_string(found->mismatch_bytes) + " bytes read back wrong");
  }
  if (found->memory_bytes == 0 ||
      found->reached_bytes < found->memory_bytes / 100 * isolate::kReachedPercentLeast) {
    return bad("only " + std::to_string(found->reached_bytes) + " of " +
               std::to_string(found->memory_bytes) + " bytes were reached");
  }
  if (receipt.lease != lease) {
    return bad("it is of another lease");
  }
  // The jailer makes a lease's receipt only after its last use; for one without a lease, time
  // tells. A last use that lies ahead of us was before the clock was put back.
  if (receipt.lease.empty() && receipt.time + kClockSkewMax < std::min(gpu.dirty_since, now)) {
    return bad("it is older than the GPU's last use");
  }
  return {};
}

JsonObject ScrubDetail(const isolate::Receipt& receipt) {
  std::uint64_t residue = 0;
  std::uint64_t reached = 0;
  std::uint64_t total = 0;
  for (const isolate::GpuScrub& scrub : receipt.gpus) {
    residue += scrub.residue_bytes;
    reached += scrub.reached_bytes;
    total += scrub.memory_bytes;
  }
  JsonObject detail{{"receipt", receipt.id},
                    {"residue_bytes", static_cast<std::int64_t>(residue)},
                    {"reached_bytes", static_cast<std::int64_t>(reached)},
                    {"memory_bytes", static_cast<std::int64_t>(total)},
                    {"library", receipt.library_digest},
                    {"simulated", receipt.simulated}};
  if (!receipt.gpus.empty() && !receipt.gpus.front().parent.empty()) {
    detail["parent"] = receipt.gpus.front().parent;
    detail["profile"] = receipt.gpus.front().profile;
  }
  return detail;
}

// Of a lease that had a share: either others are still there and nothing was scrubbed, or all of
// the GPU was.
Status TakeShareReceipt(store::Connection& db, const model::Lease& lease,
                        const isolate::Receipt& receipt, Timestamp now) {
  RINGFENCE_ASSIGN(const model::Gpu gpu, store::GetGpu(db, lease.gpus.front()));
  if (!receipt.share.has_value() || receipt.share->gpu != gpu.uuid || receipt.lease != lease.id) {
    return Error{Code::kFailedPrecondition,
                 "receipt " + receipt.id + " is not of lease " + lease.id + "'s share of a GPU"};
  }
  if (receipt.share->neighbours == 0) {
    RINGFENCE_TRY(Covers(receipt, gpu, lease.id, now));
  }
  return LeaveShared(db, lease, receipt, now);
}

Status TakeReceipt(const Call& call, store::Connection& db, const ScrubNews& news) {
  Core& core = call.core;
  RINGFENCE_ASSIGN(const model::Node node, store::GetNode(db, call.caller.principal));
  RINGFENCE_ASSIGN(const Bytes raw, FromBase64(node.receipt_key));
  RINGFENCE_ASSIGN(const crypto::PublicKey key, crypto::PublicKey::FromRaw(raw));
  RINGFENCE_ASSIGN(const isolate::Receipt receipt, isolate::OpenReceipt(key, news.envelope));
  if (receipt.node != node.name) {
    return Error{Code::kPermissionDenied, "the receipt is of node " + receipt.node};
  }
  std::optional<model::Lease> lease;
  std::vector<std::string> gpus = news.gpus;
  if (!news.lease.empty()) {
    RINGFENCE_ASSIGN(lease, LeaseOf(call, db, news.lease));
    if (lease->state == model::LeaseState::kClosed) {
      return {};  // taken before
    }
    if (lease->state != model::LeaseState::kScrubbing) {  // the node must not forget it yet
      return Error{Code::kFailedPrecondition,
                   "lease " + lease->id + " is " + std::string(Name(lease->state))};
    }
    gpus = lease->gpus;
  }
  // First: a receipt that was taken before changes nothing, whatever it is offered for.
  if (const Status inserted = store::InsertReceipt(
          db, {receipt.id, news.lease, node.name, node.receipt_key, news.envelope});
      !inserted.has_value()) {
    return inserted.error().code == Code::kConflict
               ? Status(Error{Code::kConflict, "receipt " + receipt.id + " was taken before"})
               : inserted;
  }
  const bool share = lease && lease->request.share.has_value();
  if (share) {
    RINGFENCE_TRY(TakeShareReceipt(db, *lease, receipt, core.Now()));
  }
  for (const std::string& uuid : share ? std::vector<std::string>() : gpus) {
    RINGFENCE_ASSIGN(model::Gpu gpu, store::GetGpu(db, uuid));
    const bool may_be_freed = news.lease.empty() ? gpu.state == model::GpuState::kDirty
                                                 : gpu.state != model::GpuState::kFree;
    if (gpu.node != node.name || gpu.lease != news.lease || !may_be_freed) {
      return Error{Code::kPermissionDenied, uuid + " is not this node's to free now"};
    }
    RINGFENCE_TRY(Covers(receipt, gpu, news.lease, core.Now()));
    lease::Free(gpu, receipt.id);
    RINGFENCE_TRY(store::PutGpu(db, gpu));
  }
  audit::Entry entry = core.NewEntry(ActorOf(call.caller), "gpu.scrub");
  entry.node = node.name;
  entry.lease = news.lease;
  entry.tenant = lease ? lease->request.tenant.text() : "";
  entry.gpus = gpus;
  entry.result = "ok";
  entry.detail = ScrubDetail(receipt);
  entry.detail["receipt_digest"] = Hex(crypto::Sha256(AsBytes(news.envelope)));
  std::string reason;
  if (share) {
    entry.detail["neighbours"] = static_cast<std::int64_t>(receipt.share->neighbours);
    if (receipt.share->neighbours > 0) {
      reason = "not scrubbed: " + std::to_string(receipt.share->neighbours) +
               (receipt.share->neighbours == 1 ? " neighbour" : " neighbours") +
               " still on the card";
      entry.detail["why"] = reason;
    }
  }
  RINGFENCE_TRY(Core::Record(db, entry));
  if (!lease) {
    return {};
  }
  lease->receipts.push_back(receipt.id);
  RINGFENCE_TRY(lease::Step(*lease, model::LeaseState::kClosed, core.Now(), reason));
  RINGFENCE_TRY(store::UpdateLease(db, *lease));
  return Core::Record(db, core.StepEntry(ActorOf(call.caller), "lease.close", *lease));
}

Status TakeFailure(const Call& call, store::Connection& db, const ScrubNews& news,
                   const std::string& why) {
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "gpu.quarantine");
  entry.node = call.caller.principal;
  entry.lease = news.lease;
  entry.result = "error";
  entry.detail["why"] = why.substr(0, 1024);
  std::vector<std::string> gpus = news.gpus;
  bool shared = false;
  if (!news.lease.empty()) {
    RINGFENCE_ASSIGN(model::Lease lease, LeaseOf(call, db, news.lease));
    if (lease.state != model::LeaseState::kScrubbing) {
      return {};
    }
    gpus = lease.gpus;
    shared = lease.request.share.has_value();
    lease.reason = "not scrubbed: " + why.substr(0, 1024);
    RINGFENCE_TRY(
        lease::Step(lease, model::LeaseState::kQuarantined, call.core.Now(), lease.reason));
    RINGFENCE_TRY(store::UpdateLease(db, lease));
    entry.tenant = lease.request.tenant.text();
  }
  for (const std::string& uuid : gpus) {
    RINGFENCE_ASSIGN(model::Gpu gpu, store::GetGpu(db, uuid));
    if (shared && gpu.state == model::GpuState::kShared && gpu.node == call.caller.principal) {
      gpu.lease = news.lease;  // whose scrub an operator orders anew
      lease::Quarantine(gpu, why);
      RINGFENCE_TRY(store::PutGpu(db, gpu));
      entry.gpus.push_back(uuid);
      continue;
    }
    if (gpu.node != call.caller.principal || gpu.lease != news.lease ||
        (gpu.state != model::GpuState::kDirty && gpu.state != model::GpuState::kLeased)) {
      continue;
    }
    lease::Quarantine(gpu, why);
    RINGFENCE_TRY(store::PutGpu(db, gpu));
    entry.gpus.push_back(uuid);
  }
  // A lease's step is on record also when none of its GPUs is there any more.
  return entry.gpus.empty() && news.lease.empty() ? Status() : Core::Record(db, entry);
}

Result<net::Response> TakeScrub(const Call& call) {
  RINGFENCE_ASSIGN(const ScrubNews news, ReadNews(call.request));
  std::string why = news.error;
  RINGFENCE_FAILPOINT("server.receipt");
  if (why.empty()) {
    const Status taken =
        call.core.Change([&](store::Connection& db) { return TakeReceipt(call, db, news); });
    if (taken.has_value()) {
      ++call.core.counters().scrubs;
    } else if (taken.error().code == Code::kUnavailable || taken.error().code == Code::kExhausted) {
      return taken.error();  // the agent tries again
    } else {
      why = taken.error().message;
    }
  }
  if (!why.empty()) {
    RINGFENCE_TRY(
        call.core.Change([&](store::Connection& db) { return TakeFailure(call, db, news, why); }));
    ++call.core.counters().scrubs_failed;
  }
  RINGFENCE_FAILPOINT("server.receipt_taken");
  if (!news.lease.empty()) {
    call.core.NotifyLease(news.lease);
  }
  call.core.NotifyWork(call.caller.principal);
  if (why.empty()) {
    ServeQueueAfter(call.core);
  }
  return net::Response::OfJson(200, JsonObject{{"clean", why.empty()}});
}

}  // namespace

void AgentReceipt(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return TakeScrub(call); });
}

}  // namespace ringfence::server

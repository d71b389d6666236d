// Mig: from a signed order to a GPU that is cut as it says, and a signed word of what became of it.

#include <algorithm>

#include "base/json.h"
#include "gpu/mig_reshape.h"
#include "isolate/mig_order.h"
#include "jailer/desk.h"
#include "os/failpoint.h"
#include "os/log.h"

namespace ringfence::jailer {
namespace {

using isolate::RequestType;

std::vector<std::string> UuidsOf(const gpu::LiveMig& live) {
  std::vector<std::string> uuids = {live.gpu};
  for (const gpu::MigSlice& slice : live.slices) {
    if (!slice.uuid.empty()) {
      uuids.push_back(slice.uuid);
    }
  }
  return uuids;
}

bool Contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

template <typename Read>
auto FromText(const std::string& text, Read read) -> decltype(read(Json())) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, isolate::kInventoryBytesMax));
  return read(json);
}

bool WorthAnotherTry(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kExhausted;
}

Error Busy() {
  return Error{Code::kExhausted, "as many workers as allowed are under way", "try again"};
}

MigDeed Untouched(const isolate::MigOrder& order, const gpu::LiveMig* live) {
  MigDeed deed;
  deed.gpu = order.gpu;
  deed.serial = order.serial;
  deed.target = live == nullptr ? "off" : gpu::FormatMigTarget(gpu::TargetOf(*live));
  deed.before = deed.target;
  return deed;
}

}  // namespace

Result<isolate::MigOrder> Desk::CheckMigOrder(const std::string& envelope) const {
  RINGFENCE_TRY(CheckCanRun());
  if (!parts_.identity.grant_key.has_value()) {
    return Error{Code::kFailedPrecondition, "this node has not joined a server",
                 "start the jailer once with --join-token-file"};
  }
  RINGFENCE_ASSIGN(isolate::MigOrder order,
                   isolate::OpenMigOrder(*parts_.identity.grant_key, envelope));
  if (order.node != parts_.node) {
    return Error{Code::kPermissionDenied,
                 "the order is for node " + order.node + ", this is " + parts_.node};
  }
  const MigDeed* const last = records_->mig().Find(order.gpu);
  if (last != nullptr && order.serial < last->serial) {
    return Error{Code::kPermissionDenied,
                 "order " + order.id + " for " + order.gpu + " is older than one already obeyed"};
  }
  return order;
}

void Desk::HandleMig(std::uint32_t id, const std::string& envelope) {
  auto order = CheckMigOrder(envelope);
  if (!order.has_value()) {
    if (order.error().code == Code::kPermissionDenied) {
      (void)KeepIncident("refused_mig_order", order.error().message);  // refused in any case
    }
    return Answer(id, RequestType::kMig, order.error());
  }
  const MigDeed* const last = records_->mig().Find(order->gpu);
  if (last != nullptr && last->serial == order->serial && !last->report.empty()) {
    return AnswerText(id, RequestType::kMig, last->report);
  }
  if (cutting_.contains(order->gpu)) {
    return Answer(
        id, RequestType::kMig,
        Error{Code::kUnavailable, order->gpu + " is being cut by an earlier order", "try again"});
  }
  const std::string gpu = order->gpu;
  WithMinors({gpu}, [this, id, order = std::move(*order)](const Status& known) {
    const auto card = Wanted({order.gpu});
    if (!known.has_value() || !card.has_value()) {
      return Answer(id, RequestType::kMig, known.has_value() ? card.error() : known.error());
    }
    if (hands_->full() || cutting_.contains(order.gpu)) {
      return Answer(id, RequestType::kMig, Busy());
    }
    cutting_[order.gpu] = {order.gpu};
    hands_->ReadMig(card->front(), [this, id, order](const Result<std::string>& text) {
      auto live = text.has_value() ? FromText(*text, gpu::LiveMigFromJson)
                                   : Result<gpu::LiveMig>(text.error());
      if (live.has_value()) {
        return HandleLiveMig(id, order, *live);
      }
      cutting_.erase(order.gpu);
      if (WorthAnotherTry(live.error())) {
        return Answer(id, RequestType::kMig, live.error());
      }
      SealMig(id, order, Untouched(order, nullptr), {"not obeyed: " + live.error().message, {}});
    });
  });
}

// What must go may be nobody's. The same plan that the server made, over what is there now.
Result<gpu::MigReshape> Desk::PlanMig(const isolate::MigOrder& order,
                                      const gpu::LiveMig& live) const {
  RINGFENCE_ASSIGN(const gpu::MigAim aim, gpu::ParseMigAim(order.aim));
  RINGFENCE_ASSIGN(const gpu::MigBoard* board, gpu::FindMigBoard(live.board));
  const auto busy = std::find_if(scrubbing_.begin(), scrubbing_.end(),
                                 [&](const auto& uuid) { return Contains(UuidsOf(live), uuid); });
  if (busy != scrubbing_.end()) {
    return Error{Code::kUnavailable, *busy + " is being scrubbed", "try again"};
  }
  if (const std::string holder = records_->HolderOf(live.gpu);
      aim.enabled != live.enabled && !holder.empty()) {
    return Error{Code::kFailedPrecondition,
                 live.gpu + " is held by lease " + holder +
                     ": MIG mode changes only on a GPU that nobody uses",
                 "end that lease first"};
  }
  std::vector<gpu::PresentSlice> there;
  for (const gpu::MigSlice& slice : live.slices) {
    there.push_back({slice.uuid, slice.profile, slice.start,
                     slice.uuid.empty() ? "" : records_->HolderOf(slice.uuid)});
  }
  return gpu::PlanReshape(*board, there, aim);
}

// What is to be is written down before anything is done: whoever comes after a crash knows what was
// there, and that nothing of it is clean.
Result<MigDeed> Desk::BeginMig(const isolate::MigOrder& order, const gpu::LiveMig& live) {
  RINGFENCE_ASSIGN(const gpu::MigReshape plan, PlanMig(order, live));
  MigDeed deed;
  deed.gpu = order.gpu;
  deed.serial = order.serial;
  deed.target = gpu::FormatMigTarget(plan.target);
  deed.before = gpu::FormatMigTarget(gpu::TargetOf(live));
  deed.touched = plan.removed;
  std::erase(deed.touched, "");  // one without a compute instance, that nobody could use
  if (plan.target.enabled != live.enabled) {
    deed.touched.push_back(order.gpu);
  }
  const MigDeed* const last = records_->mig().Find(order.gpu);
  if (last != nullptr && last->report.empty()) {  // somebody died half-way
    deed.before = last->before;
    deed.touched.insert(deed.touched.end(), last->touched.begin(), last->touched.end());
    std::sort(deed.touched.begin(), deed.touched.end());
    deed.touched.erase(std::unique(deed.touched.begin(), deed.touched.end()), deed.touched.end());
  }
  RINGFENCE_TRY(records_->SetDirty(deed.touched));
  RINGFENCE_TRY(records_->mig().Put(deed));
  RINGFENCE_FAILPOINT("mig.wished");
  return deed;
}

void Desk::HandleLiveMig(std::uint32_t id, const isolate::MigOrder& order,
                         const gpu::LiveMig& live) {
  cutting_[order.gpu] = UuidsOf(live);
  auto deed = BeginMig(order, live);
  if (deed.has_value()) {
    return CutCard(id, order, *deed, "");
  }
  if (WorthAnotherTry(deed.error())) {
    cutting_.erase(order.gpu);
    return Answer(id, RequestType::kMig, deed.error());
  }
  const std::string why = "not obeyed: " + deed.error().message;
  const MigDeed* const last = records_->mig().Find(order.gpu);
  if (last != nullptr && last->report.empty()) {  // and what is half done is not left like that
    MigDeed back = *last;
    back.serial = order.serial;
    back.target = back.before;
    return CutCard(id, order, back, why);
  }
  cutting_.erase(order.gpu);
  SealMig(id, order, Untouched(order, &live), {why, live});
}

void Desk::CutCard(std::uint32_t id, const isolate::MigOrder& order, const MigDeed& deed,
                   const std::string& refusal) {
  const auto card = Wanted({order.gpu});
  if (!card.has_value() || hands_->full()) {
    cutting_.erase(order.gpu);
    return Answer(id, RequestType::kMig, Busy());
  }
  hands_->CutCard(card->front(), deed.target, deed.before,
                  [this, id, order, deed, refusal](const Result<std::string>& text) {
                    cutting_.erase(order.gpu);
                    auto outcome = text.has_value() ? FromText(*text, gpu::MigOutcomeFromJson)
                                                    : Result<gpu::MigOutcome>(text.error());
                    RINGFENCE_FAILPOINT("mig.reached");
                    if (!outcome.has_value()) {
                      // The worker died or said nothing: what is there is found out by the next.
                      return Answer(id, RequestType::kMig, outcome.error());
                    }
                    if (!refusal.empty()) {
                      outcome->reason = refusal + (outcome->reason.empty()
                                                       ? "; what was there before is there again"
                                                       : "; " + outcome->reason);
                    }
                    SealMig(id, order, deed, *outcome);
                  });
}

bool Desk::IsBeingCut(const std::string& uuid) const {
  const auto unfinished = [&](const std::string& gpu) {
    const MigDeed* const deed = records_->mig().Find(gpu);
    return deed != nullptr && deed->report.empty();
  };
  const auto card = Wanted({uuid});
  const bool is_slice = card.has_value() && card->front().slice.has_value();
  return unfinished(is_slice ? card->front().slice->parent : uuid) ||
         std::any_of(cutting_.begin(), cutting_.end(),
                     [&](const auto& one) { return Contains(one.second, uuid); });
}

void Desk::SealMig(std::uint32_t id, const isolate::MigOrder& order, MigDeed deed,
                   const gpu::MigOutcome& outcome) {
  // A slice that was made is not clean, whatever had its UUID before it.
  const auto before = gpu::ParseMigTarget(deed.before);
  for (const gpu::MigSlice& slice :
       outcome.live.has_value() ? outcome.live->slices : std::vector<gpu::MigSlice>()) {
    const bool stood =
        before.has_value() &&
        std::find(before->instances.begin(), before->instances.end(),
                  gpu::MigWish{slice.profile, 1, slice.start}) != before->instances.end();
    if (!stood && !slice.uuid.empty() && !Contains(deed.touched, slice.uuid)) {
      deed.touched.push_back(slice.uuid);
    }
  }
  isolate::MigReport report;
  report.order = order.id;
  report.serial = order.serial;
  report.node = parts_.node;
  report.gpu = order.gpu;
  report.time = clock_->Now();
  report.reason = outcome.reason;
  report.touched = deed.touched;
  report.live = outcome.live;
  deed.report = isolate::SealMigReport(parts_.identity.key, report);
  Status kept = records_->SetDirty(deed.touched);
  if (kept.has_value()) {
    kept = records_->mig().Put(deed);
  }
  if (!kept.has_value()) {
    return Answer(id, RequestType::kMig, std::move(kept));
  }
  os::Log(outcome.reason.empty() ? os::Level::kInfo : os::Level::kError, "mig_reshaped",
          {{"gpu", order.gpu}, {"aim", order.aim}, {"reason", outcome.reason}});
  AnswerText(id, RequestType::kMig, deed.report);
}

}  // namespace ringfence::jailer

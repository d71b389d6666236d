// Start: from a signed grant to a running box.

#include <algorithm>
#include <iterator>

#include "base/encoding.h"
#include "crypto/sha256.h"
#include "isolate/exception.h"
#include "isolate/proof.h"
#include "isolate/walls_away.h"
#include "jailer/desk.h"
#include "os/failpoint.h"
#include "os/file.h"
#include "os/log.h"

namespace ringfence::jailer {
namespace {

using isolate::RequestType;

// How far the server's clock may be ahead of ours.
constexpr auto kClockSkewMax = std::chrono::minutes(10);

}  // namespace

Status Desk::CheckCanRun() const {
  if (!parts_.missing.empty()) {
    return Error{Code::kFailedPrecondition, "this machine cannot run boxes: " + parts_.missing[0]};
  }
  return {};
}

Result<isolate::Grant> Desk::CheckGrant(const std::string& envelope) const {
  if (!parts_.identity.grant_key.has_value()) {
    return Error{Code::kFailedPrecondition, "this node has not joined a server",
                 "start the jailer once with --join-token-file"};
  }
  RINGFENCE_ASSIGN(isolate::Grant grant, isolate::OpenGrant(*parts_.identity.grant_key, envelope));
  if (grant.node != parts_.node) {
    return Error{Code::kPermissionDenied,
                 "the grant is for node " + grant.node + ", this is " + parts_.node};
  }
  const Timestamp now = clock_->Now();
  if (now >= grant.start_before) {
    return Error{Code::kPermissionDenied,
                 "the grant could be started until " + FormatTime(grant.start_before) +
                     ", and it is " + FormatTime(now),
                 "if that surprises you, compare this machine's clock with the server's"};
  }
  if (grant.issued > now + kClockSkewMax) {
    return Error{Code::kPermissionDenied,
                 "the grant was issued in the future, at " + FormatTime(grant.issued),
                 "set this machine's clock"};
  }
  if (records_->WasUsed(grant.lease)) {
    return Error{Code::kConflict, "lease " + grant.lease + " was started before"};
  }
  return grant;
}

Status Desk::CheckShare(const isolate::Grant& grant) const {
  RINGFENCE_TRY(hands_->CheckSharing(grant.share->isolation));
  const std::string& uuid = grant.gpus.front();
  const auto holders = records_->HoldersOf(uuid);
  for (const LeaseRecord* holder : holders) {
    const bool fits = holder->share.has_value() &&
                      holder->share->isolation == grant.share->isolation &&
                      (grant.share->isolation != model::IsolationClass::kMps ||
                       holder->share->tenant == grant.tenant);
    if (!fits) {
      return Error{Code::kFailedPrecondition,
                   uuid + " is held by lease " + holder->lease + ", which does not share it so",
                   "end and scrub that lease first"};
    }
  }
  const SharedGpu* const shared = records_->FindShared(uuid);
  const bool joins = !holders.empty() && shared != nullptr && shared->open;
  if (scrubbing_.contains(uuid) || (!joins && !records_->IsClean(uuid))) {
    return Error{Code::kFailedPrecondition, uuid + " is not scrubbed",
                 "scrub it first: without a receipt no lease starts on it"};
  }
  if (joins && shared->leases.size() >= isolate::kSharersMax) {
    return Error{Code::kExhausted,
                 uuid + " was shared by " + std::to_string(shared->leases.size()) +
                     " leases since it was last scrubbed",
                 "wait until all of them have ended and it is scrubbed"};
  }
  return {};
}

Status Desk::CheckCards(const isolate::Grant& grant) const {
  if (grant.share.has_value()) {
    return CheckShare(grant);
  }
  for (const std::string& uuid : grant.gpus) {
    const auto card = cards_.find(uuid);
    if (card != cards_.end() && card->second.slice.has_value() &&
        records_->HoldsWhole(card->second.slice->parent)) {
      return Error{Code::kFailedPrecondition,
                   uuid + " is a slice of " + card->second.slice->parent +
                       ", which a lease holds as a whole",
                   "end and scrub that lease first"};
    }
    if (const std::string holder = records_->HolderOf(uuid); !holder.empty()) {
      return Error{Code::kFailedPrecondition, uuid + " is held by lease " + holder,
                   "end and scrub that lease first"};
    }
    if (IsBeingCut(uuid)) {
      return Error{Code::kFailedPrecondition, uuid + " is being cut (MIG)",
                   "wait until that is done: `ringfence mig show`"};
    }
    if (scrubbing_.contains(uuid) || !records_->IsClean(uuid)) {
      return Error{Code::kFailedPrecondition, uuid + " is not scrubbed",
                   "scrub it first: without a receipt no lease starts on it"};
    }
  }
  return {};
}

void Desk::HandleStart(std::uint32_t id, const isolate::StartRequest& request) {
  RINGFENCE_FAILPOINT("jailer.start");
  Status status = CheckCanRun();
  if (!status.has_value()) {
    Answer(id, RequestType::kStart, std::move(status));
    return;
  }
  const auto open = [&]() -> Result<Order> {
    Order order;
    RINGFENCE_ASSIGN(order.grant, CheckGrant(request.grant));
    RINGFENCE_ASSIGN(order.access, isolate::HostAccess::Open(*parts_.identity.grant_key,
                                                             request.grant, clock_->Now()));
    order.digest = Hex(crypto::Sha256(AsBytes(request.grant)));
    return order;
  };
  auto order = open();
  if (!order.has_value()) {
    if (order.error().code == Code::kPermissionDenied) {
      (void)KeepIncident("refused_grant", order.error().message);  // refused in any case
    }
    Answer(id, RequestType::kStart, order.error());
    return;
  }
  const std::vector<std::string> gpus = order->grant.gpus;
  WithMinors(gpus, [this, id, order = std::move(*order)](const Status& known) {
    if (!known.has_value()) {
      Answer(id, RequestType::kStart, known.error());
      return;
    }
    StartWithImage(id, order);
  });
}

void Desk::StartWithImage(std::uint32_t id, const Order& order) {
  const std::string& image = order.grant.box.image;
  if (image.empty()) {
    StartGranted(id, order, std::nullopt);
    return;
  }
  hands_->ReadyImage(image, [this, id, order](Result<isolate::BoxImage> ready) {
    if (!ready.has_value()) {
      Answer(id, RequestType::kStart, ready.error());
      return;
    }
    StartGranted(id, order, std::move(*ready));
  });
}

Result<std::vector<isolate::NamedMount>> Desk::MountsFor(const isolate::Grant& grant) const {
  std::vector<isolate::NamedMount> mounts;
  for (const isolate::GrantMount& wanted : grant.box.mounts) {
    const auto found = parts_.mounts.find(wanted.name);
    if (found == parts_.mounts.end()) {
      return Error{Code::kFailedPrecondition,
                   "this node has no mount named \"" + wanted.name + "\"",
                   "declare it in the node's settings: node.mounts"};
    }
    if (wanted.writable && !found->second.writable) {
      return Error{Code::kPermissionDenied,
                   "the mount " + wanted.name + " is read-only on this node",
                   "ask for it without :rw, or declare it with :rw in node.mounts"};
    }
    if (!os::IsDirectory(found->second.path)) {
      return Error{Code::kFailedPrecondition,
                   "the mount " + wanted.name + " is no folder on this node: " + found->second.path,
                   "make it, or change node.mounts"};
    }
    mounts.push_back({found->second.path, wanted.path, wanted.writable});
  }
  return mounts;
}

Status Desk::PlanProbe(const isolate::Grant& grant, isolate::BoxPlan& plan) const {
  if (!grant.box.walls_away.empty()) {
    RINGFENCE_ASSIGN(plan.walls_away,
                     isolate::WallsAway::ForProbe(grant.command, grant.box.walls_away));
    if (!grant.box.image.empty() || !grant.box.mounts.empty() || grant.network.has_value() ||
        grant.box.exception.has_value()) {
      return Error{Code::kPermissionDenied,
                   "a box with walls taken away has no image, no mounts and no network"};
    }
  }
  for (const auto& [uuid, card] : cards_) {
    if (!plan.walls_away.has_value() || !card.slice.has_value()) {
      continue;
    }
    RINGFENCE_ASSIGN(const gpu::DriverFiles files, hands_->FilesFor({card}));
    std::copy_if(
        files.nodes.begin(), files.nodes.end(), std::back_inserter(plan.foreign_slices),
        [](const gpu::DeviceNode& node) { return node.path.starts_with("/dev/nvidia-caps/"); });
  }
  if (!grant.command.empty() && grant.command.front() == isolate::kBoxProbePath) {
    plan.prove = [this, grant](const std::string& ending) {
      return isolate::SealProof(parts_.identity.key, {grant.node, grant.lease, grant.command,
                                                      grant.box.walls_away, ending, clock_->Now()});
    };
  }
  return {};
}

Status Desk::PlanException(const Order& order, isolate::BoxPlan& plan) const {
  if (!order.access.has_value()) {
    return {};
  }
  const Timestamp now = clock_->Now();  // an image may have taken its time
  if (now >= order.access->until()) {
    return Error{Code::kPermissionDenied,
                 "the exception " + order.access->name() + " has ended meanwhile"};
  }
  plan.access = order.access;
  plan.grant.runtime_max = std::min(plan.grant.runtime_max, order.access->until() - now);
  os::Log(os::Level::kWarning, "exception_used",
          {{"lease", order.grant.lease},
           {"exception", order.access->name()},
           {"until", FormatTime(order.access->until())}});
  return {};
}

void Desk::StartGranted(std::uint32_t id, const Order& order,
                        std::optional<isolate::BoxImage> image) {
  const isolate::Grant& grant = order.grant;
  if (grant.share.has_value() && scrubbing_.contains(grant.gpus.front())) {
    after_scrub_.emplace(grant.gpus.front(),
                         [this, id, order, image] { StartGranted(id, order, image); });
    return;
  }
  const auto prepare = [&]() -> Result<isolate::BoxPlan> {
    // Again, as another Start may have come between.
    if (records_->WasUsed(grant.lease)) {
      return Error{Code::kConflict, "lease " + grant.lease + " was started before"};
    }
    if (closed_) {
      return Error{Code::kUnavailable, "the node is shutting down"};
    }
    RINGFENCE_TRY(CheckCards(grant));
    isolate::BoxPlan plan;
    plan.grant = grant;
    plan.image = std::move(image);
    RINGFENCE_ASSIGN(plan.mounts, MountsFor(grant));
    RINGFENCE_TRY(PlanProbe(grant, plan));
    RINGFENCE_TRY(PlanException(order, plan));
    RINGFENCE_ASSIGN(const std::vector<gpu::WantedGpu> gpus, Wanted(grant.gpus));
    RINGFENCE_ASSIGN(plan.files, hands_->FilesFor(gpus));
    for (gpu::DriverMount& mount : plan.files.mounts) {
      mount.shared = grant.share.has_value();
    }
    if (!grant.box.devices.empty()) {
      RINGFENCE_ASSIGN(const auto nodes, hands_->FabricNodesFor(grant.box.devices));
      plan.files.nodes.insert(plan.files.nodes.end(), nodes.begin(), nodes.end());
    }
    RINGFENCE_ASSIGN(plan.slot, records_->TakeSlot(grant.tenant));
    LeaseRecord record;
    record.lease = grant.lease;
    record.gpus = gpus;
    record.slot = plan.slot;
    record.grant_digest = order.digest;
    if (grant.share.has_value()) {
      record.share = RecordShare{grant.share->isolation, grant.tenant};
    }
    record.start_before = grant.start_before;
    record.changed = clock_->Now();
    RINGFENCE_TRY(records_->Begin(record));
    RINGFENCE_FAILPOINT("jailer.begun");
    return plan;
  };
  auto plan = prepare();
  if (!plan.has_value()) {
    Answer(id, RequestType::kStart, plan.error());
    return;
  }
  hands_->StartBox(std::move(*plan), [this, id](Result<isolate::StartedBox> box) {
    if (!box.has_value()) {
      Answer(id, RequestType::kStart, box.error());
      return;
    }
    isolate::Reply reply;
    reply.id = id;
    reply.type = RequestType::kStart;
    std::vector<os::UniqueFd> fds;
    fds.push_back(std::move(box->out));
    fds.push_back(std::move(box->err));
    fds.push_back(std::move(box->exit));
    parts_.send(std::move(reply), std::move(fds));
  });
}

}  // namespace ringfence::jailer

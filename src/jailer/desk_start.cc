// Start: from a signed grant to a running box.

#include "base/encoding.h"
#include "crypto/sha256.h"
#include "isolate/proof.h"
#include "isolate/walls_away.h"
#include "jailer/desk.h"
#include "os/failpoint.h"
#include "os/file.h"

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

Status Desk::CheckCards(const isolate::Grant& grant) const {
  for (const std::string& uuid : grant.gpus) {
    if (const std::string holder = records_->HolderOf(uuid); !holder.empty()) {
      return Error{Code::kFailedPrecondition, uuid + " is held by lease " + holder,
                   "end and scrub that lease first"};
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
  auto grant = CheckGrant(request.grant);
  if (!grant.has_value()) {
    if (grant.error().code == Code::kPermissionDenied) {
      (void)KeepIncident("refused_grant", grant.error().message);  // refused in any case
    }
    Answer(id, RequestType::kStart, grant.error());
    return;
  }
  const std::string digest = Hex(crypto::Sha256(AsBytes(request.grant)));
  WithMinors(grant->gpus, [this, id, grant = *grant, digest](const Status& known) {
    if (!known.has_value()) {
      Answer(id, RequestType::kStart, known.error());
      return;
    }
    StartWithImage(id, grant, digest);
  });
}

void Desk::StartWithImage(std::uint32_t id, const isolate::Grant& grant,
                          const std::string& digest) {
  if (grant.box.image.empty()) {
    StartGranted(id, grant, digest, std::nullopt);
    return;
  }
  hands_->ReadyImage(grant.box.image, [this, id, grant, digest](Result<isolate::BoxImage> image) {
    if (!image.has_value()) {
      Answer(id, RequestType::kStart, image.error());
      return;
    }
    StartGranted(id, grant, digest, std::move(*image));
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
    if (!grant.box.image.empty() || !grant.box.mounts.empty() || grant.network.has_value()) {
      return Error{Code::kPermissionDenied,
                   "a box with walls taken away has no image, no mounts and no network"};
    }
  }
  if (!grant.command.empty() && grant.command.front() == isolate::kBoxProbePath) {
    plan.prove = [this, grant](const std::string& ending) {
      return isolate::SealProof(parts_.identity.key, {grant.node, grant.lease, grant.command,
                                                      grant.box.walls_away, ending, clock_->Now()});
    };
  }
  return {};
}

void Desk::StartGranted(std::uint32_t id, const isolate::Grant& grant, const std::string& digest,
                        std::optional<isolate::BoxImage> image) {
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
    RINGFENCE_ASSIGN(const std::vector<gpu::WantedGpu> gpus, Wanted(grant.gpus));
    RINGFENCE_ASSIGN(plan.files, hands_->FilesFor(gpus));
    if (!grant.box.devices.empty()) {
      RINGFENCE_ASSIGN(const auto nodes, hands_->FabricNodesFor(grant.box.devices));
      plan.files.nodes.insert(plan.files.nodes.end(), nodes.begin(), nodes.end());
    }
    RINGFENCE_ASSIGN(plan.slot, records_->TakeSlot(grant.tenant));
    LeaseRecord record;
    record.lease = grant.lease;
    record.gpus = gpus;
    record.slot = plan.slot;
    record.grant_digest = digest;
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

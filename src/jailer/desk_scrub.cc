// Inventory and Scrub: what workers do, and what the jailer signs of it.

#include <algorithm>

#include "crypto/random.h"
#include "gpu/inventory.h"
#include "gpu/scrub.h"
#include "jailer/desk.h"
#include "os/failpoint.h"
#include "os/log.h"

namespace ringfence::jailer {
namespace {

using isolate::BoxState;
using isolate::RequestType;

// No grant lives as long: one that is still under way finds its lease used.
constexpr auto kUnstartedKept = std::chrono::hours(24);

// A report counts only if it covers exactly the cards asked for, each without a wrong byte.
Result<std::vector<isolate::GpuScrub>> CheckReport(const gpu::ScrubReport& report,
                                                   const std::vector<gpu::WantedGpu>& gpus) {
  std::vector<isolate::GpuScrub> scrubs;
  for (const gpu::WantedGpu& gpu : gpus) {
    const auto of_card = [&](const gpu::ScrubResult& one) { return one.uuid == gpu.uuid; };
    const auto result = std::find_if(report.gpus.begin(), report.gpus.end(), of_card);
    if (result == report.gpus.end() ||
        std::count_if(report.gpus.begin(), report.gpus.end(), of_card) != 1) {
      return Error{Code::kUnavailable, "the worker's report does not cover " + gpu.uuid};
    }
    if (result->mismatch_bytes != 0 || result->reached_bytes == 0) {
      return Error{Code::kCorrupt,
                   gpu.uuid + ": " + std::to_string(result->mismatch_bytes) + " of " +
                       std::to_string(result->reached_bytes) +
                       " bytes read back other than written",
                   "take the card out of service: its memory does not keep what is written"};
    }
    if (result->reached_bytes < result->memory_bytes / 100 * isolate::kReachedPercentLeast) {
      return Error{Code::kUnavailable,
                   gpu.uuid + ": only " + std::to_string(result->reached_bytes) + " of " +
                       std::to_string(result->memory_bytes) + " bytes were reached",
                   "find out who else holds its memory"};
    }
    if (result->parent != (gpu.slice.has_value() ? gpu.slice->parent : "")) {
      return Error{Code::kUnavailable,
                   gpu.uuid + ": the worker's report is of a slice of another GPU"};
    }
    scrubs.push_back(*result);
  }
  if (report.gpus.size() != gpus.size()) {
    return Error{Code::kUnavailable, "the worker's report covers other cards too"};
  }
  return scrubs;
}

gpu::WantedGpu WantedOf(const gpu::Gpu& gpu) {
  gpu::WantedGpu wanted{gpu.uuid, gpu.minor};
  if (gpu.slice.has_value()) {
    wanted.slice = {gpu.slice->parent, gpu.slice->gpu_instance, gpu.slice->compute_instance};
  }
  return wanted;
}

}  // namespace

void Desk::RunInventory(std::function<void(Result<std::string>)> done) {
  if (hands_->full()) {
    done(Error{Code::kExhausted, "as many workers as allowed are under way", "try again"});
    return;
  }
  hands_->ReadInventory([this, done](Result<std::string> text) {
    if (text.has_value()) {
      const auto json = ParseJson(*text, isolate::kInventoryBytesMax);
      const auto inventory =
          json.has_value() ? gpu::InventoryFromJson(*json) : Result<gpu::Inventory>(json.error());
      if (!inventory.has_value()) {
        done(Prefix("the inventory worker's document", inventory.error()));
        return;
      }
      cards_.clear();
      for (const gpu::Gpu& gpu : inventory->gpus) {
        cards_[gpu.uuid] = WantedOf(gpu);
      }
      std::vector<std::string> gone;
      for (const std::string& uuid : records_->Clean()) {
        if (!cards_.contains(uuid)) {
          gone.push_back(uuid);
        }
      }
      for (const gpu::Gpu& gpu : inventory->gpus) {
        if (gpu.mig_enabled.value_or(false)) {  // and once it is whole again, with what slices left
          gone.push_back(gpu.uuid);
        }
      }
      if (const Status dirty = gone.empty() ? Status() : records_->SetDirty(gone);
          !dirty.has_value()) {
        done(dirty.error());
        return;
      }
    }
    done(std::move(text));
  });
}

void Desk::HandleInventory(std::uint32_t id) {
  RunInventory([this, id](const Result<std::string>& text) {
    if (!text.has_value()) {
      Answer(id, RequestType::kInventory, text.error());
      return;
    }
    AnswerFile(id, RequestType::kInventory, AsBytes(*text));
  });
}

Result<std::vector<gpu::WantedGpu>> Desk::Wanted(const std::vector<std::string>& uuids) const {
  std::vector<gpu::WantedGpu> gpus;
  for (const std::string& uuid : uuids) {
    const auto card = cards_.find(uuid);
    if (card == cards_.end()) {
      return Error{Code::kNotFound, "this node has no GPU " + uuid};
    }
    gpus.push_back(card->second);
  }
  return gpus;
}

void Desk::WithMinors(const std::vector<std::string>& uuids, AfterInventory then) {
  if (Wanted(uuids).has_value()) {
    then({});
    return;
  }
  RunInventory([this, uuids, then = std::move(then)](const Result<std::string>& text) {
    if (!text.has_value()) {
      then(text.error());
      return;
    }
    const auto gpus = Wanted(uuids);
    then(gpus.has_value() ? Status() : Status(gpus.error()));
  });
}

void Desk::HandleScrub(std::uint32_t id, const isolate::ScrubRequest& request) {
  const auto refuse = [&](Error error) { Answer(id, RequestType::kScrub, std::move(error)); };
  RINGFENCE_FAILPOINT("jailer.scrub");
  if (const Status can = CheckCanRun(); !can.has_value()) {
    return refuse(can.error());
  }
  if (!request.lease.empty()) {
    const LeaseRecord* record = records_->Find(request.lease);
    if (record == nullptr) {
      return ScrubUnstarted(id, request);
    }
    if (record->state == BoxState::kScrubbed) {
      return AnswerText(id, RequestType::kScrub, record->receipt);
    }
    if (record->state != BoxState::kEnded) {
      const std::string who = hands_->InTheWayOf(request.lease);
      return refuse({Code::kFailedPrecondition,
                     "lease " + request.lease + " has not ended yet" +
                         (who.empty() ? "" : ": " + who + " still has its GPUs"),
                     "end it first"});
    }
    if (record->share.has_value()) {
      const std::string& gpu = record->gpus.front().uuid;
      if (const std::size_t neighbours = NeighboursOf(request.lease, gpu); neighbours > 0) {
        return LeaveShared(id, request.lease, gpu, neighbours);
      }
    }
    return ScrubCards(id, request.lease, record->gpus);
  }
  if (request.gpus.empty()) {
    return refuse({Code::kInvalidArgument, "neither a lease nor a GPU to scrub is named"});
  }
  for (const std::string& uuid : request.gpus) {
    if (const std::string holder = records_->HolderOf(uuid); !holder.empty()) {
      return refuse({Code::kFailedPrecondition, uuid + " is held by lease " + holder,
                     "end that lease and scrub it by its id"});
    }
  }
  WithMinors(request.gpus, [this, id, uuids = request.gpus](const Status& known) {
    const auto gpus = Wanted(uuids);
    if (!known.has_value() || !gpus.has_value()) {
      Answer(id, RequestType::kScrub, known.has_value() ? gpus.error() : known.error());
      return;
    }
    ScrubCards(id, "", *gpus);
  });
}

std::size_t Desk::NeighboursOf(const std::string& lease, const std::string& gpu) const {
  std::size_t neighbours = 0;
  for (const LeaseRecord* holder : records_->HoldersOf(gpu)) {
    neighbours += holder->lease != lease && holder->share.has_value() ? 1 : 0;
  }
  return neighbours;
}

void Desk::LeaveShared(std::uint32_t id, const std::string& lease, const std::string& gpu,
                       std::size_t neighbours) {
  isolate::Receipt receipt;
  receipt.format = isolate::kShareReceiptFormat;
  receipt.id = crypto::RandomId("receipt");
  receipt.node = parts_.node;
  receipt.lease = lease;
  receipt.time = clock_->Now();
  receipt.share = isolate::ReceiptShare{gpu, static_cast<std::uint32_t>(neighbours), {}};
  if (const SharedGpu* const shared = records_->FindShared(gpu)) {
    receipt.share->leases = shared->leases;
  }
  receipt.not_covered = {"nothing was scrubbed: " + std::to_string(neighbours) +
                         " other leases still have shares of the GPU"};
  std::string envelope = isolate::SealReceipt(parts_.identity.key, receipt);
  const Status kept = records_->SetScrubbed(lease, {}, receipt.id, envelope, receipt.time);
  if (!kept.has_value()) {
    return Answer(id, RequestType::kScrub, kept.error());
  }
  AnswerText(id, RequestType::kScrub, std::move(envelope));
}

// A lease whose box was never started here, or whose record is lost or was dropped (the server may
// have been restored from a backup, and ask again). From now on it can never be started, so that
// its receipt cannot be had first and its job run afterwards.
void Desk::ScrubUnstarted(std::uint32_t id, const isolate::ScrubRequest& request) {
  const auto refuse = [this, id](Error error) {
    Answer(id, RequestType::kScrub, std::move(error));
  };
  if (request.gpus.empty()) {
    return refuse({Code::kNotFound, "no lease " + request.lease + " on this node"});
  }
  WithMinors(request.gpus, [this, id, refuse, request](const Status& known) {
    const auto begin = [&]() -> Result<std::vector<gpu::WantedGpu>> {
      RINGFENCE_TRY(known);
      if (records_->Find(request.lease) != nullptr) {  // a Start may have come between
        return Error{Code::kUnavailable, "lease " + request.lease + " was started just now",
                     "try again"};
      }
      const bool had_share =
          request.gpus.size() == 1 && NeighboursOf(request.lease, request.gpus.front()) > 0;
      for (const std::string& uuid : request.gpus) {
        if (const std::string holder = records_->HolderOf(uuid); !holder.empty() && !had_share) {
          return Error{Code::kFailedPrecondition, uuid + " is held by lease " + holder,
                       "end that lease and scrub it by its id"};
        }
      }
      LeaseRecord record;
      record.lease = request.lease;
      record.state = BoxState::kEnded;
      RINGFENCE_ASSIGN(record.gpus, Wanted(request.gpus));
      record.start_before = clock_->Now() + kUnstartedKept;
      record.changed = clock_->Now();
      RINGFENCE_TRY(records_->Begin(record));
      return record.gpus;
    };
    const auto gpus = begin();
    if (!gpus.has_value()) {
      return refuse(gpus.error());
    }
    const std::size_t neighbours =
        gpus->size() == 1 ? NeighboursOf(request.lease, gpus->front().uuid) : 0;
    if (neighbours > 0) {  // it was to have a share, and never did: the receipt is of no other use
      return LeaveShared(id, request.lease, gpus->front().uuid, neighbours);
    }
    ScrubCards(id, request.lease, *gpus);
  });
}

void Desk::ScrubCards(std::uint32_t id, const std::string& lease,
                      const std::vector<gpu::WantedGpu>& gpus) {
  const auto refuse = [&](Error error) { Answer(id, RequestType::kScrub, std::move(error)); };
  std::vector<std::string> uuids;
  for (const gpu::WantedGpu& gpu : gpus) {
    const std::string holder = records_->HolderOf(gpu.uuid);
    if (lease.empty() && IsBeingCut(gpu.uuid)) {  // what a lease holds is not taken away
      return refuse({Code::kUnavailable, gpu.uuid + " is being cut (MIG)", "try again"});
    }
    if (scrubbing_.contains(gpu.uuid) || (!holder.empty() && holder != lease)) {
      return refuse({Code::kUnavailable, gpu.uuid + " is being scrubbed or was leased just now",
                     "try again"});
    }
    uuids.push_back(gpu.uuid);
  }
  if (gpus.empty()) {
    return FinishScrub(id, lease, gpus, gpu::ScrubReportToJson(gpu::ScrubReport()));
  }
  if (hands_->full()) {
    return refuse({Code::kExhausted, "as many workers as allowed are under way", "try again"});
  }
  if (const Status dirty = records_->SetDirty(uuids); !dirty.has_value()) {
    return refuse(dirty.error());
  }
  RINGFENCE_FAILPOINT("jailer.dirty");
  scrubbing_.insert(uuids.begin(), uuids.end());
  hands_->ScrubCards(gpus, [this, id, lease, gpus](Result<std::string> report) {
    for (const gpu::WantedGpu& gpu : gpus) {
      scrubbing_.erase(gpu.uuid);
    }
    FinishScrub(id, lease, gpus, std::move(report));
    for (const gpu::WantedGpu& gpu : gpus) {
      const auto [first, last] = after_scrub_.equal_range(gpu.uuid);
      const std::vector<std::pair<std::string, std::function<void()>>> waiting(first, last);
      after_scrub_.erase(first, last);
      for (const auto& [uuid, start] : waiting) {
        start();
      }
    }
  });
}

void Desk::FinishScrub(std::uint32_t id, const std::string& lease,
                       const std::vector<gpu::WantedGpu>& gpus, Result<std::string> report) {
  const auto seal = [&]() -> Result<std::string> {
    RINGFENCE_ASSIGN(const std::string text, std::move(report));
    RINGFENCE_ASSIGN(gpu::ScrubReport parsed, gpu::ScrubReportFromJson(text));
    isolate::Receipt receipt;
    RINGFENCE_ASSIGN(receipt.gpus, CheckReport(parsed, gpus));
    receipt.id = crypto::RandomId("receipt");
    receipt.node = parts_.node;
    receipt.lease = lease;
    receipt.time = clock_->Now();
    receipt.driver_version = parsed.driver_version;
    receipt.kernel_driver = parsed.kernel_driver;
    receipt.library_digest = parsed.library_digest;
    receipt.kernels_digest = parsed.kernels_digest;
    receipt.pattern = parsed.pattern;
    receipt.simulated = parsed.simulated;
    receipt.covered = parsed.covered;
    receipt.not_covered = parsed.not_covered;
    const LeaseRecord* const record = records_->Find(lease);
    if (const SharedGpu* const shared =
            gpus.size() == 1 ? records_->FindShared(gpus.front().uuid) : nullptr;
        shared != nullptr || (record != nullptr && record->share.has_value())) {
      receipt.format = isolate::kShareReceiptFormat;
      receipt.share = isolate::ReceiptShare{gpus.front().uuid, 0, {}};
      receipt.share->leases = shared == nullptr ? std::vector<std::string>{lease} : shared->leases;
    }
    std::string envelope = isolate::SealReceipt(parts_.identity.key, receipt);
    std::vector<std::string> uuids;
    for (const gpu::WantedGpu& gpu : gpus) {
      uuids.push_back(gpu.uuid);
    }
    RINGFENCE_FAILPOINT("jailer.sealed");
    RINGFENCE_TRY(records_->SetScrubbed(lease, uuids, receipt.id, envelope, receipt.time));
    RINGFENCE_FAILPOINT("jailer.scrubbed");
    return envelope;
  };
  auto sealed = seal();
  if (!sealed.has_value()) {
    os::Log(os::Level::kError, "scrub_failed",
            {{"lease", lease}, {"reason", sealed.error().message}});
    Answer(id, RequestType::kScrub, sealed.error());
    return;
  }
  AnswerText(id, RequestType::kScrub, std::move(*sealed));
}

}  // namespace ringfence::jailer

#pragma once

// The jailer's decisions: its closed table of requests, over its records. What needs a process is
// done by other hands, so that the same decisions can be tried in a simulated world.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "gpu/device_files.h"
#include "gpu/mig_reshape.h"
#include "isolate/box.h"
#include "isolate/jailer_protocol.h"
#include "isolate/mig_order.h"
#include "jailer/identity.h"
#include "jailer/options.h"
#include "jailer/records.h"

namespace ringfence::jailer {

// Each callback is called once, at once or later, unless the jailer ends before.
class Hands {
 public:
  using Text = std::function<void(Result<std::string>)>;
  using Started = std::function<void(Result<isolate::StartedBox>)>;

  Hands() = default;
  Hands(const Hands&) = delete;
  Hands& operator=(const Hands&) = delete;
  virtual ~Hands() = default;

  virtual bool full() const = 0;  // as many workers as allowed are under way
  virtual void ReadInventory(Text done) = 0;
  virtual void ScrubCards(const std::vector<gpu::WantedGpu>& gpus, Text done) = 0;
  // What MIG of a GPU is (gpu::LiveMigToJson), and making it something else or putting back what
  // was before (gpu::MigOutcomeToJson).
  virtual void ReadMig(const gpu::WantedGpu& /*gpu*/, Text done) {
    done(Error{Code::kFailedPrecondition, "this node cuts no GPUs"});
  }
  virtual void CutCard(const gpu::WantedGpu& /*gpu*/, const std::string& /*target*/,
                       const std::string& /*before*/, Text done) {
    done(Error{Code::kFailedPrecondition, "this node cuts no GPUs"});
  }
  virtual Result<gpu::DriverFiles> FilesFor(const std::vector<gpu::WantedGpu>& gpus) const = 0;
  // Nodes of what the grant lets in besides GPUs (isolate/fabric_devices.h).
  virtual Result<std::vector<gpu::DeviceNode>> FabricNodesFor(
      const std::vector<std::string>& /*kinds*/) const {
    return Error{Code::kFailedPrecondition, "this node has no devices of a fabric"};
  }
  // The record must be durable already; its state is kept up to date from here on.
  virtual void StartBox(isolate::BoxPlan plan, Started started) = 0;
  virtual void EndBox(const std::string& lease) = 0;
  // The image, whole and as it was imported, held until the box has ended.
  using Image = std::function<void(Result<isolate::BoxImage>)>;
  virtual void ReadyImage(const std::string& digest, Image done) {
    done(Error{Code::kFailedPrecondition, "image " + digest + " is not on this node"});
  }
  virtual Result<std::vector<isolate::NodeImage>> ListImages() const {
    return std::vector<isolate::NodeImage>();
  }
  // What the sensor worker prints. One at a time: an earlier one is ended.
  virtual Result<os::UniqueFd> StartSensor() {
    return Error{Code::kFailedPrecondition, "this node has no sensor"};
  }
  // OK when this node's GPUs may be shared in that class; else why not.
  virtual Status CheckSharing(model::IsolationClass /*isolation*/) const { return {}; }
  // Who keeps a lease from ending, for people; empty when nobody is known.
  virtual std::string InTheWayOf(const std::string& /*lease*/) const { return {}; }
};

// One thread.
class Desk {
 public:
  using Send = std::function<void(isolate::Reply, std::vector<os::UniqueFd>)>;
  struct Parts {
    std::string node;
    Identity identity;
    std::vector<std::string> missing;  // why no box can run here; empty: they can
    Send send;
    std::map<std::string, MountPlace> mounts = {};  // what boxes may have, by name
  };
  // The references must outlive this.
  Desk(Parts parts, Records& records, Hands& hands, const Clock& clock)
      : parts_(std::move(parts)), records_(&records), hands_(&hands), clock_(&clock) {}

  // Every request is answered once, at once or later.
  void Handle(const isolate::Request& request);
  Status KeepIncident(const std::string& what, const std::string& detail);
  // No box starts from now on.
  void Close() { closed_ = true; }

 private:
  using AfterInventory = std::function<void(const Status&)>;

  void HandleStart(std::uint32_t id, const isolate::StartRequest& request);
  // With the image, where the grant names one.
  struct Order {
    isolate::Grant grant;
    std::string digest;  // of its envelope
    std::optional<isolate::HostAccess> access;
  };
  void StartWithImage(std::uint32_t id, const Order& order);
  void StartGranted(std::uint32_t id, const Order& order, std::optional<isolate::BoxImage> image);
  // The grant's exception, if it has one that is in force; its job ends with it.
  Status PlanException(const Order& order, isolate::BoxPlan& plan) const;
  Result<std::vector<isolate::NamedMount>> MountsFor(const isolate::Grant& grant) const;
  // Walls are taken away for a probe alone, and a probe's ending is signed.
  Status PlanProbe(const isolate::Grant& grant, isolate::BoxPlan& plan) const;
  void HandleImages(std::uint32_t id);
  void HandleSense(std::uint32_t id);
  void HandleEnd(std::uint32_t id, const std::string& lease);
  void HandleScrub(std::uint32_t id, const isolate::ScrubRequest& request);
  void ScrubUnstarted(std::uint32_t id, const isolate::ScrubRequest& request);
  void ScrubCards(std::uint32_t id, const std::string& lease,
                  const std::vector<gpu::WantedGpu>& gpus);
  void FinishScrub(std::uint32_t id, const std::string& lease,
                   const std::vector<gpu::WantedGpu>& gpus, Result<std::string> report);
  void HandleMig(std::uint32_t id, const std::string& envelope);
  Result<isolate::MigOrder> CheckMigOrder(const std::string& envelope) const;
  Result<gpu::MigReshape> PlanMig(const isolate::MigOrder& order, const gpu::LiveMig& live) const;
  Result<MigDeed> BeginMig(const isolate::MigOrder& order, const gpu::LiveMig& live);
  void HandleLiveMig(std::uint32_t id, const isolate::MigOrder& order, const gpu::LiveMig& live);
  // Does the deed, which is written down; `refusal`: only puts back what was there, for this.
  void CutCard(std::uint32_t id, const isolate::MigOrder& order, const MigDeed& deed,
               const std::string& refusal);
  void SealMig(std::uint32_t id, const isolate::MigOrder& order, MigDeed deed,
               const gpu::MigOutcome& outcome);
  // Whether an order is, or was when somebody died, about to change this card or what it is cut of.
  bool IsBeingCut(const std::string& uuid) const;
  void HandleInventory(std::uint32_t id);
  void HandleList(std::uint32_t id);
  void HandleForget(std::uint32_t id, const std::string& lease);
  void HandleIncidents(std::uint32_t id);

  // Runs the inventory worker; `done` gets its document. Remembers the cards' minors and slices;
  // what is not there any more is not clean when it comes back.
  void RunInventory(std::function<void(Result<std::string>)> done);
  // Calls `then` once the minors of all these cards are known, or why they cannot be.
  void WithMinors(const std::vector<std::string>& uuids, AfterInventory then);
  Result<std::vector<gpu::WantedGpu>> Wanted(const std::vector<std::string>& uuids) const;

  Result<isolate::Grant> CheckGrant(const std::string& envelope) const;
  Status CheckCards(const isolate::Grant& grant) const;
  Status CheckShare(const isolate::Grant& grant) const;
  // A lease that had a share goes while others have theirs: nothing is scrubbed yet.
  void LeaveShared(std::uint32_t id, const std::string& lease, const std::string& gpu,
                   std::size_t neighbours);
  // How many other leases hold the GPU that this one had a share of.
  std::size_t NeighboursOf(const std::string& lease, const std::string& gpu) const;
  Status CheckCanRun() const;

  void Answer(std::uint32_t id, isolate::RequestType type, Status status);
  void AnswerText(std::uint32_t id, isolate::RequestType type, std::string text);
  void AnswerFile(std::uint32_t id, isolate::RequestType type, ByteView bytes);

  Parts parts_;
  Records* records_;
  Hands* hands_;
  const Clock* clock_;
  std::map<std::string, gpu::WantedGpu> cards_;  // by UUID, from our own worker
  std::set<std::string> scrubbing_;              // UUIDs
  // By GPU: what an order for it may take away, and so must not be started on or scrubbed.
  std::map<std::string, std::vector<std::string>> cutting_;
  // Starts on a GPU that is being scrubbed after its last share: they go on when it is clean.
  std::multimap<std::string, std::function<void()>> after_scrub_;
  bool closed_ = false;
};

}  // namespace ringfence::jailer

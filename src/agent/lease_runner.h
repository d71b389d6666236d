#pragma once

// Everything this node does for leases: starts boxes, carries their output, says how they ended,
// has GPUs scrubbed and delivers the receipts. A thread a lease.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "agent/link.h"
#include "agent/surroundings.h"
#include "isolate/jailer_client.h"

namespace ringfence::agent {

// Any thread. `jailer` and `surroundings` must outlive it; the destructor waits for its threads,
// which let go when the pair to the jailer ends or the server answers.
class LeaseRunner {
 public:
  LeaseRunner(isolate::JailerClient& jailer, Surroundings& surroundings)
      : jailer_(jailer), surroundings_(surroundings) {}
  ~LeaseRunner();
  LeaseRunner(const LeaseRunner&) = delete;
  LeaseRunner& operator=(const LeaseRunner&) = delete;

  // Each is harmless when said again.
  void Start(const std::string& lease, const std::string& grant,
             const std::vector<std::string>& gpus);
  void End(const std::string& lease, const std::vector<std::string>& gpus);
  void Scrub(const std::string& lease, const std::vector<std::string>& gpus);
  // GPUs that no lease holds.
  void ScrubUnleased(const std::vector<std::string>& gpus);

  // Has a GPU cut as a signed order says, and says what became of it; the server knows what the GPU
  // is made of by then.
  void Mig(const std::string& gpu, const std::string& order);
  // Inventories that were asked for so far; whoever reports says up to which one it has.
  std::uint64_t inventories_wanted() const { return inventories_wanted_; }
  void InventoryReported(std::uint64_t up_to) { inventories_reported_ = up_to; }

  // Orders may be overtaken by their own fulfilment: asked for before the receipt was delivered,
  // read after. Scrubbing again would take the GPU from whoever has been given it meanwhile. So:
  // call this before asking, and what is settled from then on is passed over until the next call.
  void BeginOrders();
  // Whether an order was passed over since: ask again at once, the next answer knows.
  bool overtaken();

  // Takes up what an earlier agent left behind, as the jailer remembers it.
  Status Recover();
  // Leases that are in hand, for the report to the server.
  std::vector<std::string> InHand();

 private:
  struct Job {
    std::unique_ptr<Thread> thread;
    bool done = false;
  };
  static std::string KeyOf(const std::string& lease, const std::vector<std::string>& gpus) {
    return lease.empty() ? "gpu:" + gpus.front() : lease;
  }
  bool IsInHand(const std::string& lease);
  template <typename Work>
  void Launch(const std::string& key, Work work);

  // A job's link to the server is an earlier job's where there is one: its handshake would be time
  // that somebody waits for.
  std::unique_ptr<Link> TakeLink();
  void KeepLink(std::unique_ptr<Link> link);

  void RunBox(const std::stop_token& stop, const std::string& lease, const std::string& grant,
              const std::vector<std::string>& gpus);
  std::string Carry(const std::stop_token& stop, Link& link, const std::string& lease,
                    isolate::StartedBox& box);
  void Finish(const std::stop_token& stop, Link& link, const std::string& lease,
              const std::vector<std::string>& gpus, const std::string& ending);
  // What is no fault of the card (a worker that was killed, a full disk) is tried again a few times
  // before it puts the card into quarantine.
  Result<std::string> ScrubPatiently(const std::stop_token& stop, const std::string& lease,
                                     const std::vector<std::string>& gpus);
  void ScrubAndDeliver(const std::stop_token& stop, Link& link, const std::string& lease,
                       const std::vector<std::string>& gpus);

  void CutAndDeliver(const std::stop_token& stop, const std::string& gpu, const std::string& order);

  isolate::JailerClient& jailer_;
  Surroundings& surroundings_;
  std::atomic<std::uint64_t> inventories_wanted_{0};
  std::atomic<std::uint64_t> inventories_reported_{0};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Link>> links_;  // of no job now
  std::map<std::string, Job> jobs_;           // by lease, or by "gpu:UUID"
  std::set<std::string> settled_;             // keys of jobs_ that BeginOrders() speaks of
  bool overtaken_ = false;
};

}  // namespace ringfence::agent

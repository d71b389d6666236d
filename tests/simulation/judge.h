#pragma once

// What must hold, checked after every commit of the server and at every deed of the machines. It
// keeps a picture of its own and shares no decision with the product.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/lease.h"
#include "model/node.h"
#include "policy/policy.h"
#include "scheduler.h"
#include "store/database.h"
#include "watched_database.h"

namespace ringfence::simulation {

class Judge {
 public:
  // The machines' truth, whatever the records say.
  struct Truth {
    std::function<bool(const std::string& lease)> box_runs;
    // Whose data a GPU's memory holds; empty: nobody's, "?": not known, as after a reboot.
    std::function<std::string(const std::string& uuid)> residue;
  };
  Judge(Scheduler& scheduler, const policy::Policy& policy, Truth truth)
      : scheduler_(scheduler), policy_(policy), truth_(std::move(truth)) {}

  // The first thing that was wrong; empty: nothing.
  const std::string& verdict() const { return verdict_; }
  void Condemn(const std::string& what);

  void OnCommit(store::Connection& db, const Touched& touched);
  // A user was told that this lease is theirs.
  void OnAcknowledged(const std::string& key, const std::string& lease);
  // At the end, everything healed: `logged` are the entries of the audit log.
  void AtTheEnd(store::Connection& db, const std::vector<Bytes>& logged);

  // As committed.
  const std::set<std::string>& open_leases() const { return open_; }
  const model::Lease& lease(const std::string& id) const { return leases_.at(id); }
  const std::map<std::string, model::Gpu>& gpus() const { return gpus_; }

  struct Tally {
    std::uint64_t leases = 0;
    std::uint64_t closed = 0;
    std::uint64_t ran = 0;
    std::uint64_t quarantined = 0;
    std::uint64_t entries = 0;
    std::uint64_t receipts = 0;
  };
  const Tally& tally() const { return tally_; }

 private:
  void SeeLease(const model::Lease& lease, const std::multiset<std::string>& actions);
  void SeeNew(const model::Lease& lease);
  void SeeGpu(const model::Gpu& gpu, const Touched& touched);
  void CheckQuotas(const model::Lease& lease);
  void CheckBoundaries(const model::Lease& lease);
  bool IsOpen(const model::Lease& lease) const;

  Scheduler& scheduler_;
  const policy::Policy& policy_;
  Truth truth_;
  std::string verdict_;
  std::map<std::string, model::Lease> leases_;       // as committed last
  std::set<std::string> open_;                       // ids
  std::map<std::string, model::Gpu> gpus_;           // as committed last
  std::map<std::string, std::string> holder_;        // GPU -> open lease
  std::set<std::string> clean_;                      // GPUs with a receipt after their last use
  std::map<std::string, std::string> by_key_;        // the users' own name for a request -> lease
  std::map<std::string, std::string> acknowledged_;  // key -> lease
  std::vector<Bytes> entries_;
  std::set<std::string> entry_ids_;
  Tally tally_;
};

}  // namespace ringfence::simulation

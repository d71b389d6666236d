#pragma once

// Where a request goes: nodes, what is held on them and what must lie between tenants in; slices,
// or the reason why there are none, out. No I/O, no clock. One thread at a time.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/tenant.h"
#include "place/index.h"
#include "policy/boundary.h"

namespace ringfence::place {

inline constexpr std::size_t kNodesPerRequestMax = 256;

struct GpuFacts {
  std::string uuid;
  bool usable = true;
  std::string why = {};  // it is not usable: "quarantined: ..."
  bool mig = false;      // cut by MIG now, whether or not it has instances
};
struct NodeFacts {
  std::string name;
  NodeKind kind;
  std::vector<GpuFacts> gpus;  // kind.gpus of them
  bool ready = true;
  std::string why = {};  // it is not ready
};

struct Request {
  model::TenantPath tenant = model::TenantPath::Root();
  Demand demand;            // on each of the nodes
  std::uint32_t nodes = 1;  // so many different ones
};

// What a lease has on one node.
struct Part {
  std::string node;
  Form form;
  std::vector<std::uint32_t> gpus;  // by place in NodeFacts::gpus
  std::string profile = {};         // of a MIG instance
  std::uint32_t start = 0;          // its first memory slice
  bool reshapes = false;            // MIG must be turned on or off on a GPU first
  std::uint32_t cpu_milli = 0;
  std::uint32_t memory_mib = 0;
};
struct Lease {
  std::string id;
  model::TenantPath tenant = model::TenantPath::Root();
  model::IsolationClass least = model::IsolationClass::kMps;
  std::vector<Part> parts;
  std::optional<Timestamp> ends = {};  // at the latest
};

class Placer {
 public:
  using Boundaries =
      std::function<policy::IsolationDemand(const model::TenantPath&, const model::TenantPath&)>;

  // `typical` is the work that is expected; with none, every node counts for what is free of it.
  // Errors: a node that is not possible, by name.
  static Result<Placer> Create(std::vector<NodeFacts> nodes, std::vector<TypicalTask> typical,
                               Boundaries boundaries, Method method = Method::kRingfence);

  // Changes nothing. kInvalidArgument: no node could ever hold it. kUnavailable: it must wait; the
  // message says what stands in the way and, where leases have an end, when that could be over.
  Result<std::vector<Part>> Decide(const Request& request);

  // A lease with what it was given. kConflict when that is not free, or there is one of that name.
  // Does not ask whether a boundary is crossed: what is so, is so.
  Status Hold(const Lease& lease);
  Status Release(const std::string& lease);

  const std::map<std::string, Lease>& leases() const { return leases_; }
  const std::vector<NodeFacts>& nodes() const { return nodes_; }

 private:
  struct Neighbour {
    std::string lease;
    const Lease* of = nullptr;
    std::vector<std::uint32_t> gpus;
  };
  class TenantFence;

  Placer(std::vector<NodeFacts> nodes, std::unique_ptr<Workload> workload, Boundaries boundaries,
         Method method);
  std::optional<std::vector<Part>> Find(const Request& request);
  Part PartOf(const Choice& choice) const;
  Result<Choice> ChoiceOf(const Part& part) const;
  Error Never(const Request& request) const;
  Error NotNow(const Request& request);
  std::optional<Timestamp> EarliestRelease(const Request& request);

  std::vector<NodeFacts> nodes_;
  std::map<std::string, std::uint32_t> by_name_;
  std::unique_ptr<Workload> workload_;
  Boundaries boundaries_;
  std::unique_ptr<NodeIndex> index_;
  std::map<std::string, Lease> leases_;
  std::vector<std::vector<Neighbour>> neighbours_;  // by node
};

}  // namespace ringfence::place

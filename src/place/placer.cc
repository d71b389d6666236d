#include "place/placer.h"

#include <algorithm>

#include "place/tenant_fence.h"

namespace ringfence::place {
namespace {

using model::IsolationClass;

Error Bad(const std::string& what) { return Error{Code::kInvalidArgument, what}; }

Status CheckFacts(const NodeFacts& node) {
  if (node.gpus.size() != node.kind.gpus) {
    return Bad("node " + node.name + " has " + std::to_string(node.gpus.size()) +
               " GPUs, and its kind " + std::to_string(node.kind.gpus));
  }
  if (node.gpus.size() > kGpusPerNodeMax) {
    return Bad("node " + node.name + " has more than " + std::to_string(kGpusPerNodeMax) + " GPUs");
  }
  for (const GpuFacts& gpu : node.gpus) {
    if (gpu.mig && node.kind.board == nullptr) {
      return Bad("node " + node.name + ": GPU " + gpu.uuid +
                 " is cut by MIG, and its board is not known");
    }
  }
  return {};
}

}  // namespace

const policy::IsolationDemand& Placer::TenantFence::Between(const Lease& other) const {
  const auto found = between_.find(other.tenant);
  if (found != between_.end()) {
    return found->second;
  }
  return between_.emplace(other.tenant, placer_.boundaries_(request_.tenant, other.tenant))
      .first->second;
}

Placer::TenantFence::Closed Placer::TenantFence::NodeClosed(std::uint32_t node) const {
  for (const Neighbour& neighbour : placer_.neighbours_[node]) {
    const Lease& other = *neighbour.of;
    const policy::IsolationDemand& demand = Between(other);
    if (demand.least == IsolationClass::kNode) {
      return {&other, demand.reason};
    }
    if (other.tenant != request_.tenant) {
      if (request_.demand.least == IsolationClass::kNode) {
        return {&other, "this request asks for a node of its own"};
      }
      if (other.least == IsolationClass::kNode) {
        return {&other, "that lease has the node to itself"};
      }
    }
  }
  return {};
}

Placer::TenantFence::Closed Placer::TenantFence::GpuClosed(std::uint32_t node, std::uint32_t gpu,
                                                           const Form& form) const {
  const bool mig = form.kind == Form::Kind::kMig;
  for (const Neighbour& neighbour : placer_.neighbours_[node]) {
    if (std::count(neighbour.gpus.begin(), neighbour.gpus.end(), gpu) == 0) {
      continue;
    }
    // On one GPU either all are MIG instances or all are shares.
    const policy::IsolationDemand& demand = Between(*neighbour.of);
    if (demand.least > (mig ? IsolationClass::kMig : IsolationClass::kTime)) {
      return {neighbour.of, demand.reason};
    }
  }
  return {};
}

bool Placer::TenantFence::NodeOpen(std::uint32_t node) const {
  return !taken.contains(node) && NodeClosed(node).by == nullptr;
}

bool Placer::TenantFence::GpuOpen(std::uint32_t node, std::uint32_t gpu, const Form& form) const {
  return GpuClosed(node, gpu, form).by == nullptr;
}

Placer::Placer(std::vector<NodeFacts> nodes, std::unique_ptr<Workload> workload,
               Boundaries boundaries, Method method)
    : nodes_(std::move(nodes)),
      workload_(std::move(workload)),
      boundaries_(std::move(boundaries)),
      index_(std::make_unique<NodeIndex>(*workload_, method)),
      neighbours_(nodes_.size()) {}

Result<Placer> Placer::Create(std::vector<NodeFacts> nodes, std::vector<TypicalTask> typical,
                              Boundaries boundaries, Method method) {
  std::vector<NodeKind> kinds;
  std::map<NodeKind, std::uint16_t> known;
  for (const NodeFacts& node : nodes) {
    RINGFENCE_TRY(CheckFacts(node));
    if (known.try_emplace(node.kind, kinds.size()).second) {
      kinds.push_back(node.kind);
    }
  }
  if (kinds.size() > kKindsMax || nodes.size() > kNodesMax) {
    return Error{Code::kExhausted, "more nodes, or more kinds of them, than can be placed on"};
  }
  if (typical.empty()) {
    typical.push_back({Demand{.what = What::kWhole, .gpus = 1}, 1});
  }
  for (const TypicalTask& task : typical) {
    RINGFENCE_TRY(CheckDemand(task.demand));
  }
  Placer placer(std::move(nodes), std::make_unique<Workload>(std::move(typical), std::move(kinds)),
                std::move(boundaries), method);
  for (const NodeFacts& node : placer.nodes_) {
    std::vector<GpuCode> codes;
    for (const GpuFacts& gpu : node.gpus) {
      codes.push_back(!gpu.usable ? GpuCode{0} : gpu.mig ? kMigFlag : kIdle);
    }
    const std::uint32_t number = placer.index_->AddNode(known[node.kind], std::move(codes));
    placer.index_->SetInService(number, node.ready);
    if (!placer.by_name_.emplace(node.name, number).second) {
      return Bad("two nodes are called " + node.name);
    }
  }
  return placer;
}

Part Placer::PartOf(const Choice& choice) const {
  const NodeFacts& node = nodes_[choice.node];
  Part part{node.name,        choice.form,      {}, {}, choice.start, choice.reshapes,
            choice.cpu_milli, choice.memory_mib};
  part.gpus.assign(choice.gpus.begin(), choice.gpus.begin() + choice.form.gpus);
  if (choice.form.kind == Form::Kind::kMig) {
    part.profile = node.kind.board->profiles[choice.form.profile].name;
  }
  return part;
}

std::optional<std::vector<Part>> Placer::Find(const Request& request) {
  const std::uint32_t demand = index_->DemandNumber(request.demand);
  TenantFence fence(*this, request);
  std::vector<Part> parts;
  while (parts.size() < request.nodes) {
    const auto choice = index_->Choose(demand, &fence);
    if (!choice) {
      return std::nullopt;
    }
    fence.taken.insert(choice->node);
    parts.push_back(PartOf(*choice));
  }
  return parts;
}

Result<std::vector<Part>> Placer::Decide(const Request& request) {
  RINGFENCE_TRY(CheckDemand(request.demand));
  if (request.nodes < 1 || request.nodes > kNodesPerRequestMax) {
    return Error{Code::kInvalidArgument,
                 "nodes: from 1 to " + std::to_string(kNodesPerRequestMax),
                 {},
                 "nodes"};
  }
  if (nodes_.empty()) {
    return Error{Code::kUnavailable, "no node has joined"};
  }
  std::size_t could = 0;
  for (const NodeFacts& node : nodes_) {
    could += FormsOn(request.demand, node.kind).empty() ? 0 : 1;
  }
  if (could < request.nodes) {
    return Never(request);
  }
  if (auto parts = Find(request)) {
    return std::move(*parts);
  }
  return NotNow(request);
}

// A part as the index knows it, if it is there to be taken.
Result<Choice> Placer::ChoiceOf(const Part& part) const {
  const auto node = by_name_.find(part.node);
  if (node == by_name_.end()) {
    return Error{Code::kNotFound, "no node " + part.node};
  }
  const NodeKind& kind = nodes_[node->second].kind;
  Choice choice{node->second,   part.form,      {}, part.start, part.reshapes,
                part.cpu_milli, part.memory_mib};
  const Error taken{Code::kConflict, "node " + part.node + ": what is to be held is not free"};
  if (part.form.gpus != part.gpus.size() || part.gpus.size() > kGpusPerNodeMax ||
      part.cpu_milli > index_->FreeCpu(node->second) ||
      part.memory_mib > index_->FreeMemory(node->second)) {
    return taken;
  }
  if (part.form.kind == Form::Kind::kMig &&
      (kind.board == nullptr || part.form.profile >= kind.board->profiles.size())) {
    return Bad("node " + part.node + " has no such MIG profile");
  }
  const auto& starts = StartsOf(kind, part.form);
  for (std::size_t i = 0; i < part.gpus.size(); ++i) {
    const bool twice = std::count(part.gpus.begin(), part.gpus.end(), part.gpus[i]) > 1;
    if (twice || part.gpus[i] >= kind.gpus ||
        std::find(starts.begin(), starts.end(), part.start) == starts.end() ||
        !Fits(kind, part.form, index_->Codes(node->second)[part.gpus[i]], part.start, true)) {
      return taken;
    }
    choice.gpus[i] = static_cast<std::uint8_t>(part.gpus[i]);
  }
  return choice;
}

Status Placer::Hold(const Lease& lease) {
  const auto [held, added] = leases_.try_emplace(lease.id, lease);
  if (!added) {
    return Error{Code::kConflict, "lease " + lease.id + " holds something already"};
  }
  std::vector<Choice> done;
  for (const Part& part : lease.parts) {
    const auto choice = ChoiceOf(part);
    if (!choice.has_value()) {
      for (const Choice& back : done) {
        index_->Release(back);
      }
      leases_.erase(held);
      return choice.error();
    }
    index_->Apply(*choice);
    done.push_back(*choice);
  }
  for (std::size_t i = 0; i < done.size(); ++i) {
    neighbours_[done[i].node].push_back({lease.id, &held->second, lease.parts[i].gpus});
  }
  return {};
}

Status Placer::Release(const std::string& id) {
  const auto held = leases_.find(id);
  if (held == leases_.end()) {
    return Error{Code::kNotFound, "no lease " + id + " holds anything"};
  }
  for (const Part& part : held->second.parts) {
    const std::uint32_t node = by_name_.at(part.node);
    Choice choice{node, part.form, {}, part.start, false, part.cpu_milli, part.memory_mib};
    std::copy(part.gpus.begin(), part.gpus.end(), choice.gpus.begin());
    index_->Release(choice);
    std::erase_if(neighbours_[node],
                  [&](const Neighbour& neighbour) { return neighbour.lease == id; });
  }
  leases_.erase(held);
  return {};
}

}  // namespace ringfence::place

#include "place/index.h"

#include <algorithm>

#include "base/check.h"

namespace ringfence::place {
namespace {

constexpr int kRandomTries = 64;  // then all nodes are looked at
constexpr std::size_t kSweptAtOnce = 8;
constexpr std::size_t kPoppedAtOnce = 16;
constexpr std::size_t kEffortHosted = 8;  // of a demand that a state can host; of another: 1
constexpr std::size_t kEffortAtOnce = 384;
constexpr std::size_t kPendingMax = 64;

std::size_t SortIndex(const Form& form) {
  return static_cast<std::size_t>(__builtin_ctz(SortOf(form)));
}

}  // namespace

NodeIndex::NodeIndex(Workload& workload, Method method, std::uint64_t seed)
    : workload_(workload), method_(method), losses_(workload, method), dice_(seed) {}

std::uint32_t NodeIndex::AddNode(std::uint16_t kind) {
  return AddNode(kind, std::vector<GpuCode>(kinds()[kind].gpus, kIdle));
}

std::uint32_t NodeIndex::AddNode(std::uint16_t kind, std::vector<GpuCode> codes) {
  RINGFENCE_CHECK(nodes_.size() < kNodesMax && kind < kinds().size() &&
                  codes.size() == kinds()[kind].gpus && codes.size() <= kGpusPerNodeMax);
  const auto number = static_cast<std::uint32_t>(nodes_.size());
  Node& node = nodes_.emplace_back();
  node.kind = kind;
  node.cpu_milli = kinds()[kind].cpu_milli;
  node.memory_mib = kinds()[kind].memory_mib;
  std::copy(codes.begin(), codes.end(), node.codes.begin());
  Enter(number);
  return number;
}

void NodeIndex::SetInService(std::uint32_t node, bool in_service) {
  if (nodes_[node].in_service == in_service) {
    return;
  }
  if (!in_service) {
    Leave(node);
  }
  nodes_[node].in_service = in_service;
  if (in_service) {
    Enter(node);
  }
}

NodeState NodeIndex::StateOf(const Node& node) const {
  NodeState state;
  state.kind = node.kind;
  state.gpus = static_cast<std::uint8_t>(kinds()[node.kind].gpus);
  state.cpu_milli = node.cpu_milli;
  state.memory_mib = node.memory_mib;
  state.codes = node.codes;
  if (method_ == Method::kClustering) {
    for (std::size_t i = 1; i < node.sorts.size(); ++i) {  // 0 is no GPU
      state.sorts = static_cast<std::uint8_t>(state.sorts | (node.sorts[i] > 0 ? 1U << i : 0U));
    }
  }
  state.Sort();
  return state;
}

void NodeIndex::Enter(std::uint32_t node) {
  const NodeState state = StateOf(nodes_[node]);
  const auto [found, added] = by_state_.try_emplace(state, 0);
  if (added) {
    if (free_states_.empty()) {
      free_states_.push_back(static_cast<std::uint32_t>(states_.size()));
      states_.emplace_back();
      generations_.push_back(0);
    }
    found->second = free_states_.back();
    free_states_.pop_back();
    ++live_states_;
    State& fresh = states_[found->second];
    fresh.state = state;
    fresh.measure = losses_.MeasureOf(state);
    pending_.push_back({found->second, generations_[found->second], 0, {}});
    LearnSome();
    SweepSome();
  }
  states_[found->second].nodes.insert(node);
  nodes_[node].state = found->second;
}

void NodeIndex::Leave(std::uint32_t node) {
  State& state = states_[nodes_[node].state];
  state.nodes.erase(node);
  if (state.nodes.empty()) {  // heaps still name it: the generation tells
    by_state_.erase(state.state);
    ++generations_[nodes_[node].state];
    free_states_.push_back(nodes_[node].state);
    --live_states_;
  }
}

bool NodeIndex::Learn(std::uint32_t number, Known& known) {
  const State& state = states_[number];
  Option best;
  if (!losses_.Best(state.state, state.measure, known.forms, best)) {
    return false;
  }
  known.heap.push_back({best.loss, number, generations_[number]});
  std::push_heap(known.heap.begin(), known.heap.end());
  if (known.heap.size() > 2 * live_states_ + 64) {
    DropStale(known);
  }
  return true;
}

// An emptier node can host nearly everything, and most others next to nothing: what a change leaves
// to do is spread over those that follow.
void NodeIndex::LearnSome() {
  std::size_t effort = kEffortAtOnce;
  while (!pending_.empty() && (effort > 0 || pending_.size() > kPendingMax)) {
    Pending& first = pending_.front();
    if (first.next >= known_.size() || generations_[first.state] != first.generation) {
      pending_.pop_front();
      continue;
    }
    const std::size_t demand = first.next++;
    if (!first.learnt[demand]) {
      const std::size_t spent = Learn(first.state, known_[demand]) ? kEffortHosted : 1;
      effort -= std::min(effort, spent);
    }
  }
}

void NodeIndex::CatchUp(std::uint32_t demand) {
  for (Pending& one : pending_) {
    if (demand >= one.next && !one.learnt[demand] && generations_[one.state] == one.generation) {
      Learn(one.state, known_[demand]);
    }
    one.learnt.set(demand);
  }
}

bool NodeIndex::Stale(const Entry& entry) const {
  return generations_[entry.state] != entry.generation;
}

void NodeIndex::DropStale(Known& known) {
  std::erase_if(known.heap, [this](const Entry& entry) { return Stale(entry); });
  std::make_heap(known.heap.begin(), known.heap.end());
}

// States come and go at the top of every heap. What is gone is taken away a little with each
// change, so that a demand that is rarely asked does not find all of it at once.
void NodeIndex::SweepSome() {
  std::size_t popped = 0;
  for (std::size_t i = 0; i < std::min(kSweptAtOnce, known_.size()) && popped < kPoppedAtOnce;
       ++i) {
    swept_ = swept_ + 1 < known_.size() ? swept_ + 1 : 0;
    std::vector<Entry>& heap = known_[swept_].heap;
    while (popped < kPoppedAtOnce && !heap.empty() && Stale(heap.front())) {
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
      ++popped;
    }
  }
}

std::uint32_t NodeIndex::DemandNumber(const Demand& demand) {
  const auto [found, added] = by_demand_.try_emplace(demand, 0);
  if (!added) {
    return found->second;
  }
  if (known_.size() < kDemandsMax) {
    found->second = static_cast<std::uint32_t>(known_.size());
    known_.emplace_back();
  } else {
    const auto oldest =
        std::min_element(known_.begin(), known_.end(),
                         [](const Known& a, const Known& b) { return a.used < b.used; });
    found->second = static_cast<std::uint32_t>(oldest - known_.begin());
    by_demand_.erase(oldest->forms.demand);
  }
  Known& known = known_[found->second];
  known = Known{{demand, {}}, {}, ++clock_};
  for (const NodeKind& kind : kinds()) {
    known.forms.on.push_back(FormsOn(demand, kind));
  }
  for (const auto& [state, number] : by_state_) {
    Learn(number, known);
  }
  for (Pending& one : pending_) {
    one.learnt.set(found->second);
  }
  return found->second;
}

std::optional<Choice> NodeIndex::Choose(std::uint32_t demand, const Fence* fence) {
  Known& known = known_[demand];
  known.used = ++clock_;
  if (method_ == Method::kFirstFit) {
    return FirstFit(known, fence);
  }
  if (method_ == Method::kRandom) {
    return AtRandom(known, fence);
  }
  CatchUp(demand);
  std::vector<Entry> passed;  // behind a fence here; put back below
  std::optional<Choice> choice;
  while (!known.heap.empty() && !choice) {
    const Entry top = known.heap.front();
    if (!Stale(top)) {
      choice = Take(known, states_[top.state], fence);
      if (choice) {
        break;
      }
      passed.push_back(top);
    }
    std::pop_heap(known.heap.begin(), known.heap.end());
    known.heap.pop_back();
  }
  for (const Entry& entry : passed) {
    known.heap.push_back(entry);
    std::push_heap(known.heap.begin(), known.heap.end());
  }
  return choice;
}

std::optional<Choice> NodeIndex::Take(const Known& known, const State& state, const Fence* fence) {
  if (fence == nullptr) {
    Option best;
    RINGFENCE_CHECK(losses_.Best(state.state, state.measure, known.forms, best));
    return OnNode(known, best, *state.nodes.begin(), nullptr);
  }
  for (const Option& option : losses_.All(state.state, state.measure, known.forms)) {
    for (const std::uint32_t node : state.nodes) {
      if (fence->NodeOpen(node)) {
        if (auto choice = OnNode(known, option, node, fence)) {
          return choice;
        }
      }
    }
  }
  return std::nullopt;
}

std::optional<Choice> NodeIndex::OnNode(const Known& known, const Option& option,
                                        std::uint32_t number, const Fence* fence) const {
  const Node& node = nodes_[number];
  const NodeKind& kind = kinds()[node.kind];
  Choice choice{number,
                option.form,
                {},
                option.start,
                false,
                known.forms.demand.cpu_milli,
                known.forms.demand.memory_mib};
  std::size_t found = 0;
  const bool whole = option.form.kind == Form::Kind::kWhole;
  // Whole GPUs that are not cut first: they need no reshaping.
  for (const bool cut : {false, true}) {
    for (std::uint32_t gpu = 0; gpu < kind.gpus && found < option.form.gpus; ++gpu) {
      const GpuCode code = node.codes[gpu];
      const bool right =
          whole ? IsMig(code) == cut && Fits(kind, option.form, code, 0, known.forms.demand.reshape)
                : !cut && code == option.code;
      if (right && (fence == nullptr || fence->GpuOpen(number, gpu, option.form))) {
        choice.gpus[found++] = static_cast<std::uint8_t>(gpu);
        choice.reshapes = choice.reshapes || IsMig(code) != (option.form.kind == Form::Kind::kMig);
      }
    }
  }
  if (found < option.form.gpus) {
    return std::nullopt;
  }
  return choice;
}

// The first GPU that takes it, in the node's own order.
std::optional<Choice> NodeIndex::InOrder(const Known& known, std::uint32_t number,
                                         const Fence* fence) const {
  const Node& node = nodes_[number];
  const Demand& demand = known.forms.demand;
  if (!node.in_service || demand.cpu_milli > node.cpu_milli ||
      demand.memory_mib > node.memory_mib || (fence != nullptr && !fence->NodeOpen(number))) {
    return std::nullopt;
  }
  const NodeKind& kind = kinds()[node.kind];
  for (const Form& form : known.forms.on[node.kind]) {
    if (form.gpus != 1) {
      if (auto choice = OnNode(known, Option{0, form, kIdle, 0}, number, fence)) {
        return choice;
      }
      continue;
    }
    for (std::uint32_t gpu = 0; gpu < kind.gpus; ++gpu) {
      for (const std::uint32_t start : StartsOf(kind, form)) {
        const GpuCode code = node.codes[gpu];
        if (Fits(kind, form, code, start, demand.reshape) &&
            (fence == nullptr || fence->GpuOpen(number, gpu, form))) {
          const bool reshapes = IsMig(code) != (form.kind == Form::Kind::kMig);
          return Choice{number,
                        form,
                        {static_cast<std::uint8_t>(gpu)},
                        start,
                        reshapes,
                        demand.cpu_milli,
                        demand.memory_mib};
        }
      }
    }
  }
  return std::nullopt;
}

std::optional<Choice> NodeIndex::FirstFit(const Known& known, const Fence* fence) const {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (auto choice = InOrder(known, node, fence)) {
      return choice;
    }
  }
  return std::nullopt;
}

std::optional<Choice> NodeIndex::AtRandom(const Known& known, const Fence* fence) {
  if (nodes_.empty()) {
    return std::nullopt;
  }
  const auto any = [&](std::size_t below) { return dice_() % below; };
  for (int i = 0; i < kRandomTries; ++i) {
    if (auto choice = InOrder(known, static_cast<std::uint32_t>(any(nodes_.size())), fence)) {
      return choice;
    }
  }
  std::vector<std::uint32_t> fit;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (InOrder(known, node, fence)) {
      fit.push_back(node);
    }
  }
  return fit.empty() ? std::nullopt : InOrder(known, fit[any(fit.size())], fence);
}

void NodeIndex::Change(const Choice& choice, bool take) {
  Node& node = nodes_[choice.node];
  const NodeKind& kind = kinds()[node.kind];
  if (node.in_service) {
    Leave(choice.node);
  }
  for (std::size_t i = 0; i < choice.form.gpus; ++i) {
    GpuCode& code = node.codes[choice.gpus[i]];
    RINGFENCE_CHECK(!take || Fits(kind, choice.form, code, choice.start, true));
    code = take ? place::Take(kind, choice.form, code, choice.start)
                : GiveBack(kind, choice.form, code, choice.start);
  }
  std::uint16_t& sort = node.sorts[SortIndex(choice.form)];
  if (take) {
    RINGFENCE_CHECK(node.cpu_milli >= choice.cpu_milli && node.memory_mib >= choice.memory_mib);
    node.cpu_milli -= choice.cpu_milli;
    node.memory_mib -= choice.memory_mib;
    ++sort;
  } else {
    node.cpu_milli += choice.cpu_milli;
    node.memory_mib += choice.memory_mib;
    RINGFENCE_CHECK(node.cpu_milli <= kind.cpu_milli && node.memory_mib <= kind.memory_mib);
    --sort;
  }
  if (node.in_service) {
    Enter(choice.node);
  }
}

void NodeIndex::Apply(const Choice& choice) { Change(choice, true); }
void NodeIndex::Release(const Choice& choice) { Change(choice, false); }

}  // namespace ringfence::place

#include "cedar/engine.h"

#include <algorithm>

#include "cedar/engine_data.h"

namespace ringfence::cedar {
namespace {

bool Holds(const Machine& machine, const ScopeTest& test, std::uint32_t entity) {
  using Kind = ScopeClause::Kind;
  switch (test.kind) {
    case Kind::kAny:
      return true;
    case Kind::kEqual:
      return entity == test.entity;
    case Kind::kIn:
      return machine.IsIn(entity, test.entity);
    case Kind::kIs:
      return machine.TypeOf(entity) == test.type;
    case Kind::kIsIn:
      return machine.TypeOf(entity) == test.type && machine.IsIn(entity, test.entity);
  }
  return false;
}

class Decider {
 public:
  Decider(const Engine::Data& engine, Engine::Scratch::Data& scratch, const Request& request)
      : engine_(engine), scratch_(scratch), machine_(engine, scratch, request) {
    const CompactEntity* action = machine_.Find(machine_.action());
    action_in_others_ = action != nullptr && action->ancestor_count > 0;
  }

  // Most of the time goes into waiting for memory, so each step has fetched what the next reads.
  void Run() {
    EachBucket([](const Buckets& buckets, std::uint32_t key) { buckets.WarmBegin(key); });
    EachBucket([](const Buckets& buckets, std::uint32_t key) { buckets.WarmList(key); });
    scratch_.pending.clear();
    TryAll(engine_.index[kByNothing].At(0));
    EachBucket([this](const Buckets& buckets, std::uint32_t key) { TryAll(buckets.At(key)); });
    std::size_t kept = 0;
    for (const std::uint32_t index : scratch_.pending) {
      if (ScopeHolds(index)) {
        scratch_.pending[kept++] = index;
      }
    }
    for (std::size_t i = 0; i < kept; ++i) {
      Evaluate(scratch_.pending[i]);
    }
  }

 private:
  // The buckets of principal, resource and action, of all that they are in, and of their types.
  template <typename Visit>
  void EachBucket(const Visit& visit) const {
    Around(machine_.principal(), engine_.index[kByPrincipal], engine_.index[kByPrincipalType],
           visit);
    Around(machine_.resource(), engine_.index[kByResource], engine_.index[kByResourceType], visit);
    Around(machine_.action(), engine_.index[kByAction], Buckets::None(), visit);
  }

  template <typename Visit>
  void Around(std::uint32_t entity, const Buckets& buckets, const Buckets& types,
              const Visit& visit) const {
    if (!buckets.candidates.empty()) {
      visit(buckets, entity);
      if (const CompactEntity* known = machine_.Find(entity)) {
        for (std::uint32_t i = 0; i < known->ancestor_count; ++i) {
          visit(buckets, known->ancestors[i]);
        }
      }
    }
    if (!types.candidates.empty()) {
      visit(types, machine_.TypeOf(entity));
    }
  }

  bool ActionHolds(std::uint32_t wanted) const {
    if (wanted == kNone) {
      return true;
    }
    const std::uint32_t action = wanted & ~Candidate::kBelow;
    return action == machine_.action() || (action_in_others_ && (wanted & Candidate::kBelow) != 0 &&
                                           machine_.IsIn(machine_.action(), action));
  }

  void TryAll(std::span<const Candidate> candidates) {
    for (const Candidate& candidate : candidates) {
      if (!ActionHolds(candidate.action)) {
        continue;
      }
      if ((candidate.policy & Candidate::kFan) != 0) {
        TryFan(engine_.fans[candidate.policy & ~Candidate::kFan]);
      } else {
        Try(candidate.policy);
      }
    }
  }

  void TryFan(const Fan& fan) {
    const Compact value = machine_.Of(fan.node);
    const Spoke* begin = engine_.spokes.data() + fan.first;
    const Spoke* end = begin + fan.count;
    const bool fails = value.is(Compact::Kind::kError) ||
                       (fan.op != Op::kEqual && !value.is(Compact::Kind::kLong));
    if (!fails) {
      const Spoke* from = std::lower_bound(begin, end, value, [](const Spoke& a, const Compact& b) {
        return Compare(a.constant, b) < 0;
      });
      const Spoke* to = std::upper_bound(from, end, value, [](const Compact& a, const Spoke& b) {
        return Compare(a, b.constant) < 0;
      });
      begin = fan.op == Op::kLess                                ? to
              : fan.op == Op::kLessEqual || fan.op == Op::kEqual ? from
                                                                 : begin;
      end = fan.op == Op::kGreater                                ? from
            : fan.op == Op::kGreaterEqual || fan.op == Op::kEqual ? to
                                                                  : end;
    }
    for (; begin != end; ++begin) {
      Try(begin->policy);
    }
  }

  void Try(std::uint32_t index) {
    __builtin_prefetch(&engine_.policies[index]);
    scratch_.pending.push_back(index);
  }

  bool ScopeHolds(std::uint32_t index) {
    const CompiledPolicy& policy = engine_.policies[index];
    if (!Holds(machine_, policy.principal, machine_.principal()) ||
        !Holds(machine_, policy.resource, machine_.resource())) {
      return false;
    }
    if (policy.repeated) {
      if (scratch_.seen[index] == scratch_.request) {
        return false;
      }
      scratch_.seen[index] = scratch_.request;
    }
    if (policy.condition != kNone) {  // its parts stand before it
      const Node* node = &engine_.nodes[policy.condition];
      __builtin_prefetch(node);
      if (policy.condition >= 4) {
        __builtin_prefetch(node - 2);
        __builtin_prefetch(node - 4);
      }
    }
    return true;
  }

  void Evaluate(std::uint32_t index) {
    const CompiledPolicy& policy = engine_.policies[index];
    if (policy.condition != kNone) {
      const Compact value = machine_.Of(policy.condition);
      if (!value.is(Compact::Kind::kBool)) {
        scratch_.errors.push_back(policy.number);
        return;
      }
      if (value.number == 0) {
        return;
      }
    }
    (policy.effect == Effect::kPermit ? scratch_.permits : scratch_.forbids)
        .push_back(policy.number);
  }

  const Engine::Data& engine_;
  Engine::Scratch::Data& scratch_;
  Machine machine_;
  bool action_in_others_ = false;
};

}  // namespace

EntityStore::EntityStore(std::unique_ptr<Data> data) : data_(std::move(data)) {}
EntityStore::~EntityStore() = default;

std::shared_ptr<const EntityStore> EntityStore::Make(Entities entities) {
  auto data = std::make_unique<Data>();
  data->plain = std::move(entities);
  const std::vector<Entity>& all = data->plain.all();
  data->table.Reserve(all.size() + all.size() / 8);
  Compactor::NameMap names;
  Compactor compactor(data->table, data->bump, Compactor::Text::kCopied, &names);
  for (const Entity& entity : all) {
    (void)compactor.Entity(entity.uid);  // so that those which exist have the lowest numbers
  }
  std::vector<CompactEntity> made(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Entity& entity = all[i];
    CompactEntity& out = made[i];
    out.exists = true;
    out.attributes = compactor.Members(entity.attributes);
    out.attribute_count = static_cast<std::uint32_t>(entity.attributes.size());
    out.tags = compactor.Members(entity.tags);
    out.tag_count = static_cast<std::uint32_t>(entity.tags.size());
    auto* ancestors = data->bump.Array<std::uint32_t>(entity.ancestors.size());
    for (std::size_t k = 0; k < entity.ancestors.size(); ++k) {
      ancestors[k] = compactor.Entity(entity.ancestors[k]);
    }
    std::sort(ancestors, ancestors + entity.ancestors.size());
    out.ancestors = ancestors;
    out.ancestor_count = static_cast<std::uint32_t>(entity.ancestors.size());
    out.type = data->table.TypeOf(static_cast<std::uint32_t>(i));
  }
  data->entities = std::move(made);
  return std::shared_ptr<const EntityStore>(new EntityStore(std::move(data)));
}

// A lookup waits for memory several times in a row; the three of a request can wait together.
void EntityStore::Data::Warm(const std::array<const EntityUid*, 3>& uids) const {
  std::array<std::uint64_t, 3> hashes;
  std::array<std::uint32_t, 3> numbers;
  for (std::size_t i = 0; i < uids.size(); ++i) {
    hashes[i] = table.Warm(table.FindType(uids[i]->type), uids[i]->id);
  }
  for (std::size_t i = 0; i < uids.size(); ++i) {
    numbers[i] = table.Guess(hashes[i]);
    if (numbers[i] < entities.size()) {
      __builtin_prefetch(&entities[numbers[i]]);
    }
  }
  for (const std::uint32_t number : numbers) {
    if (number < entities.size()) {
      __builtin_prefetch(table.IdOf(number).data());
      __builtin_prefetch(entities[number].ancestors);
      __builtin_prefetch(entities[number].attributes);
    }
  }
}

const Entities& EntityStore::entities() const { return data_->plain; }

std::size_t EntityStore::bytes() const {
  return data_->bump.bytes() + data_->table.bytes() +
         data_->entities.capacity() * sizeof(CompactEntity);
}

Engine::Scratch::Scratch() : data_(std::make_unique<Data>()) {}
Engine::Scratch::~Scratch() = default;
Engine::Scratch::Scratch(Scratch&&) noexcept = default;
Engine::Scratch& Engine::Scratch::operator=(Scratch&&) noexcept = default;

Engine::Engine(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Engine::~Engine() = default;

std::shared_ptr<const Engine> Engine::Make(PolicySet policies,
                                           std::shared_ptr<const EntityStore> store) {
  auto data = std::make_unique<Data>(std::move(store));
  data->set = std::move(policies);
  Compile(*data);
  return std::shared_ptr<const Engine>(new Engine(std::move(data)));
}

const std::vector<Policy>& Engine::policies() const { return data_->set.policies(); }
const EntityStore& Engine::store() const { return *data_->store; }

std::size_t Engine::bytes() const {
  const auto of = [](const auto& vector) { return vector.capacity() * sizeof(vector[0]); };
  std::size_t out = data_->bump.bytes() + data_->table.bytes() + of(data_->nodes) +
                    of(data_->args) + of(data_->policies) + of(data_->names) + of(data_->patterns) +
                    of(data_->fans) + of(data_->spokes);
  for (const Buckets& buckets : data_->index) {
    out += of(buckets.begin) + of(buckets.candidates);
  }
  return out;
}

Engine::Outcome Engine::Decide(const Request& request, Scratch& scratch) const {
  Scratch::Data& work = scratch.data();
  if (work.generation != data_->generation) {
    work.generation = data_->generation;
    work.table = NumberTable(&data_->table);
    work.seen.assign(data_->policies.size(), 0);
    work.memo.assign(data_->memos, Compact());
    work.memo_request.assign(data_->memos, 0);
    work.request = 0;
  }
  work.table.Clear();
  work.bump.Reset();
  work.permits.clear();
  work.forbids.clear();
  work.errors.clear();
  ++work.request;
  data_->store->data().Warm({&request.principal, &request.action, &request.resource});
  Decider(*data_, work, request).Run();
  std::sort(work.permits.begin(), work.permits.end());
  std::sort(work.forbids.begin(), work.forbids.end());
  std::sort(work.errors.begin(), work.errors.end());
  Outcome out;
  out.errors = work.errors;
  if (!work.forbids.empty()) {
    out.reasons = work.forbids;
  } else if (!work.permits.empty()) {
    out.decision = Decision::kAllow;
    out.reasons = work.permits;
  }
  return out;
}

Response Engine::Answer(const Request& request, Scratch& scratch) const {
  const Outcome outcome = Decide(request, scratch);
  Response out;
  out.decision = outcome.decision;
  for (const std::uint32_t policy : outcome.reasons) {
    out.reasons.push_back(policies()[policy].id);
  }
  for (const std::uint32_t number : outcome.errors) {
    const Policy& policy = policies()[number];
    const auto again = Evaluate(*policy.body->condition, request, store().entities(), policy.slots);
    out.errors.push_back(
        {policy.id, again.has_value() ? "type error: expected bool" : again.error().message});
  }
  return out;
}

}  // namespace ringfence::cedar

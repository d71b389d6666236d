#pragma once

// The compiled form of policies. For the engine's own files only.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cedar/ast.h"
#include "cedar/compiled.h"
#include "cedar/engine.h"
#include "cedar/extension.h"

namespace ringfence::cedar {

// Half a cache line: most of the time goes into fetching them.
struct Node {
  Op op = Op::kLiteral;
  Var var = Var::kPrincipal;
  // With one or two arguments: these, the second kNone if there is none. Of kIf, kSet, kRecord and
  // kCall: where they begin in Engine::Data::args, and how many there are.
  std::uint32_t first = kNone;
  std::uint32_t second = kNone;
  std::uint32_t memo = kNone;  // where its value is kept during a request, if it is shared
  // A literal's value, kError where it is certain to fail. Else what belongs to the operator: an
  // attribute's name; the number of a type, function or pattern; where a record's or a path's names
  // begin in Engine::Data::names, with `size` of them.
  Compact value = {};
};
static_assert(sizeof(Node) == 32);

// One part of a scope, as numbers.
struct ScopeTest {
  ScopeClause::Kind kind = ScopeClause::Kind::kAny;
  std::uint32_t entity = kNone;
  std::uint32_t type = kNone;
};

// The scope's tests; where it has none, those that its conditions begin with.
struct CompiledPolicy {
  ScopeTest principal;
  ScopeTest resource;
  Effect effect = Effect::kPermit;
  bool repeated = false;            // the index has it more than once
  std::uint32_t number = 0;         // its place in the policy set
  std::uint32_t condition = kNone;  // kNone: the scope is all there is
};

// What the index holds: a policy, and the action that its scope asks for.
struct Candidate {
  static constexpr std::uint32_t kBelow = 1U << 31U;  // the action or one in it
  static constexpr std::uint32_t kFan = 1U << 31U;
  std::uint32_t action = kNone;  // kNone: any
  std::uint32_t policy = 0;      // with kFan: the number of a fan
};

// Policies whose conditions begin by comparing the same thing with constants: it is worked out
// once, and only those whose comparison holds are tried. When it fails, all of them are.
struct Fan {
  std::uint32_t node = kNone;
  Op op = Op::kEqual;
  std::uint32_t first = 0;  // into Engine::Data::spokes, by ascending constant
  std::uint32_t count = 0;
};
struct Spoke {
  Compact constant;
  std::uint32_t policy = 0;
};

// Policies by what their scope asks for, as one array with an entry for each key.
struct Buckets {
  std::vector<std::uint32_t> begin;  // by key; one more than there are keys
  std::vector<Candidate> candidates;
  std::span<const Candidate> At(std::uint32_t key) const {
    return key + 1 < begin.size()
               ? std::span(candidates).subspan(begin[key], begin[key + 1] - begin[key])
               : std::span<const Candidate>();
  }
  void WarmBegin(std::uint32_t key) const {
    if (key < begin.size()) {
      __builtin_prefetch(&begin[key]);
    }
  }
  void WarmList(std::uint32_t key) const {
    if (key < begin.size()) {
      __builtin_prefetch(candidates.data() + begin[key]);
    }
  }
  static const Buckets& None() {
    static const Buckets kNoBuckets;
    return kNoBuckets;
  }
};

// What a policy may be filed under.
enum Filing : std::uint8_t {
  kByPrincipal,
  kByPrincipalType,
  kByResource,
  kByResourceType,
  kByAction,
  kByNothing,
  kFilings,
};

struct EntityStore::Data {
  Entities plain;
  Bump bump;
  NumberTable table;
  std::vector<CompactEntity> entities;  // by number

  // Has what the engine will read of these fetched; changes nothing.
  void Warm(const std::array<const EntityUid*, 3>& uids) const;
};

struct Engine::Data {
  explicit Data(std::shared_ptr<const EntityStore> entities)
      : store(std::move(entities)), table(&store->data().table) {}

  std::shared_ptr<const EntityStore> store;
  PolicySet set;
  std::uint64_t generation = 0;  // no two engines have the same
  Bump bump;
  NumberTable table;  // entities and types that only policies name
  std::vector<Node> nodes;
  std::vector<std::uint32_t> args;
  std::vector<std::string_view> names;
  std::vector<const Pattern*> patterns;  // they live in `set`
  std::vector<CompiledPolicy> policies;  // in the order of the index
  std::array<Buckets, kFilings> index;   // kByNothing: all under key 0
  std::vector<Fan> fans;
  std::vector<Spoke> spokes;
  std::uint32_t memos = 0;  // how many nodes are kept during a request
};

struct Engine::Scratch::Data {
  std::uint64_t generation = 0;
  NumberTable table;  // entities that only this request names
  Bump bump;
  std::vector<std::uint32_t> pending;  // policies that may apply
  std::vector<std::uint32_t> permits;
  std::vector<std::uint32_t> forbids;
  std::vector<std::uint32_t> errors;
  std::vector<std::uint64_t> seen;  // by policy: the last request that looked at it
  std::vector<Compact> memo;        // of shared nodes
  std::vector<std::uint64_t> memo_request;
  std::uint64_t request = 0;
};

// Evaluates the nodes of one engine for one request.
class Machine {
 public:
  Machine(const Engine::Data& engine, Engine::Scratch::Data& scratch, const Request& request)
      : engine_(engine),
        store_(engine.store->data()),
        scratch_(scratch),
        request_(request),
        principal_(Number(request.principal)),
        action_(Number(request.action)),
        resource_(Number(request.resource)) {}

  Compact Of(std::uint32_t number) {
    const Node& node = engine_.nodes[number];
    if (node.op == Op::kLiteral) {
      return node.value;
    }
    if (node.memo == kNone) {
      return Compute(node);
    }
    if (scratch_.memo_request[node.memo] != scratch_.request) {
      const Compact value = Compute(node);
      scratch_.memo[node.memo] = value;
      scratch_.memo_request[node.memo] = scratch_.request;
    }
    return scratch_.memo[node.memo];
  }
  bool IsIn(std::uint32_t below, std::uint32_t above) const;
  std::uint32_t TypeOf(std::uint32_t entity) const { return scratch_.table.TypeOf(entity); }
  const CompactEntity* Find(std::uint32_t entity) const {
    return entity < store_.entities.size() && store_.entities[entity].exists
               ? &store_.entities[entity]
               : nullptr;
  }
  std::uint32_t principal() const { return principal_; }
  std::uint32_t action() const { return action_; }
  std::uint32_t resource() const { return resource_; }

 private:
  Compactor Borrowing() {
    return {scratch_.table, scratch_.bump, Compactor::Text::kBorrowed, nullptr};
  }
  std::uint32_t Number(const EntityUid& uid) { return Borrowing().Entity(uid); }
  Compact Compute(const Node& node);
  Compact Listed(const Node& node, std::uint32_t index) {
    return Of(engine_.args[node.first + index]);
  }
  Compact Context();
  Compact Logical(const Node& node);
  Compact Attribute(const Node& node);
  Compact ContextAttribute(const Node& node);
  Compact HasPath(const Node& node);
  Compact Is(const Node& node);
  Compact In(const Compact& left, const Compact& right) const;
  Compact Binary(const Node& node);
  Compact Set(const Node& node);
  Compact Record(const Node& node);
  Compact Call(const Node& node);

  const Engine::Data& engine_;
  const EntityStore::Data& store_;
  Engine::Scratch::Data& scratch_;
  const Request& request_;
  std::uint32_t principal_;
  std::uint32_t action_;
  std::uint32_t resource_;
  Compact context_ = {};  // kError: not made yet
};

// Fills in everything but the store. The index too.
void Compile(Engine::Data& engine);

}  // namespace ringfence::cedar

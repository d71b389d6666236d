#pragma once

// The compiled form of policies. For the engine's own files only.

#include <cstdint>
#include <string_view>
#include <vector>

#include "cedar/ast.h"
#include "cedar/compiled.h"
#include "cedar/engine.h"
#include "cedar/extension.h"

namespace ringfence::cedar {

struct Node {
  Op op = Op::kLiteral;
  Var var = Var::kPrincipal;
  std::uint32_t args = 0;  // where its arguments' numbers begin
  std::uint32_t count = 0;
  std::uint32_t type = 0;      // of kIs
  std::uint32_t function = 0;  // of kCall: place in ExtensionFunctions()
  Compact value = {};          // of kLiteral; an error that is certain is a literal too
  std::string_view text = {};
  const Pattern* pattern = nullptr;
  const std::string_view* keys = nullptr;  // of kRecord, sorted as members are; of kHasPath
  std::uint32_t key_count = 0;             // of kHasPath
};

// One part of a scope, as numbers.
struct ScopeTest {
  ScopeClause::Kind kind = ScopeClause::Kind::kAny;
  std::uint32_t entity = kNone;
  std::uint32_t type = kNone;
};

struct CompiledPolicy {
  ScopeTest principal;
  ScopeTest resource;
  ActionClause::Kind action = ActionClause::Kind::kAny;
  Effect effect = Effect::kPermit;
  std::uint32_t actions = 0;  // where its actions begin
  std::uint32_t action_count = 0;
  std::uint32_t conditions = 0;  // where its conditions begin
  std::uint32_t condition_count = 0;
};

struct CompiledCondition {
  std::uint32_t node = 0;
  bool when = true;
};

// Policies by what their scope asks for, as one array with an entry for each key.
struct Buckets {
  std::vector<std::uint32_t> begin;     // by key; one more than there are keys
  std::vector<std::uint32_t> policies;  // ascending within a key
  std::span<const std::uint32_t> At(std::uint32_t key) const {
    return key + 1 < begin.size()
               ? std::span(policies).subspan(begin[key], begin[key + 1] - begin[key])
               : std::span<const std::uint32_t>();
  }
};

struct EntityStore::Data {
  Entities plain;
  Bump bump;
  NumberTable table;
  std::vector<CompactEntity> entities;  // by number
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
  std::vector<std::uint32_t> actions;
  std::vector<CompiledCondition> conditions;
  std::vector<CompiledPolicy> policies;
  Buckets by_principal;       // key: entity
  Buckets by_resource;        // key: entity
  Buckets by_principal_type;  // key: type
  Buckets by_resource_type;   // key: type
  Buckets by_action;          // key: entity
  std::vector<std::uint32_t> unscoped;
};

struct Engine::Scratch::Data {
  std::uint64_t generation = 0;
  NumberTable table;  // entities that only this request names
  Bump bump;
  std::vector<std::uint32_t> permits;
  std::vector<std::uint32_t> forbids;
  std::vector<std::uint32_t> errors;
  std::vector<std::uint64_t> seen;  // by policy: the last request that looked at it
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

  Compact Of(std::uint32_t node);
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
  std::uint32_t Number(const EntityUid& uid) {
    return Compactor(scratch_.table, scratch_.bump).Entity(uid);
  }
  Compact Arg(const Node& node, std::uint32_t index) { return Of(engine_.args[node.args + index]); }
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

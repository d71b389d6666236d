#pragma once

// The entities that a decision looks at: attributes, tags, and who is in whom.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "cedar/schema.h"
#include "cedar/value.h"

namespace ringfence::cedar {

struct Entity {
  EntityUid uid;
  ValueRecord attributes = {};
  ValueRecord tags = {};
  std::vector<EntityUid> parents = {};
  std::vector<EntityUid> ancestors = {};  // closed and sorted, made by Entities
};

class Entities {
 public:
  Entities() = default;
  // Closes the hierarchy. Refused: two different entities of one id, a cycle, more ancestors in
  // all than kAncestorsMax. With a schema: its actions are added, and all must conform to it.
  static Result<Entities> Make(std::vector<Entity> list, const Schema* schema = nullptr);
  static Result<Entities> FromJson(std::string_view text, const Schema* schema = nullptr);

  const Entity* Find(const EntityUid& uid) const;
  // `child in ancestor`, without asking whether they are equal.
  bool IsAncestor(const EntityUid& ancestor, const EntityUid& child) const;
  const std::vector<Entity>& all() const { return list_; }

 private:
  std::vector<Entity> list_;
  std::unordered_map<EntityUid, std::size_t, EntityUidHash> index_;
};

inline constexpr std::size_t kAncestorsMax = 50'000'000;

std::string ToJsonText(const Entities& entities);

}  // namespace ringfence::cedar

#pragma once

// How a loaded policy is kept, so that a decision is a few look-ups. Internal to policy/.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/draft.h"
#include "policy/policy.h"
#include "policy/roles.h"
#include "policy/rulebook.h"

namespace ringfence::policy {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};
template <typename Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

struct Grant {
  ActionBits actions = 0;
  const Binding* binding = nullptr;  // into Tables::bindings
};

// What one principal holds.
struct Holder {
  TextMap<std::vector<Grant>> at;  // by the text of the tenant
  std::vector<Grant> all;          // in the order of the files
};

struct Policy::Tables {
  // Both take a draft without problems, and move out of it.
  void Fill(Draft& draft);          // all but bindings
  void FillBindings(Draft& draft);  // once the roles are there

  std::map<model::TenantPath, Tenant> tenants;
  std::map<std::string, Principal, std::less<>> principals;
  std::map<std::string, Role, std::less<>> roles;
  std::vector<Binding> bindings;
  std::vector<Boundary> boundaries;
  std::vector<Quota> quotas;
  std::vector<NetworkRule> network_rules;
  std::vector<BoxRule> box_rules;
  std::vector<BoxException> exceptions;
  TextMap<std::size_t> quota_of;  // by tenant; index into quotas
  TextMap<Holder> holders;
  std::string some_admin;  // of those with admin at "/", the first
  std::string digest;
  std::map<std::string, std::string> files;
  std::unique_ptr<const Rulebook> rulebook;
};

}  // namespace ringfence::policy

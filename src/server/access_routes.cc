// Who holds what, and what of it is used.

#include <algorithm>
#include <charconv>
#include <set>

#include "policy/roles.h"
#include "server/routes.h"
#include "store/access_records.h"
#include "store/shared_records.h"

namespace ringfence::server {
namespace {

struct Holdings {
  std::vector<BindingUse> bindings;
  std::map<std::int64_t, VersionFacts> versions;  // those that granted something, where kept
  std::string since;                              // when uses began to be recorded
};

Result<Holdings> HoldingsOf(Core& core, const policy::Policy& policy,
                            const std::string& principal) {
  Holdings holdings;
  std::vector<store::AccessUse> uses;
  std::string grants;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const bool has_records, store::HasAccessRecords(db));
    if (!has_records) {
      return {};
    }
    RINGFENCE_ASSIGN(uses, store::ListAccessUses(db, principal));
    RINGFENCE_ASSIGN(grants, store::GetBindingGrants(db));
    return {};
  }));
  holdings.bindings = UsesByBinding(policy, uses);
  AddGrants(holdings.bindings, grants);
  std::set<std::int64_t> wanted;
  for (const BindingUse& one : holdings.bindings) {
    wanted.insert(one.granted);
  }
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const bool has_records, store::HasAccessRecords(db));
    if (!has_records) {
      return {};
    }
    RINGFENCE_ASSIGN(holdings.since, store::GetFact(db, kUsesSinceFact));
    RINGFENCE_ASSIGN(const auto versions,
                     store::ListPolicyVersions(db, 0, store::kPolicyVersionsMax));
    for (const store::PolicyVersion& version : versions) {
      if (!wanted.contains(version.number)) {
        continue;
      }
      const auto facts = Open(core.keys().grant.public_key(), version);
      if (facts.has_value()) {
        holdings.versions.emplace(version.number, *facts);
      }
    }
    return {};
  }));
  return holdings;
}

JsonObject ViewOf(const BindingUse& one, const Holdings& holdings, const policy::Policy& policy) {
  JsonObject view{{"principal", one.binding.principal},
                  {"role", one.binding.role},
                  {"tenant", one.binding.tenant.text()},
                  {"file", one.binding.source.file},
                  {"line", one.binding.source.line}};
  const policy::Principal* const principal = policy.FindPrincipal(one.binding.principal);
  view["kind"] = principal != nullptr && principal->service ? "service" : "user";
  if (one.granted != 0) {
    JsonObject granted{{"version", one.granted}};
    if (const auto found = holdings.versions.find(one.granted); found != holdings.versions.end()) {
      granted["by"] = found->second.by;
      granted["time"] = FormatTime(found->second.time);
    }
    view["granted"] = std::move(granted);
  }
  std::int64_t count = 0;
  Timestamp last{};
  JsonArray actions;
  for (const store::AccessUse& use : one.uses) {
    count += use.count;
    last = std::max(last, use.last);
    actions.emplace_back(JsonObject{{"action", use.action},
                                    {"tenant", use.tenant},
                                    {"first", FormatTime(use.first)},
                                    {"last", FormatTime(use.last)},
                                    {"uses", use.count}});
  }
  view["uses"] = count;
  if (count != 0) {
    view["last_used"] = FormatTime(last);
  }
  view["actions"] = std::move(actions);
  return view;
}

JsonObject RolesOf(const policy::Policy& policy) {
  JsonObject roles;
  for (const policy::Role& role : policy.roles()) {
    JsonArray allows;
    for (const policy::Action action : role.allows) {
      allows.emplace_back(std::string(Name(action)));
    }
    roles[role.name] = std::move(allows);
  }
  return roles;
}

Result<net::Response> List(const Call& call) {
  RINGFENCE_ASSIGN(const Page page, PageOf(call.request));
  const std::string wanted(call.request.Query("principal"));
  std::size_t from = 0;
  const char* const end = page.cursor.data() + page.cursor.size();
  const auto [stop, wrong] = std::from_chars(page.cursor.data(), end, from);
  if (!page.cursor.empty() && (wrong != std::errc() || stop != end)) {
    return Error{Code::kInvalidArgument, "not a cursor of this list", "pass back next_cursor",
                 "cursor"};
  }
  RINGFENCE_TRY(call.core.KeepUses());
  const auto policy = call.core.policy();
  RINGFENCE_ASSIGN(const Holdings holdings, HoldingsOf(call.core, *policy, wanted));
  JsonArray items;
  std::size_t index = from;
  for (; index < holdings.bindings.size() && items.size() < static_cast<std::size_t>(page.limit);
       ++index) {
    if (wanted.empty() || holdings.bindings[index].binding.principal == wanted) {
      items.emplace_back(ViewOf(holdings.bindings[index], holdings, *policy));
    }
  }
  JsonObject answer{{"items", std::move(items)},
                    {"version", call.core.policy_version()},
                    {"digest", policy->digest()},
                    {"roles", RolesOf(*policy)},
                    {"not_kept", call.core.uses().not_kept()}};
  if (!holdings.since.empty()) {
    answer["since"] = holdings.since;
  }
  if (index < holdings.bindings.size()) {
    answer["next_cursor"] = std::to_string(index);
  }
  return net::Response::OfJson(200, answer);
}

}  // namespace

void ListAccess(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return List(call); });
}

}  // namespace ringfence::server

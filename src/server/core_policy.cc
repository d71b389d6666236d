// The policy in force: how it changes, and how this server follows when another changed it.
// Declared in server/core.h.

#include <optional>

#include "os/log.h"
#include "server/core.h"
#include "server/policy_version.h"
#include "server/router.h"
#include "store/shared_records.h"

namespace ringfence::server {
namespace {

Error Overtaken(std::int64_t expected, std::int64_t found) {
  return {Code::kConflict,
          "version " + std::to_string(found) + " of the policy is in force, not version " +
              std::to_string(expected) + " as expected: somebody else has changed it",
          "look at `ringfence policy versions`, then apply on top of what is there"};
}

// Where the folder counts, putting the same files in force again is no change; nor is it where
// versions are applied. From one to the other it is.
bool IsSame(const VersionFacts& before, std::string_view digest, std::string_view origin) {
  return before.digest == digest && (before.origin == kFromFolder) == (origin == kFromFolder);
}

VersionFacts Next(const std::optional<store::PolicyVersion>& newest, const std::string& digest,
                  const PolicyChange& change) {
  VersionFacts facts;
  facts.number = newest.has_value() ? newest->number + 1 : 1;
  facts.digest = digest;
  facts.previous = facts.number - 1;
  facts.previous_digest = newest.has_value() ? newest->digest : "";
  facts.by = change.actor.principal;
  facts.via = change.actor.via;
  facts.origin = change.origin;
  facts.restores = change.restores;
  facts.forced = change.forced;
  facts.reason = change.reason;
  return facts;
}

audit::Entry Describe(audit::Entry entry, const VersionFacts& facts, bool changed) {
  entry.result = "ok";
  entry.detail["new_policy"] = facts.digest;
  entry.detail["origin"] = facts.origin;
  entry.detail["version"] = facts.number;
  entry.detail["changed"] = changed;
  if (facts.previous != 0) {
    entry.detail["previous_version"] = facts.previous;
    entry.detail["previous_policy"] = facts.previous_digest;
  }
  if (facts.restores != 0) {
    entry.detail["restores"] = facts.restores;
  }
  if (facts.forced) {
    entry.detail["break_glass"] = true;
  }
  if (!facts.reason.empty()) {
    entry.detail["reason"] = facts.reason;
  }
  return entry;
}

}  // namespace

Timestamp Core::policy_loaded() const { return policy_loaded_; }

Result<std::shared_ptr<const policy::Policy>> Core::LoadPolicy() const {
  RINGFENCE_ASSIGN(std::unique_ptr<policy::Policy> loaded, policy::Policy::Load(policy_folder_));
  return std::shared_ptr<const policy::Policy>(std::move(loaded));
}

// Two that come into force shortly after each other may arrive here in either order.
void Core::SetPolicy(std::shared_ptr<const policy::Policy> policy, std::int64_t version) {
  const std::lock_guard lock(mutex_);
  if (version < policy_version_) {
    return;
  }
  policy_version_ = version;
  if (policy == nullptr || policy->digest() == this->policy()->digest()) {
    return;
  }
  std::atomic_store(&policy_, std::move(policy));
  policy_loaded_ = Now();
}

Result<PolicyApplied> Core::ApplyPolicy(std::shared_ptr<const policy::Policy> policy,
                                        const PolicyChange& change) {
  PolicyApplied applied;
  RINGFENCE_TRY(Change([&](store::Connection& db) -> Status {
    applied = {};
    std::optional<store::PolicyVersion> newest;
    RINGFENCE_ASSIGN(const bool has_versions, store::HasPolicyVersions(db));
    if (has_versions) {
      RINGFENCE_ASSIGN(newest, store::NewestPolicyVersion(db));
    }
    const std::int64_t in_force = newest.has_value() ? newest->number : 0;
    if (change.expected.has_value() && *change.expected != in_force) {
      return Overtaken(*change.expected, in_force);
    }
    // One that is not ours is never the same: it is replaced.
    const auto before = newest.has_value() ? Open(keys_.grant.public_key(), *newest)
                                           : Result<VersionFacts>(Error{Code::kNotFound, ""});
    const bool restores_itself = change.restores != 0 && change.restores == in_force;
    applied.changed = !before.has_value() ||
                      (!restores_itself && !IsSame(*before, policy->digest(), change.origin));
    applied.facts = applied.changed ? Next(newest, policy->digest(), change) : *before;
    if (applied.changed) {
      applied.facts.time = Now();
      RINGFENCE_TRY(store::PutPolicy(db, {policy->digest(), policy->files()}));
    }
    if (applied.changed && has_versions) {
      RINGFENCE_TRY(store::InsertPolicyVersion(db, Sign(keys_.grant, applied.facts)));
      RINGFENCE_TRY(store::ForgetPolicyVersions(db));
    }
    RINGFENCE_ASSIGN(const bool has_records, store::HasAccessRecords(db));
    if (has_records) {
      RINGFENCE_ASSIGN(const std::string grants, store::GetBindingGrants(db));
      RINGFENCE_TRY(store::PutBindingGrants(db, NextGrants(*policy, grants, applied.facts.number)));
    }
    const bool back = change.origin == kFromRollback;
    audit::Entry entry = NewEntry(change.actor, back ? "policy.rollback" : "policy.apply");
    Note(*this, change.decision, entry);
    return Record(db, Describe(std::move(entry), applied.facts, applied.changed));
  }));
  SetPolicy(std::move(policy), applied.facts.number);
  database_->Announce(std::string(kPolicyTopic));
  return applied;
}

Result<std::optional<VersionFacts>> Core::NewestVersion() {
  std::optional<store::PolicyVersion> newest;
  RINGFENCE_TRY(database_->Read([&](store::Connection& db) -> Status {
    newest.reset();
    RINGFENCE_ASSIGN(const bool has_versions, store::HasPolicyVersions(db));
    if (has_versions) {
      RINGFENCE_ASSIGN(newest, store::NewestPolicyVersion(db));
    }
    return {};
  }));
  if (!newest.has_value()) {
    return std::optional<VersionFacts>();
  }
  RINGFENCE_ASSIGN(VersionFacts facts, Open(keys_.grant.public_key(), *newest));
  return std::optional(std::move(facts));
}

Result<PolicyApplied> Core::ReloadFolder(
    PolicyChange change, const std::function<Status(const policy::Policy&)>& check) {
  RINGFENCE_ASSIGN(const auto newest, NewestVersion());
  if (newest.has_value() && newest->origin != kFromFolder && !change.forced) {
    return Error{Code::kFailedPrecondition,
                 "version " + std::to_string(newest->number) +
                     " of the policy was put in force by " + newest->by +
                     ", and the server's folder has not counted since",
                 "`ringfence policy apply DIR` applies a folder; `ringfence policy reload --force` "
                 "lets the server's own folder count again"};
  }
  change.origin = kFromFolder;
  auto loaded = LoadPolicy();
  if (!loaded.has_value()) {
    RINGFENCE_TRY(RefusePolicy(change, loaded.error().message));
    return Error{Code::kInvalidArgument,
                 "the policy folder has errors; the old policy stays:\n" + loaded.error().message,
                 "mend them and check with `ringfence policy check`"};
  }
  if (check) {
    RINGFENCE_TRY(check(**loaded));
  }
  return ApplyPolicy(std::move(loaded).value(), change);
}

Status Core::RefusePolicy(const PolicyChange& change, const std::string& why) {
  const bool back = change.origin == kFromRollback;
  audit::Entry entry = NewEntry(change.actor, back ? "policy.rollback" : "policy.apply");
  Note(*this, change.decision, entry);  // who asked may; what was asked for is bad
  entry.result = "error";
  entry.detail["new_policy"] = why.substr(0, 2048);
  entry.detail["origin"] = change.origin;
  return RecordAlone(entry);
}

std::string Core::Follow() {
  const auto newest = NewestVersion();
  if (!newest.has_value()) {
    return newest.error().message;
  }
  std::optional<std::string> digest;
  const Status read = database_->Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(digest, store::NewestPolicy(db));
    return {};
  });
  if (!read.has_value()) {
    return read.error().message;
  }
  if (!digest.has_value()) {
    return {};
  }
  VersionFacts facts;
  if (newest->has_value()) {
    facts = **newest;
  } else {
    facts.digest = *digest;  // by a version of Ringfence that knows no versions
  }
  if (facts.digest != policy()->digest()) {
    auto parsed = PolicyOf(*database_, facts);
    if (!parsed.has_value()) {
      return "policy " + facts.digest + " is in force and not followed: " + parsed.error().message;
    }
    SetPolicy(std::move(parsed).value(), facts.number);
    os::Log(os::Level::kInfo, "policy_followed",
            {{"digest", facts.digest}, {"version", std::to_string(facts.number)}});
  } else {
    SetPolicy(nullptr, facts.number);
  }
  if (facts.digest != *digest) {
    return "policy " + *digest +
           " was put in force unsigned, by an older version of Ringfence or by other ways: it is "
           "not followed; apply it again";
  }
  return {};
}

void Core::FollowPolicy() {
  std::string problem = Follow();
  const std::lock_guard lock(mutex_);
  if (problem != policy_problem_ && !problem.empty()) {
    os::Log(os::Level::kError, "policy_not_followed", {{"why", problem}});
  }
  policy_problem_ = std::move(problem);
}

std::string Core::policy_problem() const {
  const std::lock_guard lock(mutex_);
  return policy_problem_;
}

}  // namespace ringfence::server

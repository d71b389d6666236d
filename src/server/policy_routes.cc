// The policy in force: which it is, its versions, and putting another in force.

#include <algorithm>
#include <charconv>

#include "server/routes.h"
#include "store/shared_records.h"

namespace ringfence::server {
namespace {

constexpr std::size_t kFileNameBytesMax = 512;
constexpr std::size_t kFileDepthMax = 9;
constexpr std::int64_t kVersionMax = std::int64_t{1} << 52U;

JsonObject FactsOf(Core& core) {
  const auto policy = core.policy();
  JsonObject facts{{"digest", policy->digest()},
                   {"tenants", policy->tenants().size()},
                   {"principals", policy->principals().size()},
                   {"bindings", policy->bindings().size()},
                   {"loaded", FormatTime(core.policy_loaded())}};
  if (core.policy_version() != 0) {
    facts["version"] = core.policy_version();
  }
  return facts;
}

Result<net::Response> AnswerOf(Core& core, const PolicyApplied& applied) {
  JsonObject answer = FactsOf(core);
  for (const auto& member : applied.facts.ToJson()) {
    answer[member.key()] = member.value();
  }
  answer["changed"] = applied.changed;
  return net::Response::OfJson(applied.changed ? 201 : 200, answer);
}

// They come from elsewhere, and may be written into a folder again.
Status CheckFileName(std::string_view name) {
  const Error bad{Code::kInvalidArgument, "a file's name is not one of a policy folder",
                  "names are relative, as teams/acme.yaml; no part begins with a dot", "files"};
  std::size_t depth = 0;
  std::string_view rest = name;
  for (bool more = true; more;) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    more = slash != std::string_view::npos;
    rest.remove_prefix(more ? slash + 1 : rest.size());
    if (part.empty() || part.starts_with('.') || ++depth > kFileDepthMax) {
      return bad;
    }
  }
  const bool plain = std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\';
  });
  return plain && name.size() <= kFileNameBytesMax ? Status() : Status(bad);
}

Result<std::map<std::string, std::string>> FilesOf(const Json& json) {
  const auto* const object = json.if_object();
  if (object == nullptr) {
    return Error{Code::kInvalidArgument, "files must be an object of names and texts", {}, "files"};
  }
  std::map<std::string, std::string> files;
  for (const auto& [name, text] : *object) {
    RINGFENCE_TRY(CheckFileName(name));
    const auto* const content = text.if_string();
    if (content == nullptr) {
      return Error{Code::kInvalidArgument, "each file must be text", {}, "files"};
    }
    files.emplace(std::string(name), std::string(content->data(), content->size()));
  }
  return files;
}

// What apply, rollback and reload have in common.
Result<PolicyChange> ChangeOf(const Call& call, JsonReader& reader, std::string_view origin) {
  PolicyChange change{ActorOf(call.caller), origin};
  change.decision = call.decision;
  RINGFENCE_ASSIGN(change.forced, reader.BoolOr("force", false));
  RINGFENCE_ASSIGN(change.reason, reader.StringOr("reason", "", kPolicyReasonBytesMax));
  if (reader.Has("expected_version")) {
    RINGFENCE_ASSIGN(change.expected, reader.Int("expected_version", 0, kVersionMax));
  }
  RINGFENCE_TRY(reader.Finish());
  if (change.forced && change.reason.empty()) {
    return Error{Code::kInvalidArgument, "force needs a reason, which goes on record",
                 "say why: --force --reason TEXT", "reason"};
  }
  return change;
}

// Nobody is left outside by a policy that somebody could not change back.
Status CheckLockout(Core& core, const policy::Policy& policy, PolicyChange& change) {
  RINGFENCE_ASSIGN(std::string why, WhoIsLockedOut(core.database(), policy,
                                                   {core.Now(), change.actor.address}, core.Now()));
  if (why.empty() && !core.local_principal().empty() &&
      policy.FindPrincipal(core.local_principal()) == nullptr) {
    why = "it has no principal \"" + core.local_principal() +
          "\", as whom this machine's administrator is signed in when the server starts";
  }
  if (why.empty()) {
    change.forced = false;  // there was no glass to break
    return {};
  }
  if (change.forced) {
    return {};
  }
  RINGFENCE_TRY(core.RefusePolicy(change, why));
  return Error{Code::kFailedPrecondition, why + "; the old policy stays",
               "leave an administrator with a token in it, or break the glass: --force --reason "
               "TEXT"};
}

Result<net::Response> Apply(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, ParseJson(call.request.body, kPolicyRequestBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(const Json* const json, reader.Any("files"));
  RINGFENCE_ASSIGN(const auto files, FilesOf(*json));
  RINGFENCE_ASSIGN(PolicyChange change, ChangeOf(call, reader, kFromApply));
  auto parsed = policy::Policy::Parse(files);
  if (!parsed.has_value()) {
    RINGFENCE_TRY(call.core.RefusePolicy(change, parsed.error().message));
    return Error{Code::kInvalidArgument,
                 "the policy has errors; the old one stays:\n" + parsed.error().message,
                 "mend them and check with `ringfence policy check`"};
  }
  std::shared_ptr<const policy::Policy> policy = std::move(parsed).value();
  RINGFENCE_TRY(CheckLockout(call.core, *policy, change));
  RINGFENCE_ASSIGN(const PolicyApplied applied, call.core.ApplyPolicy(std::move(policy), change));
  return AnswerOf(call.core, applied);
}

Result<VersionFacts> FactsOfVersion(Core& core, std::int64_t number) {
  store::PolicyVersion version;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(version, store::GetPolicyVersion(db, number));
    return {};
  }));
  return Open(core.keys().grant.public_key(), version);
}

Result<net::Response> Rollback(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(std::int64_t number, reader.IntOr("version", 0, 1, kVersionMax));
  RINGFENCE_ASSIGN(PolicyChange change, ChangeOf(call, reader, kFromRollback));
  if (number == 0) {
    RINGFENCE_ASSIGN(const auto newest, call.core.NewestVersion());
    if (!newest.has_value() || newest->previous == 0) {
      return Error{Code::kFailedPrecondition, "no other policy was in force before this one",
                   "`ringfence policy versions` lists those there are"};
    }
    number = newest->previous;
  }
  RINGFENCE_ASSIGN(const VersionFacts target, FactsOfVersion(call.core, number));
  RINGFENCE_ASSIGN(auto policy, PolicyOf(call.core.database(), target));
  change.restores = number;
  RINGFENCE_TRY(CheckLockout(call.core, *policy, change));
  RINGFENCE_ASSIGN(const PolicyApplied applied, call.core.ApplyPolicy(std::move(policy), change));
  return AnswerOf(call.core, applied);
}

Result<net::Response> ShowVersion(const Call& call) {
  const std::string& text = call.params.find("version")->second;
  std::int64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc() || end != text.data() + text.size() || number < 1) {
    return Error{Code::kInvalidArgument, "a version is a number from 1", {}, "version"};
  }
  store::PolicyVersion version;
  store::StoredPolicy stored;
  std::int64_t newest = 0;
  RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(version, store::GetPolicyVersion(db, number));
    RINGFENCE_ASSIGN(stored, store::GetPolicy(db, version.digest));
    RINGFENCE_ASSIGN(const auto top, store::NewestPolicyVersion(db));
    newest = top.has_value() ? top->number : 0;
    return {};
  }));
  RINGFENCE_ASSIGN(const VersionFacts facts, Open(call.core.keys().grant.public_key(), version));
  JsonObject answer = facts.ToJson();
  answer["in_force"] = number == newest;
  answer["envelope"] = version.envelope;
  JsonObject files;
  for (const auto& [name, content] : stored.files) {
    files[name] = content;
  }
  answer["files"] = std::move(files);
  return net::Response::OfJson(200, answer);
}

Result<net::Response> ListVersions(const Call& call) {
  RINGFENCE_ASSIGN(const Page page, PageOf(call.request));
  std::int64_t before = 0;
  const auto [end, wrong] =
      std::from_chars(page.cursor.data(), page.cursor.data() + page.cursor.size(), before);
  if (!page.cursor.empty() && (wrong != std::errc() || *end != '\0' || before < 1)) {
    return Error{Code::kInvalidArgument, "not a cursor of this list", "pass back next_cursor",
                 "cursor"};
  }
  std::vector<store::PolicyVersion> versions;
  std::int64_t newest = 0;
  RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(versions, store::ListPolicyVersions(db, before, page.limit + 1));
    RINGFENCE_ASSIGN(const auto top, store::NewestPolicyVersion(db));
    newest = top.has_value() ? top->number : 0;
    return {};
  }));
  const bool more = versions.size() > static_cast<std::size_t>(page.limit);
  versions.resize(std::min(versions.size(), static_cast<std::size_t>(page.limit)));
  JsonArray items;
  for (const store::PolicyVersion& version : versions) {
    // One that somebody wrote into the database is shown as such, and never put in force.
    const auto facts = Open(call.core.keys().grant.public_key(), version);
    JsonObject item = facts.has_value()
                          ? facts->ToJson()
                          : JsonObject{{"version", version.number}, {"digest", version.digest}};
    item["signed"] = facts.has_value();
    item["in_force"] = version.number == newest && facts.has_value();
    items.emplace_back(std::move(item));
  }
  JsonObject answer{{"items", std::move(items)}};
  if (more) {
    answer["next_cursor"] = std::to_string(versions.back().number);
  }
  return net::Response::OfJson(200, answer);
}

}  // namespace

void GetPolicy(const Call& call, const net::Responder& responder) {
  responder.Send(net::Response::OfJson(200, FactsOf(call.core)));
}

void ListPolicyVersions(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return ListVersions(call); });
}

void GetPolicyVersion(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return ShowVersion(call); });
}

void ApplyPolicy(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return Apply(call); });
}

void RollbackPolicy(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return Rollback(call); });
}

void ReloadPolicy(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
    RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
    RINGFENCE_ASSIGN(PolicyChange change, ChangeOf(call, reader, kFromFolder));
    RINGFENCE_TRY(call.core.ReloadFolder(change, [&](const policy::Policy& loaded) {
      PolicyChange asked = change;
      return CheckLockout(call.core, loaded, asked);
    }));
    return net::Response::OfJson(200, FactsOf(call.core));
  });
}

}  // namespace ringfence::server

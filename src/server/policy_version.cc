#include "server/policy_version.h"

#include "crypto/dsse.h"
#include "store/records.h"
#include "store/shared_records.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kTokensAtOnce = 500;

Error NotOurs(const store::PolicyVersion& version) {
  return {Code::kCorrupt,
          "version " + std::to_string(version.number) +
              " of the policy in the database is not what this server signed",
          "somebody wrote into the database, or it is damaged: restore a backup, or start with "
          "RINGFENCE_POLICY_INSTEAD_OF=" +
              std::to_string(version.number) + " to put the policy folder in force"};
}

Result<VersionFacts> ReadFacts(const std::string& payload) {
  VersionFacts facts;
  RINGFENCE_ASSIGN(const Json json, ParseJson(payload, crypto::kEnvelopeBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_ASSIGN(facts.number, reader.Int("version", 1, std::int64_t{1} << 52U));
  RINGFENCE_ASSIGN(facts.digest, reader.String("digest", 64));
  RINGFENCE_ASSIGN(facts.previous, reader.IntOr("previous", 0, 0, std::int64_t{1} << 52U));
  RINGFENCE_ASSIGN(facts.previous_digest, reader.StringOr("previous_digest", "", 64));
  RINGFENCE_ASSIGN(const std::string time, reader.String("time", 64));
  RINGFENCE_ASSIGN(facts.time, ParseTime(time));
  RINGFENCE_ASSIGN(facts.by, reader.String("by", 256));
  RINGFENCE_ASSIGN(facts.via, reader.StringOr("via", "", 256));
  RINGFENCE_ASSIGN(facts.origin, reader.String("origin", 32));
  RINGFENCE_ASSIGN(facts.restores, reader.IntOr("restores", 0, 0, std::int64_t{1} << 52U));
  RINGFENCE_ASSIGN(facts.forced, reader.BoolOr("forced", false));
  RINGFENCE_ASSIGN(facts.reason, reader.StringOr("reason", "", kPolicyReasonBytesMax));
  RINGFENCE_TRY(reader.Finish());
  return facts;
}

bool MayApply(const policy::Policy& policy, const std::string& principal,
              const policy::Circumstances& circumstances) {
  return policy
      .Decide({principal, policy::Action::kPolicyApply, model::TenantPath::Root(), circumstances})
      .allowed;
}

}  // namespace

JsonObject VersionFacts::ToJson() const {
  JsonObject json{{"version", number}, {"digest", digest}, {"time", FormatTime(time)},
                  {"by", by},          {"origin", origin}, {"forced", forced}};
  if (previous != 0) {
    json["previous"] = previous;
    json["previous_digest"] = previous_digest;
  }
  if (!via.empty()) {
    json["via"] = via;
  }
  if (restores != 0) {
    json["restores"] = restores;
  }
  if (!reason.empty()) {
    json["reason"] = reason;
  }
  return json;
}

store::PolicyVersion Sign(const crypto::SigningKey& key, const VersionFacts& facts) {
  return {facts.number, facts.digest,
          crypto::SignEnvelope(key, kPolicyVersionType, CanonicalJson(facts.ToJson()))};
}

Result<VersionFacts> Open(const crypto::PublicKey& key, const store::PolicyVersion& version) {
  const auto payload = crypto::OpenEnvelope(key, kPolicyVersionType, version.envelope);
  if (!payload.has_value()) {
    return NotOurs(version);
  }
  auto facts = ReadFacts(*payload);
  if (!facts.has_value() || facts->number != version.number || facts->digest != version.digest) {
    return NotOurs(version);
  }
  return facts;
}

Result<std::shared_ptr<const policy::Policy>> PolicyOf(store::Database& database,
                                                       const VersionFacts& facts) {
  store::StoredPolicy stored;
  RINGFENCE_TRY(database.Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(stored, store::GetPolicy(db, facts.digest));
    return {};
  }));
  auto parsed = policy::Policy::Parse(stored.files);
  if (!parsed.has_value()) {
    return Error{parsed.error().code,
                 "version " + std::to_string(facts.number) +
                     " of the policy cannot be read by this version of Ringfence:\n" +
                     parsed.error().message,
                 "mend it and apply it again"};
  }
  if ((*parsed)->digest() != facts.digest) {
    return NotOurs({facts.number, facts.digest, {}});
  }
  return std::shared_ptr<const policy::Policy>(std::move(parsed).value());
}

Result<std::string> WhoIsLockedOut(store::Database& database, const policy::Policy& policy,
                                   const policy::Circumstances& circumstances, Timestamp now) {
  bool somebody = false;
  RINGFENCE_TRY(database.Read([&](store::Connection& db) -> Status {
    std::string after;
    for (;;) {
      RINGFENCE_ASSIGN(const auto tokens, store::ListTokens(db, after, kTokensAtOnce));
      for (const store::Token& token : tokens) {
        somebody = somebody || (token.revoked.empty() && token.expires > now &&
                                MayApply(policy, token.principal, circumstances));
      }
      if (somebody || tokens.size() < static_cast<std::size_t>(kTokensAtOnce)) {
        return {};
      }
      after = tokens.back().id;
    }
  }));
  if (somebody) {
    return std::string();
  }
  std::string able;
  for (const policy::Principal& principal : policy.principals()) {
    if (MayApply(policy, principal.name, circumstances)) {
      able += (able.empty() ? "" : ", ") + principal.name;
    }
    if (able.size() > 200) {
      able += ", ...";
      break;
    }
  }
  return "nobody who could change the policy afterwards holds a token (" +
         (able.empty() ? std::string("no principal may policy.apply")
                       : "it would need one of " + able) +
         "): the last administrator would be locked out";
}

}  // namespace ringfence::server

#include "server/server.h"

#include <future>
#include <optional>

#include "audit/note.h"
#include "base/encoding.h"
#include "crypto/random.h"
#include "crypto/sha256.h"
#include "isolate/join_token.h"
#include "net/address.h"
#include "os/file.h"
#include "os/heap.h"
#include "os/identity.h"
#include "os/log.h"
#include "os/notify.h"
#include "os/signals.h"
#include "server/alert_webhook.h"
#include "server/core.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/witness_client.h"
#include "store/migrations.h"
#include "store/shared_records.h"

namespace ringfence::server {
namespace {

constexpr std::chrono::seconds kTick{1};
constexpr unsigned kTicksPerSweep = 5;
constexpr Milliseconds kLocalTokenLife = std::chrono::hours(24 * 365);
constexpr std::size_t kCaFileBytesMax = 256 * 1024;
constexpr Milliseconds kLocalJoinLife = std::chrono::minutes(15);

const audit::Actor kSystem{"ringfence", "system", "", ""};

// Servers on one database sign and verify for each other, so they hold the same keys.
Status CheckKeys(store::Database& database, const ServerKeys& keys) {
  const std::string mine =
      "log " + keys.log.public_key().Id() + " grant " + keys.grant.public_key().Id() + " ca " +
      keys.ca_fingerprint + " token " +
      Hex(crypto::HmacSha256(keys.token.Reveal(), AsBytes("which key"))).substr(0, 16);
  return database.Write([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const std::string settled, store::SettleFact(db, "keys", mine));
    if (settled != mine) {
      return Error{Code::kFailedPrecondition,
                   "this database belongs to servers with other keys (theirs: " + settled +
                       "; here: " + mine + ")",
                   "copy the folder keys/ of one of them into this server's state folder"};
    }
    return {};
  });
}

struct StartPolicy {
  std::shared_ptr<const policy::Policy> policy;
  std::int64_t version = 0;  // 0: the folder's, perhaps not on record yet
};

// What was applied counts. Where nothing was, one server takes its folder's; of several, the one
// that was last read at any of them counts, so that a server whose folder is behind brings back no
// old policy when it starts.
Result<StartPolicy> PolicyInForce(store::Database& database, const ServerKeys& keys,
                                  const ServerOptions& options, bool shared) {
  std::optional<store::PolicyVersion> newest;
  std::optional<std::string> digest;
  RINGFENCE_TRY(database.Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const bool has_versions, store::HasPolicyVersions(db));
    if (has_versions) {
      RINGFENCE_ASSIGN(newest, store::NewestPolicyVersion(db));
    }
    RINGFENCE_ASSIGN(digest, store::NewestPolicy(db));
    return {};
  }));
  VersionFacts facts;
  if (newest.has_value()) {
    if (newest->number != options.policy_instead_of) {
      RINGFENCE_ASSIGN(facts, Open(keys.grant.public_key(), *newest));
    }
  } else if (shared && digest.has_value()) {
    facts.digest = *digest;
  }
  if (!facts.digest.empty() && (shared || facts.origin != kFromFolder)) {
    RINGFENCE_ASSIGN(auto policy, PolicyOf(database, facts));
    return StartPolicy{std::move(policy), facts.number};
  }
  RINGFENCE_ASSIGN(std::unique_ptr<policy::Policy> loaded,
                   policy::Policy::Load(options.policy_folder));
  return StartPolicy{std::shared_ptr<const policy::Policy>(std::move(loaded)), 0};
}

// A policy that came into force by this start is on record like one that was applied.
Status RecordPolicy(Core& core, std::int64_t instead_of) {
  if (core.policy_version() != 0) {
    return {};
  }
  PolicyChange change{kSystem};
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const bool has_versions, store::HasPolicyVersions(db));
    if (has_versions) {
      RINGFENCE_ASSIGN(const auto newest, store::NewestPolicyVersion(db));
      change.forced = newest.has_value() && newest->number == instead_of;
    }
    return {};
  }));
  if (change.forced) {
    change.reason = "policy.instead_of was " + std::to_string(instead_of) + " at the start";
    change.expected = instead_of;
  } else {
    RINGFENCE_ASSIGN(const auto newest, core.NewestVersion());
    if (newest.has_value() && newest->digest == core.policy()->digest()) {
      core.FollowPolicy();
      return {};
    }
  }
  RINGFENCE_TRY(core.ApplyPolicy(core.policy(), change));
  return {};
}

Result<std::unique_ptr<Core>> OpenCore(const ServerOptions& options, const KeyOptions& key_options,
                                       const Clock& clock) {
  RINGFENCE_TRY(os::MakeDirs(options.state_folder, 0700));
  RINGFENCE_ASSIGN(ServerKeys keys, OpenKeys(key_options, clock.Now()));
  const std::string where =
      options.database.empty() ? options.state_folder + "/ringfence.db" : options.database;
  const bool shared = store::IsPostgresUrl(where);
  RINGFENCE_ASSIGN(auto database, store::Open(where));
  RINGFENCE_TRY(CheckKeys(*database, keys));
  RINGFENCE_ASSIGN(StartPolicy start, PolicyInForce(*database, keys, options, shared));
  Core::Parts parts{std::move(database),
                    std::move(keys),
                    options.policy_folder,
                    std::move(start.policy),
                    shared,
                    options.keep_output,
                    start.version,
                    options.local_file.empty() ? "" : options.local_principal};
  auto core = std::make_unique<Core>(std::move(parts), clock);
  // The log's name stays with its key, wherever the server is moved.
  const std::string origin = "ringfence.dev/log/" + core->keys().log.public_key().Id();
  Core* const raw = core.get();
  RINGFENCE_ASSIGN(auto sequencer, Sequencer::Start(core->database(),
                                                    {options.state_folder + "/log", origin,
                                                     crypto::RandomId("s"), shared},
                                                    core->keys().log, [raw] {
                                                      raw->waiters().Notify("audit");
                                                      raw->NotifyAllWork();
                                                    }));
  core->SetSequencer(std::move(sequencer));
  return core;
}

Status RecordStart(Core& core, const std::string& address) {
  audit::Entry entry = core.NewEntry(kSystem, "server.start");
  entry.result = "ok";
  entry.detail["version"] = RINGFENCE_VERSION;
  entry.detail["address"] = address;
  return core.RecordAlone(entry);
}

// The token of the last start goes on, unless it was revoked or is about to expire.
Result<store::Token> LocalToken(Core& core, const ServerOptions& options) {
  const std::string path = options.state_folder + "/local-token";
  store::Token token;
  const auto before = os::ReadText(path, 256);
  const Status known = core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(token, store::GetToken(db, before.has_value() ? *before : ""));
    return {};
  });
  if (known.has_value() && token.revoked.empty() && token.principal == options.local_principal &&
      token.expires > core.Now() + kLocalTokenLife / 2) {
    return token;
  }
  token = {crypto::RandomId("t"),
           options.local_principal,
           core.Now(),
           core.Now() + kLocalTokenLife,
           "ringfence",
           "the local administrator of `ringfence up`",
           ""};
  RINGFENCE_TRY(os::WriteFileDurable(path, AsBytes(token.id), 0600));
  return token;
}

// The local administrator's token and, where asked for, a join token for the local node.
Status WriteLocalFile(Core& core, const ServerOptions& options) {
  if (options.local_file.empty()) {
    return {};
  }
  if (core.policy()->FindPrincipal(options.local_principal) == nullptr) {
    return Error{Code::kFailedPrecondition,
                 "the policy has no principal \"" + options.local_principal +
                     "\" to sign the local administrator in as",
                 "declare it in " + options.policy_folder +
                     "; if another was applied, start with RINGFENCE_POLICY_INSTEAD_OF=" +
                     std::to_string(core.policy_version())};
  }
  RINGFENCE_ASSIGN(const store::Token token, LocalToken(core, options));
  JsonObject local{
      {"server", core.public_address()},
      {"ca_pem", core.keys().ca.certificate_pem},
      {"token", core.mint().Mint(token.id)},
      {"principal", options.local_principal},
      {"log_vkey", audit::VerifierKey(core.sequencer().origin(), 1, core.keys().log.public_key())}};
  const SecretBytes secret = crypto::RandomSecret(32);
  RINGFENCE_TRY(core.Change([&](store::Connection& db) -> Status {
    RINGFENCE_TRY(store::PutToken(db, token));
    audit::Entry entry = core.NewEntry(kSystem, "token.create");
    entry.result = "ok";
    entry.detail["token"] = token.id;
    entry.detail["as"] = token.principal;
    RINGFENCE_TRY(Core::Record(db, entry));
    if (options.local_node.empty()) {
      return {};
    }
    RINGFENCE_TRY(store::InsertJoinToken(
        db, {Hex(crypto::Sha256(isolate::AgentHalf(secret).Reveal())), options.local_node,
             Base64(isolate::JailerHalf(secret).Reveal()), core.Now() + kLocalJoinLife}));
    audit::Entry join = core.NewEntry(kSystem, "node.token_create");
    join.node = options.local_node;
    join.result = "ok";
    return Core::Record(db, join);
  }));
  if (!options.local_node.empty()) {
    local["join_token"] =
        isolate::FormatJoinToken({core.public_address(), core.keys().ca_fingerprint,
                                  core.keys().grant.public_key(), SecretBytes(secret.Reveal())});
  }
  return os::WriteFileDurable(options.local_file, AsBytes(PrettyJson(local)), 0600);
}

// As others reach us: an address that stands for all of the machine's is no address to call.
std::string PublicAddress(const std::string& bound, const std::vector<std::string>& names) {
  const auto address = net::ParseAddress(bound);
  if (!address.has_value() || (address->host != "0.0.0.0" && address->host != "::")) {
    return bound;
  }
  return net::FormatAddress({names.empty() ? "localhost" : names.front(), address->port});
}

void Reload(Core& core) {
  const auto applied = core.ReloadFolder({kSystem});
  if (!applied.has_value()) {
    os::Log(os::Level::kError, "policy_not_reloaded", {{"why", applied.error().message}});
    return;
  }
  os::Log(os::Level::kInfo, "policy_reloaded", {{"digest", core.policy()->digest()}});
}

void Tend(Core& core, net::Server& http, const KeyOptions& key_options) {
  std::string certificate;
  for (unsigned tick = 0;; ++tick) {
    switch (os::WaitForSignal(kTick)) {
      case os::Signal::kStop:
        return;
      case os::Signal::kReload:
        os::NotifyManager(os::ReloadingState());
        Reload(core);
        os::NotifyManager("READY=1");
        break;
      case os::Signal::kChild:
      case os::Signal::kNone:
        break;
    }
    os::NotifyManager("WATCHDOG=1");
    if (const Status kept = core.KeepPulses(); !kept.has_value()) {
      os::Log(os::Level::kWarning, "pulses_not_kept", {{"why", kept.error().message}});
    }
    if (tick % kTicksPerSweep != 0) {
      continue;
    }
    if (const Status kept = core.KeepUses(); !kept.has_value()) {
      os::Log(os::Level::kWarning, "uses_not_kept", {{"why", kept.error().message}});
    }
    if (core.shared()) {
      core.FollowPolicy();  // should its announcement have been lost
    }
    if (const Status swept = Sweep(core); !swept.has_value()) {
      os::Log(os::Level::kWarning, "sweep_failed", {{"why", swept.error().message}});
    }
    const auto identity = OpenTlsIdentity(key_options, core.keys(), core.Now());
    if (identity.has_value() && identity->certificate_chain_pem != certificate) {
      if (!certificate.empty()) {
        const Status replaced = http.Replace(*identity);
        os::Log(os::Level::kInfo, "tls_certificate_renewed",
                {{"ok", replaced.has_value() ? "yes" : replaced.error().message}});
      }
      certificate = identity->certificate_chain_pem;
    }
  }
}

// A database that a server of before has left as it was has no place for what is detected: nothing
// is until it is brought to our schema (tests play such servers).
Status StartDetection(Core& core, const ServerOptions& options) {
  int schema = 0;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(schema, store::SchemaSeen(db));
    return {};
  }));
  if (schema < store::SchemaWith("detection")) {
    os::Log(os::Level::kWarning, "detection_off", {{"schema", std::to_string(schema)}});
    return {};
  }
  Detector::Options detection;
  detection.mapping = options.content_folder + "/mappings/events.json";
  detection.observables = options.content_folder + "/mappings/ocsf.json";
  detection.rules = {options.content_folder + "/pipelines/ringfence.yml",
                     {options.content_folder + "/rules/gpu"}};
  if (!options.more_rules.empty()) {
    detection.rules.folders.push_back(options.more_rules);
  }
  detection.telemetry_every = options.telemetry_every;
  detection.tells = !options.alert_webhook.empty();
  RINGFENCE_ASSIGN(auto detector, Detector::Start(core, std::move(detection)));
  core.SetDetector(std::move(detector));
  return {};
}

// None where none is set.
Result<std::unique_ptr<AlertWebhook>> StartWebhook(Core& core, const ServerOptions& options) {
  if (options.alert_webhook.empty()) {
    return std::unique_ptr<AlertWebhook>();
  }
  RINGFENCE_ASSIGN(std::string ca_pem,
                   os::ReadText(options.alert_webhook_ca_file, kCaFileBytesMax * 4));
  return AlertWebhook::Start(core, options.alert_webhook, std::move(ca_pem));
}

// None where none is set.
Result<std::unique_ptr<WitnessFeed>> FeedWitnesses(Core& core, const ServerOptions& options) {
  RINGFENCE_ASSIGN(std::vector<OutsideWitness> witnesses, ParseWitnesses(options.witnesses));
  if (witnesses.empty()) {
    return std::unique_ptr<WitnessFeed>();
  }
  RINGFENCE_ASSIGN(std::string ca_pem, os::ReadText(options.witness_ca_file, kCaFileBytesMax));
  WitnessFeed::Hooks hooks;
  hooks.newest = [&core]() -> std::optional<SignedHead> {
    if (!core.sequencer().leads()) {
      return std::nullopt;
    }
    Sequencer::Published published = core.sequencer().published();
    return SignedHead{published.head, std::move(published.note)};
  };
  hooks.proof = [&core](std::uint64_t from, std::uint64_t to) {
    return audit::ConsistencyProof(core.sequencer().folder(), from, to);
  };
  hooks.keep = [&core](const audit::TreeHead& head, const std::string& witness,
                       const std::string& line) {
    return core.sequencer().AddCosignature(head, witness, line);
  };
  return WitnessFeed::Start(std::move(witnesses), std::move(ca_pem), std::move(hooks), {});
}

}  // namespace

Status Run(const ServerOptions& options) {
  if (os::IsRoot()) {
    return Error{Code::kFailedPrecondition, "the server never runs as root",
                 "`ringfence up` starts it as an unprivileged user; by hand, use your own account"};
  }
  os::ShareHeaps();
  os::SetLogName("server");
  os::HoldSignals();
  const SystemClock clock;
  const KeyOptions key_options{options.state_folder + "/keys", options.names,
                               options.ca_certificate_file, options.ca_key_file};
  RINGFENCE_ASSIGN(const auto core, OpenCore(options, key_options, clock));
  RINGFENCE_TRY(StartDetection(*core, options));
  RINGFENCE_ASSIGN(const net::TlsIdentity identity,
                   OpenTlsIdentity(key_options, core->keys(), clock.Now()));
  net::ServerLimits limits;
  limits.long_body_path = kPolicyVersionsPath;
  limits.long_body_bytes_max = kPolicyRequestBytesMax;
  limits.requests_per_second_per_address = options.requests_per_second_per_address;
  // The handler may be called before Start has returned: it waits for the server's address.
  std::promise<net::Server*> promise;
  const std::shared_future<net::Server*> http_ready = promise.get_future().share();
  auto http = net::Server::Start(options.listen, identity, limits,
                                 [core = core.get(), http_ready](const net::Request& request,
                                                                 const net::Responder& responder) {
                                   Dispatch(*core, http_ready.get(), request, responder);
                                 });
  if (!http.has_value()) {
    return http.error();
  }
  net::Server* const raw = http->get();
  core->waiters().SetLater([raw](Milliseconds delay, std::function<void()> task) {
    raw->After(delay, std::move(task));
  });
  core->SetPublicAddress(options.address.empty() ? PublicAddress(raw->address(), options.names)
                                                 : options.address);
  promise.set_value(raw);
  core->database().Listen([core = core.get()](const std::string& topic) { core->Heard(topic); });
  RINGFENCE_TRY(RecordPolicy(*core, options.policy_instead_of));
  RINGFENCE_TRY(RecordStart(*core, raw->address()));
  RINGFENCE_TRY(WriteLocalFile(*core, options));
  RINGFENCE_ASSIGN(auto witnesses, FeedWitnesses(*core, options));
  RINGFENCE_ASSIGN(auto webhook, StartWebhook(*core, options));
  os::Log(
      os::Level::kInfo, "policy_in_force",
      {{"version", std::to_string(core->policy_version())}, {"digest", core->policy()->digest()}});
  os::Log(os::Level::kInfo, "serving", {{"address", raw->address()}});
  os::NotifyManager("READY=1\nSTATUS=serving at " + core->public_address());
  Tend(*core, *raw, key_options);
  os::Log(os::Level::kInfo, "stopping");
  witnesses.reset();
  webhook.reset();
  os::NotifyManager("STOPPING=1");
  audit::Entry stopped = core->NewEntry(kSystem, "server.stop");
  stopped.result = "ok";
  const Status recorded = core->RecordAlone(stopped);
  (void)core->KeepUses();
  core->waiters().ReleaseAll();
  http->reset();
  if (core->detector() != nullptr) {
    core->detector()->Stop();
  }
  core->sequencer().Stop();  // what was acknowledged is in the log before we go
  return recorded;
}

}  // namespace ringfence::server

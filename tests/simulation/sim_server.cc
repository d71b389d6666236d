#include "sim_server.h"

#include "audit/note.h"
#include "base/check.h"
#include "crypto/random.h"
#include "os/file.h"
#include "server/router.h"

namespace ringfence::simulation {
namespace {

constexpr Milliseconds kSweepEvery = std::chrono::seconds(5);

Error Broken(const std::string& why) {
  return Error{Code::kUnavailable, "the connection broke: " + why};
}

}  // namespace

SimServer::SimServer(Scheduler& scheduler, Judge& judge,
                     std::shared_ptr<const policy::Policy> policy, std::string folder)
    : scheduler_(scheduler),
      judge_(judge),
      policy_(std::move(policy)),
      folder_(std::move(folder)),
      clock_(scheduler),
      grant_seed_(crypto::RandomBytes(32)),
      log_seed_(crypto::RandomBytes(32)),
      token_key_(crypto::RandomBytes(32)) {
  auto ca = crypto::MakeCa("Ringfence CA", clock_.Now(), server::kCaLife);
  RINGFENCE_CHECK(ca.has_value());
  ca_ = std::move(*ca);
  RINGFENCE_CHECK(os::MakeDirs(folder_, 0700).has_value());
}

server::ServerKeys SimServer::Keys() const {
  auto grant = crypto::SigningKey::FromSeed(SecretBytes(ByteView(grant_seed_)));
  auto log = crypto::SigningKey::FromSeed(SecretBytes(ByteView(log_seed_)));
  const auto facts = crypto::ReadCertificate(ca_.certificate_pem);
  RINGFENCE_CHECK(grant.has_value() && log.has_value() && facts.has_value());
  return {std::move(*grant), std::move(*log), SecretBytes(ByteView(token_key_)), ca_,
          facts->fingerprint};
}

WriteFate SimServer::FateOfWrite() {
  Chance& chance = scheduler_.chance();
  if (killed_at_write_in_1000 > 0 && chance.In1000(killed_at_write_in_1000)) {
    return chance.In1000(700) ? WriteFate::kKilledAfter : WriteFate::kKilledBefore;
  }
  if (writes_failing_in_1000 > 0 && chance.In1000(writes_failing_in_1000)) {
    return chance.In1000(500) ? WriteFate::kRefused : WriteFate::kRolledBack;
  }
  return WriteFate::kGood;
}

void SimServer::Start() {
  RINGFENCE_CHECK(core_ == nullptr);
  auto database = store::OpenSqlite(folder_ + "/ringfence.db");
  RINGFENCE_CHECK(database.has_value());
  WatchOptions watch;
  watch.fate = [this] { return FateOfWrite(); };
  watch.committed = [this](store::Connection& db, const Touched& touched) {
    judge_.OnCommit(db, touched);
    if (!touched.entries.empty()) {
      ScheduleSequencer();
    }
  };
  const std::uint64_t life = ++life_;
  core_ = std::make_unique<server::Core>(
      server::Core::Parts{Watch(std::move(*database), std::move(watch)), Keys(),
                          folder_ + "/policy", policy_},
      clock_);
  core_->SetPublicAddress(server_address());
  core_->waiters().SetLater([this, life](Milliseconds delay, std::function<void()> task) {
    // Among many threads, what is due now comes in any order.
    const Milliseconds jitter = scheduler_.chance().Time(0, 3);
    scheduler_.After(delay + jitter, [this, life, task = std::move(task)] { Guarded(life, task); });
  });
  server::Core* const core = core_.get();
  auto sequencer = server::Sequencer::Open(
      core->database(),
      {log_folder(), "ringfence.dev/log/" + core->keys().log.public_key().Id(),
       "life-" + std::to_string(life), false},
      core->keys().log, [core] {
        core->waiters().Notify("audit");
        core->NotifyAllWork();
      });
  if (!sequencer.has_value()) {
    judge_.Condemn("the server does not start: " + sequencer.error().message);
    core_ = nullptr;
    return;
  }
  core_->SetSequencer(std::move(*sequencer));
  scheduler_.Trace("server starts");
  sequencer_due_ = false;
  Guarded(life, [this] {
    if (!TendLog()) {  // as the program does not start without it
      Crash("it could not take up its log");
    }
  });
  if (up()) {
    ScheduleSweep();
  }
}

// False when the database refused; anything else that is wrong with the log is a verdict.
bool SimServer::TendLog() {
  const auto stepped = core_->sequencer().Step();
  if (!stepped.has_value() && stepped.error().code != Code::kUnavailable) {
    judge_.Condemn("the audit log does not grow: " + stepped.error().message);
  }
  if (!stepped.has_value() || *stepped) {
    ScheduleSequencer();
  }
  return stepped.has_value();
}

void SimServer::Crash(const std::string& why) {
  if (core_ == nullptr) {
    return;
  }
  ++crashes;
  scheduler_.Trace("server dies: " + why);
  core_ = nullptr;
  auto open = std::move(open_);
  open_.clear();
  for (auto& [number, done] : open) {
    done(Broken("the server died"));
  }
  if (on_crash) {
    on_crash();
  }
}

void SimServer::Guarded(std::uint64_t life, const std::function<void()>& work) {
  if (core_ == nullptr || life != life_) {
    return;
  }
  try {
    work();
  } catch (const ServerKilled&) {
    Crash("at a write");
  }
}

void SimServer::ScheduleSweep() {
  scheduler_.After(kSweepEvery, [this, life = life_] {
    Guarded(life, [this] { (void)server::Sweep(*core_); });  // what fails is tried again next time
    if (core_ != nullptr && life == life_) {
      ScheduleSweep();
    }
  });
}

void SimServer::ScheduleSequencer() {
  if (sequencer_due_) {
    return;
  }
  sequencer_due_ = true;
  const Milliseconds delay = scheduler_.chance().In1000(100) ? scheduler_.chance().Time(20, 200)
                                                             : scheduler_.chance().Time(500, 8000);
  scheduler_.After(delay, [this, life = life_] {
    if (life != life_) {
      return;
    }
    sequencer_due_ = false;
    Guarded(life, [this] { (void)TendLog(); });
  });
}

void SimServer::Handle(const net::Request& request, Done done) {
  if (core_ == nullptr) {
    done(Broken("nobody listens"));
    return;
  }
  ++requests;
  const std::uint64_t number = next_request_++;
  open_.emplace(number, std::move(done));
  const net::Responder responder([this, number, life = life_](net::Response response) {
    if (life != life_ || core_ == nullptr) {
      return;
    }
    auto found = open_.extract(number);
    if (!found.empty()) {
      found.mapped()(std::move(response));
    }
  });
  Guarded(life_, [&] { server::Dispatch(*core_, nullptr, request, responder); });
}

std::string SimServer::MintToken(const std::string& principal) {
  store::Token token{"t-" + principal.substr(0, principal.find('@')),
                     principal,
                     clock_.Now(),
                     clock_.Now() + std::chrono::hours(24 * 3650),
                     "ringfence",
                     "",
                     ""};
  const Status put =
      core_->database().Write([&](store::Connection& db) { return store::PutToken(db, token); });
  RINGFENCE_CHECK(put.has_value());
  return core_->mint().Mint(token.id);
}

std::string SimServer::log_vkey() const {
  return audit::VerifierKey(core_->sequencer().origin(), 1, core_->keys().log.public_key());
}

Result<std::vector<Bytes>> SimServer::FinishLog() {
  for (bool more = true; more;) {
    RINGFENCE_ASSIGN(more, core_->sequencer().Step());
  }
  std::vector<Bytes> entries;
  const std::uint64_t size = core_->sequencer().head().size;
  for (std::uint64_t i = 0; i < size; ++i) {
    RINGFENCE_ASSIGN(Bytes entry, audit::ReadEntry(log_folder(), i, size));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace ringfence::simulation

#include "server/detector.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "crypto/random.h"
#include "fleet/node_state.h"
#include "os/file.h"
#include "os/log.h"
#include "server/core.h"

namespace ringfence::server {
namespace {

using std::chrono::steady_clock;

// Small transactions: the lease path shares the disk and never waits long behind one.
constexpr std::int64_t kEntriesPerStep = 64;
constexpr std::int64_t kEventsPerStep = 2048;
// What comes within this time is stored together.
constexpr std::chrono::milliseconds kGather{100};
constexpr std::chrono::milliseconds kBreath{5};  // between steps while there is more
constexpr std::chrono::milliseconds kTick{1000};
constexpr std::chrono::milliseconds kRetry{1000};
constexpr std::chrono::seconds kLookEvery{2};  // at the rules' files
constexpr std::chrono::seconds kTidyEvery{60};
constexpr std::chrono::hours kUploadTime{1};    // for all parts of a feed
constexpr std::int64_t kUnpersistedMax = 4096;  // events that rules see again after a restart
constexpr std::int64_t kWarmEventsMax = 50'000;
// Nodes have so long after a start to be heard of.
constexpr std::chrono::seconds kGrace{30};
// Failed sign-ins that are events of their own in a minute; the rest is counted.
constexpr std::uint64_t kTriesPerAddressMax = 60;
constexpr std::uint64_t kTriesMax = 600;
constexpr std::size_t kAddressesMax = 1024;
constexpr std::size_t kNoticesMax = 2048;

constexpr std::int64_t kAuthentication = 3002;
constexpr std::int64_t kNodeActivity = 99006;

void Fill(detect::Match& match, const store::EventRow& row, const Json& event) {
  match.time = row.time;
  match.tenant = row.tenant;
  match.lease = row.lease;
  match.node = row.node;
  match.principal = row.principal;
  match.gpus = row.gpus;
  const auto addresses = detect::TextsAt(event, "src_endpoint.ip");
  match.address = addresses.empty() ? "" : addresses.front();
}

Result<detect::Alert> AlertOf(const store::AlertRow& row) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(row.record, detect::kAlertJsonBytesMax));
  return detect::AlertFromJson(json);
}

}  // namespace

store::EventRow RowOf(detect::LiveEvent& event, std::int64_t number) {
  std::string text = event.Text(number);
  return {number,
          event.time,
          event.class_uid,
          std::move(event.log),
          std::move(event.tenant),
          std::move(event.lease),
          std::move(event.node),
          std::move(event.principal),
          std::move(event.gpus),
          std::move(text)};
}

Result<std::unique_ptr<Detector>> Detector::Start(Core& core, Options options) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(options.mapping, detect::kMappingBytesMax));
  RINGFENCE_ASSIGN(auto mapping, detect::EventMapping::Read(text, options.mapping));
  RINGFENCE_ASSIGN(auto observables, detect::Mapping::Read(options.observables));
  std::unique_ptr<Detector> detector(
      new Detector(core, std::move(options), std::move(mapping), std::move(observables)));
  RINGFENCE_TRY(core.database().Write([](store::Connection& db) -> Status {
    RINGFENCE_TRY(store::SettleDetection(db));
    return {};
  }));
  detector->LoadRules();
  Detector* const raw = detector.get();
  raw->thread_ = std::jthread([raw](const std::stop_token& stop) { raw->Loop(stop); });
  return detector;
}

Detector::~Detector() { Stop(); }

void Detector::Stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
}

void Detector::Wake() {
  {
    const std::lock_guard lock(mutex_);
    if (pending_) {
      return;
    }
    pending_ = true;
  }
  wake_.notify_all();
}

Detector::Health Detector::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

detect::LiveEvent Detector::SignInEvent(const FailedSignIn& failed, Timestamp time) const {
  detect::LiveEvent event = mapping_.Make({time, kAuthentication, "authentication", "Logon",
                                           detect::Severity::kLow, crypto::RandomId("e")});
  event.principal = failed.principal;
  JsonObject& json = event.json;
  json["status"] = "Failure";
  json["status_detail"] = failed.why;
  json["src_endpoint"] = JsonObject{{"ip", failed.address}};
  if (!failed.principal.empty()) {
    detect::SetPath(json, "actor.user.name", Json(failed.principal));
  }
  if (!failed.token.empty()) {
    detect::SetPath(json, "actor.session.token_id", Json(failed.token));
  }
  return event;
}

void Detector::Saw(const FailedSignIn& failed) {
  const Timestamp now = core_.Now();
  {
    const std::lock_guard lock(mutex_);
    EndMinute(now);
    auto found = tries_.find(failed.address);
    if (found == tries_.end() && tries_.size() < kAddressesMax) {
      found = tries_.emplace(failed.address, Tries{}).first;
    }
    if (found == tries_.end() || found->second.kept >= kTriesPerAddressMax ||
        kept_this_minute_ >= kTriesMax || notices_.size() >= kNoticesMax) {
      ++(found == tries_.end() ? unnamed_ : found->second.dropped);
      ++health_.not_kept;
      return;
    }
    ++found->second.kept;
    ++kept_this_minute_;
    notices_.push_back(SignInEvent(failed, now));
  }
  Wake();
}

// Of what was only counted, one event for each address.
void Detector::EndMinute(Timestamp now) {
  const std::int64_t minute = now.time_since_epoch() / std::chrono::minutes(1);
  if (minute == minute_) {
    return;
  }
  minute_ = minute;
  kept_this_minute_ = 0;
  const auto summary = [&](const std::string& address, std::uint64_t count) {
    detect::LiveEvent event = SignInEvent({address, {}, {}, "flood"}, now);
    event.json["count"] = count;
    notices_.push_back(std::move(event));
  };
  for (const auto& [address, tries] : tries_) {
    if (tries.dropped > 0) {
      summary(address, tries.dropped);
    }
  }
  if (unnamed_ > 0) {
    summary("", unnamed_);
  }
  unnamed_ = 0;
  tries_.clear();
}

std::vector<detect::LiveEvent> Detector::TakeNotices() {
  const std::lock_guard lock(mutex_);
  EndMinute(core_.Now());
  return std::exchange(notices_, {});
}

// Events of the entries that follow; `seen` moves past them.
Result<std::vector<detect::LiveEvent>> Detector::OfAudit(store::Detection& seen, bool& more) const {
  std::vector<detect::LiveEvent> events;
  const std::int64_t from = seen.audit;
  RINGFENCE_TRY(core_.database().Read([&](store::Connection& db) -> Status {
    events.clear();
    store::AuditFilter filter;
    filter.from = from;
    filter.limit = kEntriesPerStep;
    RINGFENCE_ASSIGN(const auto rows, store::ListAudit(db, filter));
    for (const store::AuditRow& row : rows) {
      const auto entry = audit::Entry::Parse(row.entry);
      if (!entry.has_value()) {
        detect::LiveEvent gap = mapping_.Make({core_.Now(), kNodeActivity, "node", "gap",
                                               detect::Severity::kHigh, crypto::RandomId("e")});
        detect::SetPath(gap.json, "gap.dropped", 1);
        const std::string why =
            "audit entry " + std::to_string(row.seq) + ": " + entry.error().message;
        detect::SetPath(gap.json, "gap.why", Json(why));
        events.push_back(std::move(gap));
        continue;
      }
      std::optional<model::Lease> lease;
      if (!entry->lease.empty() && mapping_.NeedsLease(entry->action)) {
        auto known = store::GetLeaseText(db, entry->lease);
        if (known.has_value()) {
          RINGFENCE_ASSIGN(lease, store::GetLease(db, entry->lease));
        }
      }
      auto born = mapping_.FromAudit(row.seq, *entry, lease.has_value() ? &*lease : nullptr);
      std::move(born.begin(), born.end(), std::back_inserter(events));
    }
    more = static_cast<std::int64_t>(rows.size()) == kEntriesPerStep;
    seen.audit = rows.empty() ? from : rows.back().seq + 1;
    return {};
  }));
  return events;
}

// Nodes that have fallen silent, or were heard again, since it was last said.
std::vector<detect::LiveEvent> Detector::OfSilence(store::Detection& seen) const {
  std::vector<detect::LiveEvent> events;
  std::vector<model::Node> nodes;
  const Status read = core_.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(nodes, core_.Nodes(db));
    return {};
  });
  const Timestamp now = core_.Now();
  if (!read.has_value()) {
    return events;
  }
  std::vector<std::string> silent;
  for (const model::Node& node : nodes) {
    const bool is_silent = fleet::StateOf(node, now) == fleet::NodeState::kSilent;
    const bool was_silent =
        std::find(seen.silent.begin(), seen.silent.end(), node.name) != seen.silent.end();
    if (is_silent) {
      silent.push_back(node.name);
    }
    if (is_silent == was_silent) {
      continue;
    }
    detect::LiveEvent event =
        mapping_.Make({now, kNodeActivity, "node", is_silent ? "silent" : "heard",
                       is_silent ? detect::Severity::kHigh : detect::Severity::kInformational,
                       crypto::RandomId("e")});
    event.node = node.name;
    event.json["node"] = JsonObject{{"name", node.name}};
    event.json["message"] =
        is_silent ? "last heard of at " + FormatTime(node.last_seen) : "heard of again";
    events.push_back(std::move(event));
  }
  seen.silent = std::move(silent);
  return events;
}

// Adds the events, unless somebody else has gone on from `before` meanwhile.
Status Detector::Keep(const store::Detection& before, const store::Detection& after,
                      std::vector<detect::LiveEvent> events) {
  RINGFENCE_TRY(core_.database().Write([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(store::Detection now, store::GetDetection(db));
    const bool moves = after.audit != before.audit || after.silent != before.silent;
    if (moves && (now.audit != before.audit || now.silent != before.silent)) {
      return Error{Code::kConflict, "another server turned the same entries into events"};
    }
    if (moves) {
      now.audit = after.audit;
      now.silent = after.silent;
    }
    for (const detect::LiveEvent& event : events) {
      detect::LiveEvent copy = event;  // the work may be run again
      RINGFENCE_TRY(store::InsertEvent(db, now, RowOf(copy, now.next)));
    }
    return store::PutDetection(db, now);
  }));
  if (!events.empty()) {
    core_.NotifyEvents();
  }
  return {};
}

Result<bool> Detector::Step(bool leads) {
  store::Detection before;
  RINGFENCE_TRY(core_.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(before, store::GetDetection(db));
    return {};
  }));
  store::Detection after = before;
  bool more = false;
  std::vector<detect::LiveEvent> events;
  if (leads) {
    RINGFENCE_ASSIGN(events, OfAudit(after, more));
    if (core_.Now() - core_.started() > kGrace) {
      auto silence = OfSilence(after);
      std::move(silence.begin(), silence.end(), std::back_inserter(events));
    }
  }
  auto notices = TakeNotices();
  const std::vector<detect::LiveEvent> mine = notices;
  std::move(notices.begin(), notices.end(), std::back_inserter(events));
  if (!events.empty() || after.audit != before.audit || after.silent != before.silent) {
    const Status kept = Keep(before, after, std::move(events));
    if (!kept.has_value()) {
      const std::lock_guard lock(mutex_);  // tried again
      notices_.insert(notices_.begin(), mine.begin(), mine.end());
      return kept.error().code == Code::kConflict ? Result<bool>(true) : kept.error();
    }
  }
  if (!leads) {
    warm_ = false;  // whoever leads next begins with what the database says
    baselines_.Unload();
    return false;
  }
  RINGFENCE_ASSIGN(const bool unseen, Evaluate());
  RINGFENCE_ASSIGN(const bool hunting, Hunt());
  RINGFENCE_TRY(Tidy());
  return more || unseen || hunting;
}

void Detector::LoadRules() {
  const auto now = steady_clock::now();
  if (looked_.has_value() && now - *looked_ < kLookEvery) {
    return;
  }
  looked_ = now;
  std::string stamp = detect::StampOfRules(options_.rules);
  if (stamp == stamp_) {
    return;
  }
  detect::LiveRules fresh = detect::LoadLiveRules(options_.rules);
  const std::vector<std::string> problems = fresh.problems;
  stamp_ = std::move(stamp);
  // A set with a mistake in it does not replace a good one; at a start, what is good of it counts.
  if (live_.engine == nullptr || problems.empty()) {
    live_ = std::move(fresh);
    warm_ = false;
  }
  os::Log(problems.empty() ? os::Level::kInfo : os::Level::kError,
          problems.empty() ? "rules_loaded" : "rules_have_problems",
          {{"rules", std::to_string(live_.rules)}, {"why", problems.empty() ? "" : problems[0]}});
  const std::lock_guard lock(mutex_);
  health_.rules = live_.rules;
  health_.rule_problems = problems;
}

// Shows the engine what correlations may have to remember, without reporting it again.
Status Detector::WarmUp(std::int64_t evaluated) {
  const Timestamp since = core_.Now() - live_.memory;
  if (live_.engine->counts().events > 0) {
    detect::Forget(live_);
  }
  std::int64_t from = std::max<std::int64_t>(0, evaluated - kWarmEventsMax);
  while (from < evaluated) {
    std::vector<store::EventRow> rows;
    RINGFENCE_TRY(core_.database().Read([&](store::Connection& db) -> Status {
      store::EventFilter filter;
      filter.from = from;
      filter.since = since;
      filter.limit = kEventsPerStep;
      RINGFENCE_ASSIGN(rows, store::ListEvents(db, filter));
      return {};
    }));
    if (rows.empty()) {
      break;
    }
    for (const store::EventRow& row : rows) {
      from = row.seq + 1;
      if (row.seq < evaluated) {
        (void)live_.engine->Feed(static_cast<std::uint64_t>(row.seq), row.event, false,
                                 [](const sigma::Finding&) {});
      }
    }
  }
  evaluated_ = evaluated;
  persisted_ = evaluated;
  warm_ = true;
  return {};
}

Result<bool> Detector::Evaluate() {
  LoadRules();
  if (!warm_) {
    store::Detection known;
    RINGFENCE_TRY(core_.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(known, store::GetDetection(db));
      return {};
    }));
    // Rules that were read again go on where the old ones were.
    RINGFENCE_TRY(
        WarmUp(std::max(known.evaluated, persisted_ == known.evaluated ? evaluated_ : 0)));
    persisted_ = known.evaluated;
  }
  RINGFENCE_TRY(intel_.Look(evaluated_));
  RINGFENCE_TRY(baselines_.Ready(core_.database()));
  std::vector<store::EventRow> rows;
  RINGFENCE_TRY(core_.database().Read([&](store::Connection& db) -> Status {
    store::EventFilter filter;
    filter.from = evaluated_;
    filter.limit = kEventsPerStep;
    RINGFENCE_ASSIGN(rows, store::ListEvents(db, filter));
    return {};
  }));
  std::vector<Found> found;
  for (const store::EventRow& row : rows) {
    (void)live_.engine->Feed(static_cast<std::uint64_t>(row.seq), row.event, false,
                             [&](const sigma::Finding& finding) {
                               Found one{detect::MatchOf(*finding.rule, finding.correlation),
                                         static_cast<std::int64_t>(finding.event)};
                               if (one.match.members.empty()) {
                                 one.match.members.push_back(one.event);
                               }
                               found.push_back(std::move(one));
                             });
    std::vector<detect::Match> shown;
    intel_.Match(row, shown);
    baselines_.Take(row, shown);
    for (detect::Match& match : shown) {
      found.push_back({std::move(match), row.seq});
    }
  }
  std::vector<detect::Match> unusual;
  baselines_.Tick(core_.Now(), unusual);
  for (detect::Match& match : unusual) {
    const std::int64_t event = match.members.front();
    found.push_back({std::move(match), event});
  }
  if (rows.empty() && found.empty()) {
    return false;
  }
  const std::int64_t evaluated = rows.empty() ? evaluated_ : rows.back().seq + 1;
  if (!found.empty() || evaluated - persisted_ >= kUnpersistedMax) {
    if (const Status raised = Raise(found, evaluated); !raised.has_value()) {
      warm_ = false;  // the engine has seen what nobody knows it has
      baselines_.Unload();
      evaluated_ = persisted_;
      return raised.error().code == Code::kConflict ? Result<bool>(true) : raised.error();
    }
    persisted_ = evaluated;
  }
  evaluated_ = evaluated;
  {
    const std::lock_guard lock(mutex_);
    health_.not_related = live_.engine->dropped();
    health_.evaluated = evaluated_;
    health_.indicators = intel_.indicators();
    health_.series = baselines_.series();
  }
  return static_cast<std::int64_t>(rows.size()) == kEventsPerStep;
}

// Holds some of the stored events against feeds that came after them.
Result<bool> Detector::Hunt() {
  RINGFENCE_ASSIGN(LiveIntel::Hunted hunted, intel_.Hunt());
  if (hunted.feeds.empty()) {
    return false;
  }
  std::vector<Found> found;
  for (detect::Match& match : hunted.found) {
    const std::int64_t event = match.members.front();
    found.push_back({std::move(match), event});
  }
  RINGFENCE_TRY(core_.database().Write([&](store::Connection& db) -> Status {
    for (const store::IntelFeed& feed : hunted.feeds) {
      RINGFENCE_TRY(store::SetHunted(db, feed));
    }
    return RaiseInside(db, found);
  }));
  intel_.Went(hunted);
  if (!found.empty()) {
    core_.NotifyAlerts();
  }
  return true;
}

// What was found and that it was looked for, together. kConflict when another server has.
Status Detector::Raise(const std::vector<Found>& found, std::int64_t evaluated) {
  RINGFENCE_TRY(core_.database().Write([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(store::Detection now, store::GetDetection(db));
    if (now.evaluated != persisted_) {
      return Error{Code::kConflict, "another server has evaluated these events"};
    }
    now.evaluated = evaluated;
    RINGFENCE_TRY(RaiseInside(db, found));
    return store::PutDetection(db, now);
  }));
  if (!found.empty()) {
    core_.NotifyAlerts();
  }
  return {};
}

Status Detector::RaiseInside(store::Connection& db, const std::vector<Found>& found) const {
  struct Change {
    detect::Alert alert;
    bool is_new = false;
  };
  const Timestamp now = core_.Now();
  std::map<std::string, Change> changes;
  for (const Found& one : found) {
    detect::Match match = one.match;
    RINGFENCE_ASSIGN(const auto rows, store::EventsNumbered(db, match.members));
    std::vector<Json> events;
    for (const store::EventRow& row : rows) {
      RINGFENCE_ASSIGN(Json event, ParseJson(row.event, detect::kLiveEventBytesMax * 2));
      Fill(match, row, event);
      events.push_back(std::move(event));
    }
    const std::string what = match.What();
    auto known = changes.find(what);
    if (known == changes.end()) {
      Change change;
      RINGFENCE_ASSIGN(const auto row, store::FindAlert(db, what));
      if (row.has_value()) {
        RINGFENCE_ASSIGN(change.alert, AlertOf(*row));
      }
      if (!row.has_value() || !change.alert.Takes(now)) {
        change = {};
        change.alert.id = crypto::RandomId("alert");
        change.is_new = true;
      }
      known = changes.emplace(what, std::move(change)).first;
    }
    known->second.alert.Add(match, std::move(events), now);
  }
  for (const auto& [what, change] : changes) {
    const detect::Alert& alert = change.alert;
    const store::AlertRow row{alert.id,
                              0,
                              what,
                              alert.match.tenant,
                              std::string(Name(alert.status)),
                              static_cast<std::int64_t>(alert.match.severity),
                              !options_.tells,
                              CanonicalJson(detect::AlertToJson(alert))};
    RINGFENCE_TRY(change.is_new ? store::InsertAlert(db, row) : store::UpdateAlert(db, row));
  }
  return {};
}

Status Detector::Tidy() {
  RINGFENCE_TRY(baselines_.KeepNowAndThen(core_.database(), core_.Now()));
  const auto now = steady_clock::now();
  if (tidied_.has_value() && now - *tidied_ < kTidyEvery) {
    return {};
  }
  bool more = false;
  RINGFENCE_TRY(core_.database().Write([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(store::Detection known, store::GetDetection(db));
    if (known.evaluated < evaluated_) {
      known.evaluated = evaluated_;
      RINGFENCE_TRY(store::PutDetection(db, known));
    }
    RINGFENCE_TRY(store::ForgetIntelParts(db, core_.Now() - kUploadTime));
    RINGFENCE_ASSIGN(more,
                     store::ForgetEvents(db, {core_.Now() - options_.keep, options_.bytes_max}));
    return {};
  }));
  persisted_ = std::max(persisted_, evaluated_);
  if (!more) {
    tidied_ = now;
  }
  return {};
}

void Detector::Loop(const std::stop_token& stop) {
  // After a stop is asked for, what was acknowledged is still seen.
  for (bool more = true; more || !stop.stop_requested();) {
    if (!more) {
      std::unique_lock lock(mutex_);
      (void)wake_.wait_for(lock, stop, kTick, [&] { return pending_; });
      pending_ = false;
    }
    if (!stop.stop_requested()) {
      std::this_thread::sleep_for(more ? kBreath : kGather);
    }
    const auto stepped = Step(core_.sequencer().leads());
    more = stepped.has_value() && *stepped;
    const std::string stuck = stepped.has_value() ? "" : stepped.error().message;
    bool changed = false;
    {
      const std::lock_guard lock(mutex_);
      changed = stuck != health_.stuck;
      health_.stuck = stuck;
    }
    if (changed && !stuck.empty()) {
      os::Log(os::Level::kError, "detection_stuck", {{"why", stuck}});
    }
    if (!stuck.empty() && !stop.stop_requested()) {
      std::this_thread::sleep_for(kRetry);
    }
  }
  if (const Status kept = baselines_.Keep(core_.database(), core_.Now()); !kept.has_value()) {
    os::Log(os::Level::kError, "baselines_not_kept", {{"why", kept.error().message}});
  }
}

}  // namespace ringfence::server

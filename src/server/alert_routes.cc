// Alerts: seeing them with what surrounds them, acknowledging and silencing them. Those of a tenant
// need the action there, those of none at the root.

#include "base/encoding.h"
#include "crypto/sha256.h"
#include "detect/alert.h"
#include "server/routes.h"
#include "store/alert_records.h"
#include "store/event_records.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kWaitMsMax = 30000;
constexpr Milliseconds kAround = std::chrono::minutes(10);
constexpr std::int64_t kAroundMax = 50;
constexpr std::size_t kNoteBytesMax = 1024;
constexpr std::int64_t kSilenceMsMax = std::int64_t{30} * 24 * 3600 * 1000;

model::TenantPath TenantOf(const std::string& text) {
  auto path = text.empty() ? Result<model::TenantPath>(model::TenantPath::Root())
                           : model::TenantPath::Create(text);
  return path.has_value() ? *path : model::TenantPath::Root();
}

Result<detect::Alert> AlertOf(const store::AlertRow& row) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(row.record, detect::kAlertJsonBytesMax));
  return detect::AlertFromJson(json);
}

// In a list: all but the events.
JsonObject LineOf(const detect::Alert& alert) {
  JsonObject json = detect::AlertToJson(alert);
  json.erase("events");
  json.erase("description");
  json.erase("false_positives");
  return json;
}

struct Wanted {
  store::AlertFilter filter;
  std::string principal;
  std::string address;
  std::string version;  // that the caller knows
};

Result<JsonObject> PageOfAlerts(Core& core, const Wanted& wanted) {
  std::vector<store::AlertRow> rows;
  RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(rows, store::ListAlerts(db, wanted.filter));
    return {};
  }));
  const auto policy = core.policy();
  JsonArray items;
  std::string all;
  for (const store::AlertRow& row : rows) {
    if (!policy
             ->Decide({wanted.principal,
                       policy::Action::kAlertRead,
                       TenantOf(row.tenant),
                       {core.Now(), wanted.address}})
             .allowed) {
      continue;
    }
    core.uses().Used(wanted.principal, policy::Action::kAlertRead, TenantOf(row.tenant),
                     core.Now());
    RINGFENCE_ASSIGN(const detect::Alert alert, AlertOf(row));
    items.emplace_back(LineOf(alert));
    all += alert.id + " " + std::to_string(alert.count) + " " + row.status + " " + alert.owner +
           FormatTime(alert.updated) + "\n";
  }
  JsonObject body{{"items", std::move(items)},
                  {"version", Hex(crypto::Sha256(AsBytes(all))).substr(0, 16)}};
  if (static_cast<std::int64_t>(rows.size()) == wanted.filter.limit) {
    body["next_cursor"] = std::to_string(rows.back().number);
  }
  return body;
}

Result<Wanted> WantedOf(const Call& call) {
  Wanted wanted;
  RINGFENCE_ASSIGN(const Page page, PageOf(call.request));
  wanted.filter.limit = page.limit;
  RINGFENCE_ASSIGN(wanted.filter.before, IntQuery(call.request, "cursor", 0, 0, INT64_MAX));
  if (const std::string_view status = call.request.Query("status"); !status.empty()) {
    RINGFENCE_TRY(detect::ParseAlertStatus(status));
    wanted.filter.status = status;
  }
  if (const std::string_view text = call.request.Query("severity"); !text.empty()) {
    const detect::Severity severity = detect::ParseSeverity(text);
    if (Name(severity) != text) {
      return Error{Code::kInvalidArgument,
                   "severity must be informational, low, medium, high or critical",
                   {},
                   "severity"};
    }
    wanted.filter.severity_least = static_cast<std::int64_t>(severity);
  }
  if (const std::string_view tenant = call.request.Query("tenant"); !tenant.empty()) {
    RINGFENCE_ASSIGN(const model::TenantPath path, model::TenantPath::Create(tenant));
    RINGFENCE_TRY(Authorize(call, policy::Action::kAlertRead, path));
    wanted.filter.tenant = path.is_root() ? "" : path.text();
  }
  wanted.principal = call.caller.principal;
  wanted.address = call.caller.address;
  wanted.version = call.request.Query("version");
  return wanted;
}

// The lease and who is on it, for those who may see leases there.
Result<JsonObject> LeaseOf(const Call& call, store::Connection& db, const std::string& id) {
  RINGFENCE_ASSIGN(const model::Lease lease, store::GetLease(db, id));
  if (!Decide(call, policy::Action::kLeaseRead, lease.request.tenant).allowed) {
    return JsonObject{};
  }
  JsonArray command;
  for (const std::string& word : lease.request.command) {
    command.emplace_back(word);
  }
  JsonArray gpus;
  for (const std::string& uuid : lease.gpus) {
    gpus.emplace_back(uuid);
  }
  JsonObject json{{"id", lease.id},
                  {"principal", lease.principal},
                  {"tenant", lease.request.tenant.text()},
                  {"state", std::string(Name(lease.state))},
                  {"node", lease.node},
                  {"gpus", std::move(gpus)},
                  {"command", std::move(command)},
                  {"outcome", lease.outcome},
                  {"created", FormatTime(lease.created)}};
  if (lease.started.has_value()) {
    json["started"] = FormatTime(*lease.started);
  }
  if (lease.ended.has_value()) {
    json["ended"] = FormatTime(*lease.ended);
  }
  return json;
}

// What else happened on its GPU around it; without one, on its lease, node or by its principal.
Result<JsonArray> AroundIt(const Call& call, store::Connection& db, const detect::Alert& alert) {
  store::EventFilter filter;
  filter.since = alert.first - kAround;
  filter.until = alert.last + kAround;
  filter.newest_first = true;
  filter.limit = kAroundMax;
  const detect::Match& match = alert.match;
  if (!match.gpus.empty()) {
    filter.gpu = match.gpus.front();
  } else if (!match.lease.empty()) {
    filter.lease = match.lease;
  } else if (!match.node.empty()) {
    filter.node = match.node;
  } else if (!match.principal.empty()) {
    filter.principal = match.principal;
  } else {
    return JsonArray();
  }
  RINGFENCE_ASSIGN(const auto rows, store::ListEvents(db, filter));
  JsonArray items;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (!Decide(call, policy::Action::kEventRead, TenantOf(row->tenant)).allowed) {
      continue;
    }
    RINGFENCE_ASSIGN(Json event, ParseJson(row->event, detect::kLiveEventBytesMax * 2));
    items.push_back(std::move(event));
  }
  return items;
}

Result<detect::Alert> AlertFor(const Call& call, store::Connection& db, store::AlertRow& row) {
  RINGFENCE_ASSIGN(row, store::GetAlert(db, call.params.find("alert")->second));
  return AlertOf(row);
}

Result<JsonObject> Whole(const Call& call) {
  JsonObject body;
  std::string tenant;
  RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
    store::AlertRow row;
    RINGFENCE_ASSIGN(const detect::Alert alert, AlertFor(call, db, row));
    tenant = row.tenant;
    body = detect::AlertToJson(alert);
    JsonArray steps;
    for (const std::string& step : detect::NextSteps(alert)) {
      steps.emplace_back(step);
    }
    body["next_steps"] = std::move(steps);
    if (!alert.match.lease.empty()) {
      auto lease = LeaseOf(call, db, alert.match.lease);
      if (lease.has_value() && !lease->empty()) {
        body["on_lease"] = std::move(lease).value();
      }
    }
    RINGFENCE_ASSIGN(JsonArray around, AroundIt(call, db, alert));
    body["around"] = std::move(around);
    return {};
  }));
  RINGFENCE_TRY(Authorize(call, policy::Action::kAlertRead, TenantOf(tenant)));
  return body;
}

// Changes an alert, with its entry in the same transaction.
Result<net::Response> Change(const Call& call, std::string_view action,
                             const std::function<void(detect::Alert&, audit::Entry&)>& change) {
  store::AlertRow seen;
  RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_TRY(AlertFor(call, db, seen));
    return {};
  }));
  const model::TenantPath tenant = TenantOf(seen.tenant);
  RINGFENCE_TRY(Authorize(call, policy::Action::kAlertManage, tenant));
  detect::Alert alert;
  RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
    store::AlertRow row;
    RINGFENCE_ASSIGN(alert, AlertFor(call, db, row));
    audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), action);
    entry.tenant = row.tenant;
    entry.lease = alert.match.lease;
    entry.node = alert.match.node;
    Note(call, entry);
    entry.result = "ok";
    entry.detail["alert"] = alert.id;
    entry.detail["rule"] = alert.match.rule.substr(0, 256);
    alert.owner = call.caller.principal;
    alert.until.reset();
    change(alert, entry);
    if (!alert.note.empty()) {
      entry.detail["note"] = alert.note;
    }
    row.status = Name(alert.status);
    row.record = CanonicalJson(detect::AlertToJson(alert));
    RINGFENCE_TRY(store::UpdateAlert(db, row));
    return Core::Record(db, entry);
  }));
  call.core.NotifyAlerts();
  return net::Response::OfJson(200, LineOf(alert));
}

}  // namespace

void ListAlerts(const Call& call, const net::Responder& responder) {
  const auto wanted = WantedOf(call);
  const auto wait = IntQuery(call.request, "wait_ms", 0, 0, kWaitMsMax);
  if (!wanted.has_value() || !wait.has_value()) {
    responder.Send(net::Response::OfError(wanted.has_value() ? wait.error() : wanted.error()));
    return;
  }
  Core& core = call.core;
  core.waiters().Park("alert", Milliseconds(*wait),
                      [&core, responder, wanted = *wanted](bool last) {
                        auto body = PageOfAlerts(core, wanted);
                        if (body.has_value() && !last) {
                          const auto& version = (*body)["version"].as_string();
                          if (std::string_view(version.data(), version.size()) == wanted.version) {
                            return false;
                          }
                        }
                        responder.Send(body.has_value() ? net::Response::OfJson(200, *body)
                                                        : net::Response::OfError(body.error()));
                        return true;
                      });
}

void GetAlert(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const JsonObject body, Whole(call));
    return net::Response::OfJson(200, body);
  });
}

void AckAlert(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
    RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
    RINGFENCE_ASSIGN(const std::string note, reader.StringOr("note", "", kNoteBytesMax));
    RINGFENCE_TRY(reader.Finish());
    return Change(call, "alert.ack", [&](detect::Alert& alert, audit::Entry& /*entry*/) {
      alert.status = detect::AlertStatus::kAcked;
      alert.note = note;
    });
  });
}

void SilenceAlert(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
    RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
    RINGFENCE_ASSIGN(const std::int64_t span, reader.Int("for_ms", 1000, kSilenceMsMax));
    RINGFENCE_ASSIGN(const std::string note, reader.String("note", kNoteBytesMax));
    RINGFENCE_TRY(reader.Finish());
    if (note.empty()) {
      return Error{Code::kInvalidArgument, "a silence needs a reason", "say why in note", "note"};
    }
    return Change(call, "alert.silence", [&](detect::Alert& alert, audit::Entry& entry) {
      alert.status = detect::AlertStatus::kSilenced;
      alert.until = call.core.Now() + Milliseconds(span);
      alert.note = note;
      entry.detail["until"] = FormatTime(*alert.until);
    });
  });
}

}  // namespace ringfence::server

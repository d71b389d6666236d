// Events, as far as the caller may see them: those of a tenant need event.read there, those of none
// need it at the root.

#include <algorithm>
#include <charconv>
#include <map>

#include "detect/live_event.h"
#include "server/routes.h"
#include "store/event_records.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kWaitMsMax = 30000;
constexpr std::int64_t kScanRows = 500;      // read at once
constexpr std::int64_t kScanMax = 20'000;    // looked at for one page
constexpr std::int64_t kCountMax = 200'000;  // looked at for one count
constexpr std::size_t kFieldsMax = 16;
constexpr std::size_t kGroupsMax = 1000;

struct Wanted {
  store::EventFilter filter;
  std::vector<std::pair<std::string, std::string>> fields;  // path and value
};

Result<std::optional<Timestamp>> TimeQuery(const net::Request& request, std::string_view name) {
  const std::string_view text = request.Query(name);
  if (text.empty()) {
    return std::optional<Timestamp>();
  }
  auto time = ParseTime(text);
  if (!time.has_value()) {
    Error error = Prefix(name, time.error());
    error.field = name;
    return error;
  }
  return std::optional<Timestamp>(*time);
}

Result<Wanted> WantedOf(const Call& call) {
  const net::Request& request = call.request;
  Wanted wanted;
  store::EventFilter& filter = wanted.filter;
  RINGFENCE_ASSIGN(filter.since, TimeQuery(request, "since"));
  RINGFENCE_ASSIGN(filter.until, TimeQuery(request, "until"));
  RINGFENCE_ASSIGN(filter.class_uid, IntQuery(request, "class", 0, 1, 99999));
  filter.log = request.Query("log");
  filter.lease = request.Query("lease");
  filter.node = request.Query("node");
  filter.gpu = request.Query("gpu");
  filter.principal = request.Query("principal");
  if (const std::string_view tenant = request.Query("tenant"); !tenant.empty()) {
    RINGFENCE_ASSIGN(const model::TenantPath path, model::TenantPath::Create(tenant));
    RINGFENCE_TRY(Authorize(call, policy::Action::kEventRead, path));
    filter.tenant = path.is_root() ? "" : path.text();
  }
  for (const auto& [name, value] : request.query) {
    if (name != "field") {
      continue;
    }
    const std::size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0 || wanted.fields.size() == kFieldsMax) {
      return Error{Code::kInvalidArgument,
                   "field must be NAME=VALUE, " + std::to_string(kFieldsMax) + " at most",
                   "for example field=gpu.uuid=GPU-1; names are in docs/formats/events.md",
                   "field"};
    }
    wanted.fields.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  }
  const std::string_view order = request.Query("order");
  if (!order.empty() && order != "oldest" && order != "newest") {
    return Error{Code::kInvalidArgument, "order must be oldest or newest", {}, "order"};
  }
  filter.newest_first = order != "oldest";
  return wanted;
}

// What one caller may see, asked of policy once for each tenant.
class Sight {
 public:
  Sight(Core& core, std::string principal, policy::Circumstances circumstances)
      : core_(core),
        policy_(core.policy()),
        principal_(std::move(principal)),
        circumstances_(std::move(circumstances)) {}

  bool Sees(const std::string& tenant) {
    const auto known = known_.find(tenant);
    if (known != known_.end()) {
      return known->second;
    }
    const auto path = tenant.empty() ? Result<model::TenantPath>(model::TenantPath::Root())
                                     : model::TenantPath::Create(tenant);
    const bool sees =
        path.has_value() &&
        policy_->Decide({principal_, policy::Action::kEventRead, *path, circumstances_}).allowed;
    known_.emplace(tenant, sees);
    if (sees) {
      core_.uses().Used(principal_, policy::Action::kEventRead, *path, core_.Now());
    }
    return sees;
  }

 private:
  Core& core_;
  std::shared_ptr<const policy::Policy> policy_;
  std::string principal_;
  policy::Circumstances circumstances_;
  std::map<std::string, bool> known_;
};

bool HasFields(const Json& event, const Wanted& wanted) {
  return std::all_of(wanted.fields.begin(), wanted.fields.end(), [&](const auto& field) {
    const auto texts = detect::TextsAt(event, field.first);
    return std::find(texts.begin(), texts.end(), field.second) != texts.end();
  });
}

struct Found {
  JsonArray items;
  std::int64_t last = -1;  // the last one that was looked at
  bool at_end = false;
};

// Looks at rows until `take` has had enough (it says so by false), or `scan_max` were looked at.
Result<Found> Scan(Core& core, const Wanted& wanted, Sight& sight, std::int64_t scan_max,
                   const std::function<bool(Json event)>& take) {
  Found found;
  store::EventFilter filter = wanted.filter;
  filter.limit = kScanRows;
  for (std::int64_t looked = 0; looked < scan_max && !found.at_end;) {
    std::vector<store::EventRow> rows;
    RINGFENCE_TRY(core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(rows, store::ListEvents(db, filter));
      return {};
    }));
    for (const store::EventRow& row : rows) {
      found.last = row.seq;
      ++looked;
      if (!sight.Sees(row.tenant)) {
        continue;
      }
      RINGFENCE_ASSIGN(Json event, ParseJson(row.event, detect::kLiveEventBytesMax * 2));
      if (HasFields(event, wanted) && !take(std::move(event))) {
        return found;
      }
    }
    found.at_end = static_cast<std::int64_t>(rows.size()) < filter.limit;
    if (!rows.empty()) {
      filter.from = filter.newest_first ? found.last : found.last + 1;
      found.at_end = found.at_end || (filter.newest_first && found.last == 0);
    }
  }
  return found;
}

Result<Found> PageOfEvents(Core& core, const Wanted& wanted, const Caller& caller,
                           std::int64_t limit) {
  Sight sight(core, caller.principal, {core.Now(), caller.address});
  JsonArray items;
  RINGFENCE_ASSIGN(Found found, Scan(core, wanted, sight, kScanMax, [&](Json event) {
                     items.push_back(std::move(event));
                     return static_cast<std::int64_t>(items.size()) < limit;
                   }));
  found.items = std::move(items);
  return found;
}

net::Response Response(Found found, const Wanted& wanted) {
  JsonObject body{{"items", std::move(found.items)}};
  if (!wanted.filter.newest_first) {
    // Always there: a reader that follows the events goes on from it.
    body["next_cursor"] = std::to_string(found.last < 0 ? wanted.filter.from : found.last + 1);
  } else if (!found.at_end && found.last > 0) {
    body["next_cursor"] = std::to_string(found.last);
  }
  return net::Response::OfJson(200, body);
}

}  // namespace

void ListEvents(const Call& call, const net::Responder& responder) {
  auto wanted = WantedOf(call);
  const auto page = PageOf(call.request);
  const auto wait = IntQuery(call.request, "wait_ms", 0, 0, kWaitMsMax);
  const auto from = IntQuery(call.request, "cursor", 0, 0, INT64_MAX);
  for (const auto* error :
       {wanted.has_value() ? nullptr : &wanted.error(), page.has_value() ? nullptr : &page.error(),
        wait.has_value() ? nullptr : &wait.error(), from.has_value() ? nullptr : &from.error()}) {
    if (error != nullptr) {
      responder.Send(net::Response::OfError(*error));
      return;
    }
  }
  wanted->filter.from = *from;
  Core& core = call.core;
  core.waiters().Park(
      "event", Milliseconds(*wait),
      [&core, responder, wanted = *wanted, limit = page->limit, caller = call.caller](bool last) {
        auto found = PageOfEvents(core, wanted, caller, limit);
        if (found.has_value() && found->items.empty() && !last) {
          return false;
        }
        responder.Send(found.has_value() ? Response(std::move(found).value(), wanted)
                                         : net::Response::OfError(found.error()));
        return true;
      });
}

void CountEvents(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const Wanted wanted, WantedOf(call));
    const std::string by(call.request.Query("by"));
    Sight sight(call.core, call.caller.principal, {call.core.Now(), call.caller.address});
    std::int64_t count = 0;
    std::map<std::string, std::int64_t> groups;
    std::int64_t elsewhere = 0;  // of groups that found no room
    RINGFENCE_ASSIGN(const Found found,
                     Scan(call.core, wanted, sight, kCountMax, [&](const Json& event) {
                       ++count;
                       if (by.empty()) {
                         return true;
                       }
                       const auto texts = detect::TextsAt(event, by);
                       const std::string value = texts.empty() ? "" : texts.front();
                       if (groups.contains(value) || groups.size() < kGroupsMax) {
                         ++groups[value];
                       } else {
                         ++elsewhere;
                       }
                       return true;
                     }));
    JsonArray list;
    for (const auto& [value, number] : groups) {
      list.emplace_back(JsonObject{{"value", value}, {"count", number}});
    }
    return net::Response::OfJson(200, JsonObject{{"count", count},
                                                 {"complete", found.at_end},
                                                 {"groups", std::move(list)},
                                                 {"elsewhere", elsewhere}});
  });
}

}  // namespace ringfence::server

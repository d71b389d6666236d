// What leases used, summed up over those that the caller may see: with usage.read at a tenant all
// of its leases, and everybody's own.

#include <map>

#include "lease/usage.h"
#include "server/routes.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kScanRows = 500;  // read at once, so that writers get their turn
constexpr std::size_t kRowsMax = 25'000;

Result<Timestamp> TimeQuery(const net::Request& request, std::string_view name,
                            Timestamp fallback) {
  const std::string_view text = request.Query(name);
  if (text.empty()) {
    return fallback;
  }
  auto time = ParseTime(text);
  if (!time.has_value()) {
    Error error = Prefix(name, time.error());
    error.field = name;
    return error;
  }
  return *time;
}

struct Wanted {
  lease::UsageBy by = lease::UsageBy::kTenant;
  lease::UsageWindow window;
  store::LeaseFilter filter;
};

Result<Wanted> WantedOf(const Call& call) {
  Wanted wanted;
  const Timestamp now = call.core.Now();
  const std::string_view by = call.request.Query("by");
  RINGFENCE_ASSIGN(wanted.by, lease::ParseUsageBy(by.empty() ? "tenant" : by));
  RINGFENCE_ASSIGN(wanted.window.from, TimeQuery(call.request, "from", Timestamp()));
  RINGFENCE_ASSIGN(wanted.window.to, TimeQuery(call.request, "to", now));
  if (wanted.window.to <= wanted.window.from) {
    return Error{Code::kInvalidArgument,
                 "to (" + FormatTime(wanted.window.to) + ") is not after from (" +
                     FormatTime(wanted.window.from) + ")",
                 "write the earlier time as from", "to"};
  }
  wanted.window.to = std::min(wanted.window.to, now);
  if (const std::string_view tenant = call.request.Query("tenant"); !tenant.empty()) {
    RINGFENCE_ASSIGN(const model::TenantPath path, model::TenantPath::Create(tenant));
    wanted.filter.tenant = path.text();
  }
  wanted.filter.limit = kScanRows;
  return wanted;
}

// Asked of policy once for each tenant.
class Sight {
 public:
  explicit Sight(const Call& call) : call_(call) {}

  bool Sees(const model::Lease& lease) {
    const auto [at, fresh] = known_.emplace(lease.request.tenant.text(), false);
    if (fresh) {
      at->second = Decide(call_, policy::Action::kUsageRead, lease.request.tenant).allowed;
    }
    return at->second || lease.principal == call_.caller.principal;
  }

 private:
  const Call& call_;
  std::map<std::string, bool> known_;
};

JsonObject ToJson(const lease::UsageSums& sums) {
  const auto number = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  return {{"leases", number(sums.leases)},
          {"gpu_ms", sums.gpu.count()},
          {"slice_ms", sums.slice.count()},
          {"scrub_ms", sums.scrub.count()},
          {"memory_gib_seconds", number(sums.memory_mib_seconds / 1024)},
          {"memory_unknown_ms", sums.memory_unknown.count()},
          // Nothing measures it yet, and a rated power times a time would be an invention.
          {"energy_joules", nullptr}};
}

JsonObject ToJson(const lease::UsageRow& row) {
  JsonObject json = ToJson(row.sums);
  json["key"] = row.key;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) {
      json[name] = value;
    }
  };
  add("tenant", row.tenant);
  add("principal", row.principal);
  add("node", row.node);
  return json;
}

Result<net::Response> Usage(const Call& call) {
  RINGFENCE_ASSIGN(Wanted wanted, WantedOf(call));
  std::vector<model::Gpu> gpus;
  RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(gpus, store::ListGpus(db));
    return {};
  }));
  lease::UsageLedger ledger(wanted.by, wanted.window, gpus);
  Sight sight(call);
  for (bool more = true; more;) {
    std::vector<store::NumberedLease> leases;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(leases, store::ListLeases(db, wanted.filter));
      return {};
    }));
    for (const store::NumberedLease& found : leases) {
      if (sight.Sees(found.lease)) {
        ledger.Add(found.lease);
      }
      wanted.filter.before = found.number;
    }
    more = static_cast<std::int64_t>(leases.size()) == kScanRows;
  }
  const std::vector<lease::UsageRow> rows = ledger.rows();
  if (rows.size() > kRowsMax) {
    return Error{
        Code::kExhausted,
        "more than " + std::to_string(kRowsMax) + " rows (" + std::to_string(rows.size()) + ")",
        "narrow it with from and to, or sum up by tenant"};
  }
  JsonArray items;
  for (const lease::UsageRow& row : rows) {
    items.emplace_back(ToJson(row));
  }
  const bool whole = Decide(call, policy::Action::kUsageRead, model::TenantPath::Root()).allowed;
  return net::Response::OfJson(200, JsonObject{{"by", std::string(lease::Name(wanted.by))},
                                               {"from", FormatTime(wanted.window.from)},
                                               {"to", FormatTime(wanted.window.to)},
                                               {"whole", whole},
                                               {"items", std::move(items)},
                                               {"total", ToJson(ledger.total())}});
}

}  // namespace

void GetUsage(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return Usage(call); });
}

}  // namespace ringfence::server

#include "server/live_baselines.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <type_traits>

namespace ringfence::server {
namespace {

constexpr std::chrono::minutes kKeepEvery{5};
constexpr std::chrono::hours kSeriesLife{24 * 45};  // of one that is not heard of any more

constexpr std::int64_t kTelemetry = 99001;
constexpr std::int64_t kAuthentication = 3002;
constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kLateMs = 15'000;  // nodes deliver a minute's readings a little after it
constexpr std::int64_t kZerosMax = 1440;  // minutes without anything that are told to a series
constexpr std::size_t kPeersMax = 16;
constexpr std::size_t kPeersLookedAtMax = 256;
constexpr std::uint32_t kLayout = 1;  // of what is stored; with the size of a Baseline

// Everything of a series that is stored.
struct Stored {
  std::uint32_t layout = kLayout;
  std::uint32_t bytes = sizeof(detect::Baseline);
  std::int64_t minute = -1;
  detect::Baseline baseline;
};
static_assert(std::is_trivially_copyable_v<Stored>);

// The event's JSON is canonical and our own: a name in quotes is never inside a text.
std::optional<double> NumberAt(std::string_view json, std::string_view name) {
  // Every name begins with a quotation mark: find() would stop at each of them.
  const void* const at = memmem(json.data(), json.size(), name.data(), name.size());
  if (at == nullptr) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  const char* const from = static_cast<const char*>(at) + name.size();
  const auto read = std::from_chars(from, json.data() + json.size(), value);
  return read.ec == std::errc() ? std::optional(static_cast<double>(value)) : std::nullopt;
}

enum Place : std::size_t {
  kGpuBusy,
  kGpuMemory,
  kGpuPower,
  kGpuPcie,
  kNodeBusy,
  kTenantBusy,
  kTenantDenied,
  kPrincipalBusy,
  kPrincipalDenied,
  kFailedSignIns,
};

}  // namespace

const std::vector<LiveBaselines::Kind>& LiveBaselines::Kinds() {
  static const std::vector<Kind> kinds = {
      {"gpu", "busy_percent", "Unusual load of a GPU", false},
      {"gpu", "memory_used_percent", "Unusual use of a GPU's memory", false},
      {"gpu", "power_w", "Unusual power of a GPU", false},
      {"gpu", "pcie_mbps", "Unusual transfers of a GPU", false},
      {"node", "busy_percent", "Unusual load of a node's GPUs", false},
      {"tenant", "busy_percent", "Unusual load of a tenant's GPUs", false},
      {"tenant", "denied", "Unusually many denied decisions in a tenant", true},
      {"principal", "busy_percent", "Unusual load of a principal's GPUs", false},
      {"principal", "denied", "Unusually many denied decisions of a principal", true},
      {"cluster", "failed_signins", "Unusually many failed sign-ins", true},
  };
  return kinds;
}

void LiveBaselines::Take(const store::EventRow& row, std::vector<detect::Match>& found) {
  if (row.class_uid == kTelemetry) {
    TakeReading(row, found);
  } else if (row.class_uid == kAuthentication) {
    if (row.event.find(R"("status":"Failure")") != std::string::npos) {
      Add(kFailedSignIns, "all", NumberAt(row.event, R"("count":)").value_or(1), row, found);
    }
  } else if (row.log == "api" && row.event.find(R"("decision":"deny")") != std::string::npos) {
    Add(kTenantDenied, row.tenant, 1, row, found);
    Add(kPrincipalDenied, row.principal, 1, row, found);
  }
}

void LiveBaselines::TakeReading(const store::EventRow& row, std::vector<detect::Match>& found) {
  const std::string gpu = row.gpus.empty() ? "" : row.gpus.front();
  if (const auto busy = NumberAt(row.event, R"("busy_percent":)")) {
    Add(kGpuBusy, gpu, *busy, row, found);
    Add(kNodeBusy, row.node, *busy, row, found);
    Add(kTenantBusy, row.tenant, *busy, row, found);
    Add(kPrincipalBusy, row.principal, *busy, row, found);
  }
  if (const auto memory = NumberAt(row.event, R"("memory_used_percent":)")) {
    Add(kGpuMemory, gpu, *memory, row, found);
  }
  if (const auto power = NumberAt(row.event, R"("power_w":)")) {
    Add(kGpuPower, gpu, *power, row, found);
  }
  const auto in = NumberAt(row.event, R"("pcie_rx_mbps":)");
  const auto out = NumberAt(row.event, R"("pcie_tx_mbps":)");
  if (in.has_value() || out.has_value()) {
    Add(kGpuPcie, gpu, in.value_or(0) + out.value_or(0), row, found);
  }
}

LiveBaselines::Series* LiveBaselines::Find(std::size_t kind, const std::string& subject) {
  std::string name(Kinds()[kind].subject);
  name.append("/").append(Kinds()[kind].measure).append("/").append(subject);
  const auto known = series_.find(name);
  if (known != series_.end()) {
    return &known->second;
  }
  if (series_.size() >= kSeriesMax) {
    return nullptr;
  }
  Series series;
  series.kind = kind;
  series.subject = subject;
  series.baseline = FromPeers(kind);
  return &series_.emplace(std::move(name), std::move(series)).first->second;
}

// Series of the same kind that have a history of their own.
detect::Baseline LiveBaselines::FromPeers(std::size_t kind) const {
  std::vector<const detect::Baseline*> peers;
  const std::string prefix =
      std::string(Kinds()[kind].subject) + "/" + std::string(Kinds()[kind].measure) + "/";
  std::size_t looked = 0;
  for (auto at = series_.lower_bound(prefix);
       at != series_.end() && at->second.kind == kind && looked < kPeersLookedAtMax &&
       peers.size() < kPeersMax;
       ++at, ++looked) {
    if (at->second.baseline.samples() >= detect::kLearningSamples) {
      peers.push_back(&at->second.baseline);
    }
  }
  return detect::Baseline::FromPeers(peers);
}

void LiveBaselines::Add(std::size_t kind, const std::string& subject, double value,
                        const store::EventRow& row, std::vector<detect::Match>& found) {
  if (subject.empty()) {
    return;
  }
  Series* const series = Find(kind, subject);
  if (series == nullptr) {
    ++unwatched_;
    return;
  }
  const std::int64_t minute = row.time.time_since_epoch().count() / kMinuteMs;
  if (minute < series->minute || (minute == series->minute && series->samples == 0)) {
    return;  // of a minute that is over
  }
  if (minute > series->minute) {
    Close(*series, found);
    if (Kinds()[kind].counts && series->minute >= 0) {
      for (std::int64_t quiet = std::max(series->minute + 1, minute - kZerosMax); quiet < minute;
           ++quiet) {
        (void)series->baseline.Update(quiet * 60, 0);
      }
    }
    series->minute = minute;
  }
  series->sum += value;
  ++series->samples;
  series->event = row.seq;
}

void LiveBaselines::Close(Series& series, std::vector<detect::Match>& found) {
  if (series.samples == 0) {
    return;
  }
  const Kind& kind = Kinds()[series.kind];
  const double value = kind.counts ? series.sum : series.sum / series.samples;
  const detect::Verdict verdict = series.baseline.Update(series.minute * 60, value);
  if (verdict.alarm) {
    detect::Match match;
    match.rule = "baseline/" + std::string(kind.subject) + "/" + std::string(kind.measure);
    match.title = kind.title;
    match.description = std::string(kind.subject) + " " + series.subject + ", " +
                        std::string(kind.measure) +
                        ", a minute a sample: " + detect::Explain(verdict);
    match.false_positives = {"work that is new to this " + std::string(kind.subject)};
    match.group = {{std::string(kind.subject), series.subject}};
    match.events = series.samples;
    match.members = {series.event};
    found.push_back(std::move(match));
  }
  series.sum = 0;
  series.samples = 0;
  series.changed = true;
}

void LiveBaselines::Tick(Timestamp now, std::vector<detect::Match>& found) {
  const std::int64_t over = (now.time_since_epoch().count() - kLateMs) / kMinuteMs;
  for (auto& [name, series] : series_) {
    if (series.minute < over) {
      Close(series, found);
    }
  }
}

std::vector<store::BaselineRow> LiveBaselines::TakeChanged() {
  std::vector<store::BaselineRow> rows;
  for (auto& [name, series] : series_) {
    if (!series.changed) {
      continue;
    }
    series.changed = false;
    Stored stored;
    stored.minute = series.minute;
    stored.baseline = series.baseline;
    Bytes state(sizeof(Stored));
    std::memcpy(state.data(), &stored, sizeof(Stored));
    rows.push_back({name, Timestamp(Milliseconds(series.minute * kMinuteMs)), std::move(state)});
  }
  return rows;
}

void LiveBaselines::Load(const std::vector<store::BaselineRow>& rows) {
  series_.clear();
  for (const store::BaselineRow& row : rows) {
    Stored stored;
    const std::size_t first = row.name.find('/');
    const std::size_t second = row.name.find('/', first + 1);
    if (row.state.size() != sizeof(Stored) || second == std::string::npos ||
        series_.size() >= kSeriesMax) {
      continue;
    }
    std::memcpy(&stored, row.state.data(), sizeof(Stored));
    const auto& kinds = Kinds();
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& one) {
      return row.name.substr(0, first) == one.subject &&
             row.name.substr(first + 1, second - first - 1) == one.measure;
    });
    if (kind == kinds.end() || stored.layout != kLayout ||
        stored.bytes != sizeof(detect::Baseline)) {
      continue;
    }
    Series series;
    series.kind = static_cast<std::size_t>(kind - kinds.begin());
    series.subject = row.name.substr(second + 1);
    series.baseline = stored.baseline;
    series.minute = stored.minute;
    series_.emplace(row.name, std::move(series));
  }
}

Status LiveBaselines::Ready(store::Database& database) {
  if (loaded_) {
    return {};
  }
  std::vector<store::BaselineRow> rows;
  RINGFENCE_TRY(database.Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(rows, store::ListBaselines(db, kSeriesMax));
    return {};
  }));
  Load(rows);
  loaded_ = true;
  kept_ = std::chrono::steady_clock::now();
  return {};
}

Status LiveBaselines::Keep(store::Database& database, Timestamp now) {
  if (!loaded_) {
    return {};
  }
  kept_ = std::chrono::steady_clock::now();
  const auto rows = TakeChanged();
  return database.Write([&](store::Connection& db) -> Status {
    RINGFENCE_TRY(store::PutBaselines(db, rows));
    return store::ForgetBaselines(db, now - kSeriesLife);
  });
}

Status LiveBaselines::KeepNowAndThen(store::Database& database, Timestamp now) {
  return std::chrono::steady_clock::now() - kept_ < kKeepEvery ? Status() : Keep(database, now);
}

}  // namespace ringfence::server

#include "jailer/records.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "crypto/dsse.h"
#include "isolate/jailer_protocol.h"
#include "isolate/names.h"
#include "model/lease.h"
#include "os/failpoint.h"
#include "os/log.h"

namespace ringfence::jailer {
namespace {

using isolate::BoxState;

constexpr std::size_t kStateBytesMax = 96 * 1024 * 1024;
constexpr std::size_t kUsedBytesMax = 64 * 1024 * 1024;
constexpr std::size_t kIncidentDigits = 10;

constexpr std::pair<BoxState, const char*> kStateNames[] = {
    {BoxState::kPreparing, "preparing"},
    {BoxState::kRunning, "running"},
    {BoxState::kEnded, "ended"},
    {BoxState::kScrubbed, "scrubbed"},
};

std::uint64_t HashOf(std::string_view lease) { return std::hash<std::string_view>()(lease); }

std::string NameOf(BoxState state) {
  for (const auto& [value, name] : kStateNames) {
    if (value == state) {
      return name;
    }
  }
  return "preparing";
}

Result<BoxState> StateOf(const std::string& text) {
  for (const auto& [value, name] : kStateNames) {
    if (text == name) {
      return value;
    }
  }
  return Error{Code::kCorrupt, "unknown state '" + text.substr(0, 32) + "'"};
}

Json RecordToJson(const LeaseRecord& record) {
  JsonArray gpus;
  for (const gpu::WantedGpu& gpu : record.gpus) {
    JsonObject one{{"uuid", gpu.uuid}, {"minor", static_cast<std::int64_t>(gpu.minor)}};
    if (gpu.slice.has_value()) {
      one["parent"] = gpu.slice->parent;
      one["gpu_instance"] = static_cast<std::int64_t>(gpu.slice->gpu_instance);
      one["compute_instance"] = static_cast<std::int64_t>(gpu.slice->compute_instance);
    }
    gpus.push_back(std::move(one));
  }
  return JsonObject{
      {"lease", record.lease},
      {"state", NameOf(record.state)},
      {"gpus", std::move(gpus)},
      {"slot", static_cast<std::int64_t>(record.slot)},
      {"grant_digest", record.grant_digest},
      {"start_before", FormatTime(record.start_before)},
      {"changed", FormatTime(record.changed)},
      {"receipt", record.receipt},
  };
}

Result<LeaseRecord> RecordFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "leases"));
  LeaseRecord record;
  RINGFENCE_ASSIGN(record.lease, reader.String("lease", isolate::kNameBytesMax));
  RINGFENCE_ASSIGN(const std::string state, reader.String("state", 32));
  RINGFENCE_ASSIGN(record.state, StateOf(state));
  RINGFENCE_ASSIGN(const auto gpus, reader.Array("gpus", model::kGpusPerLeaseMax));
  for (const Json* entry : gpus) {
    RINGFENCE_ASSIGN(auto fields, JsonReader::Open(*entry, "leases.gpus"));
    gpu::WantedGpu gpu;
    RINGFENCE_ASSIGN(gpu.uuid, fields.String("uuid", isolate::kNameBytesMax));
    RINGFENCE_ASSIGN(const std::int64_t minor, fields.Int("minor", 0, 1 << 20U));
    gpu.minor = static_cast<std::uint32_t>(minor);
    if (fields.Has("parent")) {
      gpu::WantedGpu::Slice slice;
      RINGFENCE_ASSIGN(slice.parent, fields.String("parent", isolate::kNameBytesMax));
      RINGFENCE_ASSIGN(const std::int64_t instance, fields.Int("gpu_instance", 0, 255));
      slice.gpu_instance = static_cast<std::uint32_t>(instance);
      RINGFENCE_ASSIGN(const std::int64_t compute, fields.Int("compute_instance", 0, 255));
      slice.compute_instance = static_cast<std::uint32_t>(compute);
      gpu.slice = std::move(slice);
    }
    RINGFENCE_TRY(fields.Finish());
    record.gpus.push_back(std::move(gpu));
  }
  RINGFENCE_ASSIGN(const std::int64_t slot, reader.Int("slot", 0, kSlotsMax - 1));
  record.slot = static_cast<unsigned>(slot);
  RINGFENCE_ASSIGN(record.grant_digest, reader.String("grant_digest", 64));
  RINGFENCE_ASSIGN(const std::string start_before, reader.String("start_before", 64));
  RINGFENCE_ASSIGN(record.start_before, ParseTime(start_before));
  RINGFENCE_ASSIGN(const std::string changed, reader.String("changed", 64));
  RINGFENCE_ASSIGN(record.changed, ParseTime(changed));
  RINGFENCE_ASSIGN(record.receipt, reader.String("receipt", crypto::kEnvelopeBytesMax));
  RINGFENCE_TRY(reader.Finish());
  if (!isolate::IsName(record.lease)) {
    return Error{Code::kCorrupt, "a lease's id is not a name"};
  }
  return record;
}

std::string UsedLine(Timestamp start_before, const std::string& lease) {
  return FormatTime(start_before) + " " + lease + "\n";
}

}  // namespace

Result<Records> Records::Open(const std::string& folder, const std::string& boot_id,
                              Timestamp now) {
  RINGFENCE_TRY(os::MakeDirs(folder + "/incidents", 0700));
  RINGFENCE_ASSIGN(const auto names, os::ListDir(folder));
  for (const std::string& name : names) {
    if (name.starts_with("state.json.new.") ||
        name.starts_with("mig.json.new.")) {  // of a jailer that died while it wrote
      RINGFENCE_TRY(os::RemoveFile(folder + "/" + name));
    }
  }
  RINGFENCE_ASSIGN(os::AppendFile used, os::AppendFile::Open(folder + "/used", 0600));
  RINGFENCE_ASSIGN(UidRanges ranges, UidRanges::Open(folder));
  RINGFENCE_ASSIGN(MigBook mig, MigBook::Open(folder));
  Records records(folder, boot_id, std::move(used), std::move(ranges), std::move(mig));
  RINGFENCE_TRY(records.Load());
  RINGFENCE_TRY(records.LoadUsed(now));
  return records;
}

Status Records::Load() {
  const std::string path = folder_ + "/state.json";
  if (!os::Exists(path)) {
    return Save();
  }
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kStateBytesMax));
  const auto json = ParseJson(text, kStateBytesMax);
  if (!json.has_value()) {
    return Error{
        Code::kCorrupt, path + ": " + json.error().message,
        "without it this node cannot tell which GPUs are clean or which leases were started: "
        "stop it, move its state away and join it anew (docs/operations/backup.md)"};
  }
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(*json, "state"));
  RINGFENCE_TRY(reader.Int("v", 1, 1));
  RINGFENCE_ASSIGN(const std::string boot, reader.String("boot", 128));
  RINGFENCE_ASSIGN(const auto clean, reader.Array("clean", 1024));
  RINGFENCE_ASSIGN(const auto leases, reader.Array("leases", isolate::kBoxRecordsMax));
  RINGFENCE_TRY(reader.Finish());
  for (const Json* entry : leases) {
    RINGFENCE_ASSIGN(LeaseRecord record, RecordFromJson(*entry));
    const std::string lease = record.lease;
    leases_.emplace(lease, std::move(record));
  }
  if (boot != boot_id_) {
    return Save();  // memory may hold anything after a reboot: nothing is clean
  }
  for (const Json* entry : clean) {
    RINGFENCE_ASSIGN(auto fields, JsonReader::Open(*entry, "state.clean"));
    RINGFENCE_ASSIGN(const std::string uuid, fields.String("uuid", isolate::kNameBytesMax));
    RINGFENCE_ASSIGN(clean_[uuid], fields.String("receipt", isolate::kNameBytesMax));
    RINGFENCE_TRY(fields.Finish());
  }
  return {};
}

Status Records::LoadUsed(Timestamp now) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(folder_ + "/used", kUsedBytesMax));
  std::string kept;
  used_.clear();
  std::istringstream lines(text);
  bool changed = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    const auto time = ParseTime(std::string_view(line).substr(0, space));
    const std::string lease = space == std::string::npos ? "" : line.substr(space + 1);
    // A torn last line is of a Forget that was never answered: its lease is still in state.json.
    if (!time.has_value() || !isolate::IsName(lease) || *time + kUsedKept < now) {
      changed = true;
      continue;
    }
    used_.push_back(HashOf(lease));
    kept += UsedLine(*time, lease);
  }
  std::sort(used_.begin(), used_.end());
  look_through_at_ = std::max(kUsedLookedThrough, 2 * used_.size());
  if (!changed) {
    return {};
  }
  used_replaced_ = true;
  RINGFENCE_TRY(os::WriteFileDurable(folder_ + "/used", AsBytes(kept), 0600));
  return OpenUsed();
}

Status Records::OpenUsed() {
  RINGFENCE_ASSIGN(used_file_, os::AppendFile::Open(folder_ + "/used", 0600));
  used_replaced_ = false;
  return {};
}

void Records::AddUsed(const std::string& lease) {
  const std::uint64_t hash = HashOf(lease);
  used_.insert(std::lower_bound(used_.begin(), used_.end(), hash), hash);
}

Json Records::ToJson() const {
  JsonArray clean;
  for (const auto& [uuid, receipt] : clean_) {
    clean.push_back(JsonObject{{"uuid", uuid}, {"receipt", receipt}});
  }
  JsonArray leases;
  for (const auto& [id, record] : leases_) {
    leases.push_back(RecordToJson(record));
  }
  return JsonObject{
      {"v", 1}, {"boot", boot_id_}, {"clean", std::move(clean)}, {"leases", std::move(leases)}};
}

Status Records::Save() const {
  const std::string text = CanonicalJson(ToJson());
  return os::WriteFileDurable(folder_ + "/state.json", AsBytes(text), 0600);
}

const LeaseRecord* Records::Find(const std::string& lease) const {
  const auto found = leases_.find(lease);
  return found == leases_.end() ? nullptr : &found->second;
}

bool Records::WasUsed(const std::string& lease) const {
  return leases_.contains(lease) || std::binary_search(used_.begin(), used_.end(), HashOf(lease));
}

std::string Records::HolderOf(const std::string& uuid) const {
  for (const auto& [id, record] : leases_) {
    const bool holds =
        record.state != BoxState::kScrubbed &&
        std::any_of(record.gpus.begin(), record.gpus.end(), [&](const gpu::WantedGpu& gpu) {
          return gpu.uuid == uuid || (gpu.slice.has_value() && gpu.slice->parent == uuid);
        });
    if (holds) {
      return id;
    }
  }
  return {};
}

bool Records::HoldsWhole(const std::string& uuid) const {
  return std::any_of(leases_.begin(), leases_.end(), [&](const auto& lease) {
    const LeaseRecord& record = lease.second;
    return record.state != BoxState::kScrubbed &&
           std::any_of(record.gpus.begin(), record.gpus.end(),
                       [&](const gpu::WantedGpu& gpu) { return gpu.uuid == uuid; });
  });
}

std::vector<std::string> Records::Clean() const {
  std::vector<std::string> uuids;
  for (const auto& [uuid, receipt] : clean_) {
    uuids.push_back(uuid);
  }
  return uuids;
}

Result<unsigned> Records::TakeSlot(const std::string& tenant) {
  std::set<unsigned> taken;
  for (const auto& [id, record] : leases_) {
    if (record.state == BoxState::kPreparing || record.state == BoxState::kRunning) {
      taken.insert(record.slot);
    }
  }
  return ranges_.Take(tenant, taken);
}

Status Records::Begin(const LeaseRecord& record) {
  if (leases_.size() >= isolate::kBoxRecordsMax || used_.size() >= kUsedMax) {
    return Error{
        Code::kExhausted, "this node holds as many lease records as it may",
        "the agent drops them once the server has their receipts; see that it is connected"};
  }
  const auto clean_before = clean_;
  for (const gpu::WantedGpu& gpu : record.gpus) {
    clean_.erase(gpu.uuid);
  }
  leases_[record.lease] = record;
  const Status saved = Save();
  if (!saved.has_value()) {
    leases_.erase(record.lease);
    clean_ = clean_before;
  }
  return saved;
}

void Records::SetState(const std::string& lease, BoxState state, Timestamp now) {
  LeaseRecord& record = leases_.at(lease);
  record.state = state;
  record.changed = now;
}

Status Records::SetScrubbed(const std::string& lease, const std::vector<std::string>& gpus,
                            const std::string& receipt_id, const std::string& receipt,
                            Timestamp now) {
  const auto clean_before = clean_;
  for (const std::string& uuid : gpus) {
    clean_[uuid] = receipt_id;
  }
  const auto found = leases_.find(lease);
  LeaseRecord before;
  if (found != leases_.end()) {
    before = found->second;
    found->second.state = BoxState::kScrubbed;
    found->second.receipt = receipt;
    found->second.changed = now;
  }
  const Status saved = Save();
  if (!saved.has_value()) {
    clean_ = clean_before;
    if (found != leases_.end()) {
      found->second = before;
    }
  }
  return saved;
}

Status Records::SetDirty(const std::vector<std::string>& gpus) {
  bool changed = false;
  for (const std::string& uuid : gpus) {
    changed = clean_.erase(uuid) > 0 || changed;
  }
  return changed ? Save() : Status();
}

Status Records::Forget(const std::string& lease, Timestamp now) {
  const LeaseRecord* record = Find(lease);
  if (record == nullptr) {
    return {};
  }
  if (used_replaced_) {
    RINGFENCE_TRY(OpenUsed());
  }
  const std::string line = UsedLine(record->start_before, lease);
  const std::string after_torn = used_torn_ ? "\n" + line : line;
  used_torn_ = true;
  RINGFENCE_TRY(used_file_.Append(AsBytes(after_torn)));
  RINGFENCE_TRY(used_file_.Sync());
  used_torn_ = false;
  RINGFENCE_FAILPOINT("jailer.forget_noted");
  AddUsed(lease);
  leases_.erase(lease);
  RINGFENCE_TRY(Save());
  return used_.size() < look_through_at_ ? Status() : LoadUsed(now);
}

Result<std::vector<std::string>> Records::IncidentNames() const {
  RINGFENCE_ASSIGN(std::vector<std::string> names, os::ListDir(folder_ + "/incidents"));
  std::erase_if(names, [](const std::string& name) {
    return name.size() != kIncidentDigits ||
           name.find_first_not_of("0123456789") != std::string::npos;
  });
  return names;
}

Result<std::vector<std::string>> Records::Incidents() const {
  RINGFENCE_ASSIGN(const auto names, IncidentNames());
  std::vector<std::string> envelopes;
  for (const std::string& name : names) {
    RINGFENCE_ASSIGN(std::string text,
                     os::ReadText(folder_ + "/incidents/" + name, crypto::kEnvelopeBytesMax));
    envelopes.push_back(std::move(text));
    if (envelopes.size() == isolate::kIncidentsMax) {
      break;
    }
  }
  return envelopes;
}

Status Records::AddIncident(const std::string& envelope) {
  RINGFENCE_ASSIGN(const auto names, IncidentNames());
  if (names.size() >= isolate::kIncidentsMax) {
    RINGFENCE_TRY(os::WriteFileDurable(folder_ + "/incidents/dropped",
                                       AsBytes(std::to_string(IncidentsDropped() + 1)), 0600));
    return Error{Code::kExhausted, "no room for another incident"};
  }
  const unsigned long long next = names.empty() ? 1 : std::stoull(names.back()) + 1;
  std::string name = std::to_string(next);
  name.insert(0, kIncidentDigits - std::min(kIncidentDigits, name.size()), '0');
  RINGFENCE_TRY(os::WriteFileDurable(folder_ + "/incidents/" + name, AsBytes(envelope), 0600));
  return os::RemoveFile(folder_ + "/incidents/dropped");
}

std::uint64_t Records::IncidentsDropped() const {
  const auto text = os::ReadText(folder_ + "/incidents/dropped", 32);
  std::uint64_t count = 0;
  if (text.has_value()) {
    (void)std::from_chars(text->data(), text->data() + text->size(), count);
  }
  return count;
}

Status Records::AckIncidents(std::uint32_t count) {
  RINGFENCE_ASSIGN(const auto names, IncidentNames());
  if (count > names.size()) {
    return Error{Code::kInvalidArgument,
                 "there are only " + std::to_string(names.size()) + " incidents to acknowledge"};
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    RINGFENCE_TRY(os::RemoveFile(folder_ + "/incidents/" + names[i]));
  }
  return os::SyncDir(folder_ + "/incidents");
}

}  // namespace ringfence::jailer

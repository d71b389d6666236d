// MIG of a GPU as text and JSON: between jailer and worker, and to the server.

#include "gpu/mig_live.h"

namespace ringfence::gpu {
namespace {

// Signed, as a parser makes them.
std::int64_t Number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

std::string FormatMigTarget(const MigTarget& target) {
  if (!target.enabled) {
    return "off";
  }
  return target.instances.empty() ? "on" : "on " + FormatMigLayout(target.instances);
}

Result<MigTarget> ParseMigTarget(std::string_view text) {
  MigTarget target;
  if (text == "off") {
    return target;
  }
  target.enabled = true;
  if (text == "on") {
    return target;
  }
  if (!text.starts_with("on ")) {
    return Error{Code::kInvalidArgument, "a target is off, on, or on with a layout"};
  }
  RINGFENCE_ASSIGN(target.instances, ParseMigLayout(text.substr(3)));
  for (const MigWish& wish : target.instances) {
    if (wish.count != 1 || !wish.start.has_value()) {
      return Error{Code::kInvalidArgument, "a target names each instance with its place"};
    }
  }
  return target;
}

Json LiveMigToJson(const LiveMig& live) {
  JsonArray slices;
  for (const MigSlice& one : live.slices) {
    slices.push_back(JsonObject{{"uuid", one.uuid},
                                {"profile", one.profile},
                                {"start", Number(one.start)},
                                {"slices", Number(one.slices)},
                                {"gpu_instance", Number(one.gpu_instance)},
                                {"compute_instance", Number(one.compute_instance)},
                                {"memory_bytes", Number(one.memory_bytes)}});
  }
  return JsonObject{{"gpu", live.gpu},
                    {"board", live.board},
                    {"enabled", live.enabled},
                    {"slices", std::move(slices)}};
}

Result<LiveMig> LiveMigFromJson(const Json& json) {
  constexpr std::int64_t kMemoryMax = std::int64_t{1} << 48;
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json));
  LiveMig live;
  RINGFENCE_ASSIGN(live.gpu, reader.String("gpu", 128));
  RINGFENCE_ASSIGN(live.board, reader.String("board", 64));
  RINGFENCE_ASSIGN(live.enabled, reader.Bool("enabled"));
  RINGFENCE_ASSIGN(const auto slices, reader.Array("slices", 32));
  for (std::size_t i = 0; i < slices.size(); ++i) {
    RINGFENCE_ASSIGN(JsonReader inner,
                     JsonReader::Open(*slices[i], "slices[" + std::to_string(i) + "]"));
    const auto number = [&](const char* name) -> Result<std::uint32_t> {
      RINGFENCE_ASSIGN(const std::int64_t value, inner.Int(name, 0, 255));
      return static_cast<std::uint32_t>(value);
    };
    MigSlice slice;
    RINGFENCE_ASSIGN(slice.uuid, inner.String("uuid", 128));
    RINGFENCE_ASSIGN(slice.profile, inner.String("profile", 64));
    RINGFENCE_ASSIGN(slice.start, number("start"));
    RINGFENCE_ASSIGN(slice.slices, number("slices"));
    RINGFENCE_ASSIGN(slice.gpu_instance, number("gpu_instance"));
    RINGFENCE_ASSIGN(slice.compute_instance, number("compute_instance"));
    RINGFENCE_ASSIGN(const std::int64_t memory, inner.Int("memory_bytes", 0, kMemoryMax));
    slice.memory_bytes = static_cast<std::uint64_t>(memory);
    RINGFENCE_TRY(inner.Finish());
    live.slices.push_back(std::move(slice));
  }
  RINGFENCE_TRY(reader.Finish());
  return live;
}

Json MigOutcomeToJson(const MigOutcome& outcome) {
  return JsonObject{{"reason", outcome.reason.substr(0, kMigReasonBytesMax)},
                    {"live", outcome.live ? LiveMigToJson(*outcome.live) : Json(nullptr)}};
}

Result<MigOutcome> MigOutcomeFromJson(const Json& json) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json, "outcome"));
  MigOutcome outcome;
  RINGFENCE_ASSIGN(outcome.reason, reader.String("reason", kMigReasonBytesMax));
  if (reader.Has("live")) {
    RINGFENCE_ASSIGN(const Json* const live, reader.Any("live"));
    RINGFENCE_ASSIGN(outcome.live, LiveMigFromJson(*live));
  }
  RINGFENCE_TRY(reader.Finish());
  return outcome;
}

}  // namespace ringfence::gpu

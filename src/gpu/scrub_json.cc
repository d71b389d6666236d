#include "base/json.h"
#include "gpu/limits.h"
#include "gpu/scrub.h"

namespace ringfence::gpu {
namespace {

constexpr std::int64_t kNumberMax = std::int64_t{1} << 53U;
constexpr std::size_t kTextBytesMax = 256;
constexpr std::size_t kPassNameBytesMax = 64;

// Members of a struct that are plain numbers, in one table for both directions.
template <typename Struct>
struct Number {
  const char* name;
  std::uint64_t Struct::* member;
};

constexpr Number<ScrubResult> kResultNumbers[] = {
    {"memory_bytes", &ScrubResult::memory_bytes},
    {"reached_bytes", &ScrubResult::reached_bytes},
    {"residue_bytes", &ScrubResult::residue_bytes},
    {"mismatch_bytes", &ScrubResult::mismatch_bytes},
    {"duration_us", &ScrubResult::duration_us},
};

constexpr Number<OnChipScrub> kOnChipNumbers[] = {
    {"multiprocessors", &OnChipScrub::multiprocessors},
    {"multiprocessors_reached", &OnChipScrub::multiprocessors_reached},
    {"shared_bytes", &OnChipScrub::shared_bytes},
    {"shared_reached_bytes", &OnChipScrub::shared_reached_bytes},
    {"shared_residue_bytes", &OnChipScrub::shared_residue_bytes},
    {"register_bytes", &OnChipScrub::register_bytes},
    {"register_reached_bytes", &OnChipScrub::register_reached_bytes},
    {"l2_bytes", &OnChipScrub::l2_bytes},
};

template <typename Struct, std::size_t kCount>
void PutNumbers(const Struct& from, const Number<Struct> (&numbers)[kCount], JsonObject& into) {
  for (const Number<Struct>& number : numbers) {
    into[number.name] = static_cast<std::int64_t>(from.*number.member);
  }
}

template <typename Struct, std::size_t kCount>
Status ReadNumbers(JsonReader& reader, const Number<Struct> (&numbers)[kCount], Struct& into) {
  for (const Number<Struct>& number : numbers) {
    RINGFENCE_ASSIGN(const std::int64_t value, reader.Int(number.name, 0, kNumberMax));
    into.*number.member = static_cast<std::uint64_t>(value);
  }
  return {};
}

Status ReadDetail(JsonReader& reader, ScrubResult& result) {
  RINGFENCE_ASSIGN(const Json* on_chip, reader.Any("on_chip"));
  RINGFENCE_ASSIGN(JsonReader inner, JsonReader::Open(*on_chip, reader.Path("on_chip")));
  RINGFENCE_TRY(ReadNumbers(inner, kOnChipNumbers, result.on_chip));
  RINGFENCE_TRY(inner.Finish());
  RINGFENCE_ASSIGN(const auto passes, reader.Array("passes", kPassesMax));
  for (const Json* json : passes) {
    RINGFENCE_ASSIGN(JsonReader fields, JsonReader::Open(*json, reader.Path("passes")));
    ScrubPass pass;
    RINGFENCE_ASSIGN(pass.name, fields.String("name", kPassNameBytesMax));
    RINGFENCE_ASSIGN(const std::int64_t duration, fields.Int("duration_us", 0, kNumberMax));
    RINGFENCE_TRY(fields.Finish());
    pass.duration_us = static_cast<std::uint64_t>(duration);
    result.passes.push_back(std::move(pass));
  }
  return {};
}

JsonArray ToArray(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

}  // namespace

Json ScrubResultToJson(const ScrubResult& result, ScrubDetail detail) {
  JsonObject object{{"uuid", result.uuid}};
  if (!result.parent.empty()) {
    object["parent"] = result.parent;
    object["profile"] = result.profile;
  }
  PutNumbers(result, kResultNumbers, object);
  if (detail == ScrubDetail::kFull) {
    JsonObject on_chip;
    PutNumbers(result.on_chip, kOnChipNumbers, on_chip);
    object["on_chip"] = std::move(on_chip);
    JsonArray passes;
    for (const ScrubPass& pass : result.passes) {
      passes.push_back(JsonObject{{"name", pass.name},
                                  {"duration_us", static_cast<std::int64_t>(pass.duration_us)}});
    }
    object["passes"] = std::move(passes);
  }
  return object;
}

Result<ScrubResult> ScrubResultFromJson(const Json& json, const std::string& path,
                                        ScrubDetail detail) {
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json, path));
  ScrubResult result;
  RINGFENCE_ASSIGN(result.uuid, reader.String("uuid", kTextBytesMax));
  RINGFENCE_ASSIGN(result.parent, reader.StringOr("parent", "", kTextBytesMax));
  RINGFENCE_ASSIGN(result.profile, reader.StringOr("profile", "", kTextBytesMax));
  RINGFENCE_TRY(ReadNumbers(reader, kResultNumbers, result));
  if (detail == ScrubDetail::kFull) {
    RINGFENCE_TRY(ReadDetail(reader, result));
  }
  RINGFENCE_TRY(reader.Finish());
  return result;
}

std::string ScrubReportToJson(const ScrubReport& report) {
  JsonArray gpus;
  for (const ScrubResult& gpu : report.gpus) {
    gpus.push_back(ScrubResultToJson(gpu, ScrubDetail::kFull));
  }
  return CanonicalJson(JsonObject{{"simulated", report.simulated},
                                  {"driver_version", report.driver_version},
                                  {"kernel_driver", report.kernel_driver},
                                  {"library_digest", report.library_digest},
                                  {"kernels_digest", report.kernels_digest},
                                  {"pattern", report.pattern},
                                  {"gpus", std::move(gpus)},
                                  {"covered", ToArray(report.covered)},
                                  {"not_covered", ToArray(report.not_covered)}});
}

Result<ScrubReport> ScrubReportFromJson(std::string_view text) {
  RINGFENCE_ASSIGN(const Json document, ParseJson(text, kReportBytesMax));
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(document));
  ScrubReport report;
  RINGFENCE_ASSIGN(report.simulated, reader.Bool("simulated"));
  RINGFENCE_ASSIGN(report.driver_version, reader.String("driver_version", kTextBytesMax));
  RINGFENCE_ASSIGN(report.kernel_driver, reader.String("kernel_driver"));
  RINGFENCE_ASSIGN(report.library_digest, reader.String("library_digest", kTextBytesMax));
  RINGFENCE_ASSIGN(report.kernels_digest, reader.String("kernels_digest", kTextBytesMax));
  RINGFENCE_ASSIGN(report.pattern, reader.String("pattern", kTextBytesMax));
  RINGFENCE_ASSIGN(const auto gpus, reader.Array("gpus", kGpusMax));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    RINGFENCE_ASSIGN(
        ScrubResult result,
        ScrubResultFromJson(*gpus[i], "gpus[" + std::to_string(i) + "]", ScrubDetail::kFull));
    report.gpus.push_back(std::move(result));
  }
  RINGFENCE_ASSIGN(report.covered, reader.Strings("covered", kCoverLinesMax, kTextBytesMax));
  RINGFENCE_ASSIGN(report.not_covered,
                   reader.Strings("not_covered", kCoverLinesMax, kTextBytesMax));
  RINGFENCE_TRY(reader.Finish());
  return report;
}

}  // namespace ringfence::gpu

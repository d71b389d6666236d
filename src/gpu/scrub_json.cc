#include "base/json.h"
#include "gpu/limits.h"
#include "gpu/scrub.h"

namespace ringfence::gpu {
namespace {

constexpr std::int64_t kNumberMax = std::int64_t{1} << 53U;
constexpr std::size_t kTextBytesMax = 256;

Result<std::uint64_t> ReadNumber(JsonReader& reader, const char* name) {
  RINGFENCE_ASSIGN(const std::int64_t number, reader.Int(name, 0, kNumberMax));
  return static_cast<std::uint64_t>(number);
}

Result<ScrubResult> ReadResult(const Json& json, std::size_t index) {
  RINGFENCE_ASSIGN(JsonReader reader,
                   JsonReader::Open(json, "gpus[" + std::to_string(index) + "]"));
  ScrubResult result;
  RINGFENCE_ASSIGN(result.uuid, reader.String("uuid", kTextBytesMax));
  RINGFENCE_ASSIGN(result.memory_bytes, ReadNumber(reader, "memory_bytes"));
  RINGFENCE_ASSIGN(result.reached_bytes, ReadNumber(reader, "reached_bytes"));
  RINGFENCE_ASSIGN(result.residue_bytes, ReadNumber(reader, "residue_bytes"));
  RINGFENCE_ASSIGN(result.mismatch_bytes, ReadNumber(reader, "mismatch_bytes"));
  RINGFENCE_ASSIGN(result.duration_us, ReadNumber(reader, "duration_us"));
  RINGFENCE_TRY(reader.Finish());
  return result;
}

}  // namespace

std::string ScrubReportToJson(const ScrubReport& report) {
  JsonArray gpus;
  for (const ScrubResult& gpu : report.gpus) {
    gpus.push_back(JsonObject{{"uuid", gpu.uuid},
                              {"memory_bytes", gpu.memory_bytes},
                              {"reached_bytes", gpu.reached_bytes},
                              {"residue_bytes", gpu.residue_bytes},
                              {"mismatch_bytes", gpu.mismatch_bytes},
                              {"duration_us", gpu.duration_us}});
  }
  JsonArray not_covered;
  for (const std::string& what : report.not_covered) {
    not_covered.emplace_back(what);
  }
  return CanonicalJson(JsonObject{{"simulated", report.simulated},
                                  {"driver_version", report.driver_version},
                                  {"kernel_driver", report.kernel_driver},
                                  {"library_digest", report.library_digest},
                                  {"gpus", std::move(gpus)},
                                  {"not_covered", std::move(not_covered)}});
}

Result<ScrubReport> ScrubReportFromJson(std::string_view text) {
  RINGFENCE_ASSIGN(const Json document, ParseJson(text, kReportBytesMax));
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(document));
  ScrubReport report;
  RINGFENCE_ASSIGN(report.simulated, reader.Bool("simulated"));
  RINGFENCE_ASSIGN(report.driver_version, reader.String("driver_version", kTextBytesMax));
  RINGFENCE_ASSIGN(report.kernel_driver, reader.String("kernel_driver"));
  RINGFENCE_ASSIGN(report.library_digest, reader.String("library_digest", kTextBytesMax));
  RINGFENCE_ASSIGN(const auto gpus, reader.Array("gpus", kGpusMax));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    RINGFENCE_ASSIGN(ScrubResult result, ReadResult(*gpus[i], i));
    report.gpus.push_back(std::move(result));
  }
  RINGFENCE_ASSIGN(report.not_covered, reader.Strings("not_covered", kGpusMax + 16, kTextBytesMax));
  RINGFENCE_TRY(reader.Finish());
  return report;
}

}  // namespace ringfence::gpu

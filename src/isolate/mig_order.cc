#include "isolate/mig_order.h"

#include "base/json.h"
#include "crypto/dsse.h"
#include "gpu/mig_reshape.h"
#include "isolate/names.h"

namespace ringfence::isolate {
namespace {

constexpr std::int64_t kSerialMax = std::int64_t{1} << 53U;
constexpr std::size_t kTouchedMax = 64;

Status CheckNames(const std::string& id, const std::string& node, const std::string& gpu) {
  if (!IsName(id) || !IsName(node) || !IsName(gpu) || !gpu.starts_with("GPU-")) {
    return Error{Code::kInvalidArgument, "mig order: id, node or GPU is not a name"};
  }
  return {};
}

}  // namespace

std::string SealMigOrder(const crypto::SigningKey& server, const MigOrder& order) {
  return crypto::SignEnvelope(server, kMigOrderType,
                              CanonicalJson(JsonObject{{"v", 1},
                                                       {"id", order.id},
                                                       {"serial", order.serial},
                                                       {"node", order.node},
                                                       {"gpu", order.gpu},
                                                       {"aim", order.aim}}));
}

Result<MigOrder> OpenMigOrder(const crypto::PublicKey& server, std::string_view envelope) {
  RINGFENCE_ASSIGN(const std::string payload,
                   crypto::OpenEnvelope(server, kMigOrderType, envelope));
  RINGFENCE_ASSIGN(const Json json, ParseJson(payload, crypto::kEnvelopeBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "order"));
  RINGFENCE_TRY(reader.Int("v", 1, 1));
  MigOrder order;
  RINGFENCE_ASSIGN(order.id, reader.String("id", kNameBytesMax));
  RINGFENCE_ASSIGN(order.serial, reader.Int("serial", 1, kSerialMax));
  RINGFENCE_ASSIGN(order.node, reader.String("node", kNameBytesMax));
  RINGFENCE_ASSIGN(order.gpu, reader.String("gpu", kNameBytesMax));
  RINGFENCE_ASSIGN(order.aim, reader.String("aim", gpu::kMigLayoutBytesMax));
  RINGFENCE_TRY(reader.Finish());
  RINGFENCE_TRY(CheckNames(order.id, order.node, order.gpu));
  RINGFENCE_TRY(gpu::ParseMigAim(order.aim));
  return order;
}

std::string SealMigReport(const crypto::SigningKey& jailer, const MigReport& report) {
  JsonArray touched;
  for (const std::string& uuid : report.touched) {
    touched.emplace_back(uuid);
  }
  return crypto::SignEnvelope(
      jailer, kMigReportType,
      CanonicalJson(JsonObject{{"v", 1},
                               {"order", report.order},
                               {"serial", report.serial},
                               {"node", report.node},
                               {"gpu", report.gpu},
                               {"time", FormatTime(report.time)},
                               {"touched", std::move(touched)},
                               {"outcome", gpu::MigOutcomeToJson({report.reason, report.live})}}));
}

Result<MigReport> OpenMigReport(const crypto::PublicKey& jailer, std::string_view envelope) {
  RINGFENCE_ASSIGN(const std::string payload,
                   crypto::OpenEnvelope(jailer, kMigReportType, envelope));
  RINGFENCE_ASSIGN(const Json json, ParseJson(payload, crypto::kEnvelopeBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "report"));
  RINGFENCE_TRY(reader.Int("v", 1, 1));
  MigReport report;
  RINGFENCE_ASSIGN(report.order, reader.String("order", kNameBytesMax));
  RINGFENCE_ASSIGN(report.serial, reader.Int("serial", 1, kSerialMax));
  RINGFENCE_ASSIGN(report.node, reader.String("node", kNameBytesMax));
  RINGFENCE_ASSIGN(report.gpu, reader.String("gpu", kNameBytesMax));
  RINGFENCE_ASSIGN(const std::string time, reader.String("time", 64));
  RINGFENCE_ASSIGN(report.time, ParseTime(time));
  RINGFENCE_ASSIGN(report.touched, reader.Strings("touched", kTouchedMax, kNameBytesMax));
  RINGFENCE_ASSIGN(const Json* const outcome, reader.Any("outcome"));
  RINGFENCE_TRY(reader.Finish());
  RINGFENCE_ASSIGN(gpu::MigOutcome read, gpu::MigOutcomeFromJson(*outcome));
  report.reason = std::move(read.reason);
  report.live = std::move(read.live);
  RINGFENCE_TRY(CheckNames(report.order, report.node, report.gpu));
  return report;
}

}  // namespace ringfence::isolate

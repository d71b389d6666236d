#include "isolate/incident.h"

#include "base/json.h"
#include "crypto/dsse.h"
#include "isolate/names.h"

namespace ringfence::isolate {

std::string SealIncident(const crypto::SigningKey& jailer, const Incident& incident) {
  const Json json = JsonObject{
      {"v", 1},
      {"node", incident.node},
      {"time", FormatTime(incident.time)},
      {"what", incident.what},
      {"detail", incident.detail.substr(0, kIncidentDetailBytesMax)},
      {"dropped", static_cast<std::int64_t>(incident.dropped)},
  };
  return crypto::SignEnvelope(jailer, kIncidentType, CanonicalJson(json));
}

Result<Incident> OpenIncident(const crypto::PublicKey& jailer, std::string_view envelope) {
  RINGFENCE_ASSIGN(const std::string payload,
                   crypto::OpenEnvelope(jailer, kIncidentType, envelope));
  RINGFENCE_ASSIGN(const Json json, ParseJson(payload, crypto::kEnvelopeBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "incident"));
  RINGFENCE_TRY(reader.Int("v", 1, 1));
  Incident incident;
  RINGFENCE_ASSIGN(incident.node, reader.String("node", kNameBytesMax));
  RINGFENCE_ASSIGN(const std::string time, reader.String("time", 64));
  RINGFENCE_ASSIGN(incident.time, ParseTime(time));
  RINGFENCE_ASSIGN(incident.what, reader.String("what", kNameBytesMax));
  RINGFENCE_ASSIGN(incident.detail, reader.String("detail", kIncidentDetailBytesMax));
  RINGFENCE_ASSIGN(const std::int64_t dropped, reader.Int("dropped", 0, std::int64_t{1} << 53U));
  incident.dropped = static_cast<std::uint64_t>(dropped);
  RINGFENCE_TRY(reader.Finish());
  if (!IsName(incident.node) || !IsName(incident.what)) {
    return Error{Code::kInvalidArgument, "incident: node or what is not a name"};
  }
  return incident;
}

}  // namespace ringfence::isolate

#include "isolate/proof.h"

#include "base/json.h"
#include "crypto/dsse.h"
#include "isolate/names.h"
#include "model/lease.h"

namespace ringfence::isolate {
namespace {

constexpr std::size_t kTextBytesMax = 512;

JsonArray ToArray(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

}  // namespace

std::string SealProof(const crypto::SigningKey& jailer, const Proof& proof) {
  const JsonObject object{{"v", 1},
                          {"node", proof.node},
                          {"lease", proof.lease},
                          {"command", ToArray(proof.command)},
                          {"walls_away", ToArray(proof.walls_away)},
                          {"ending", proof.ending.substr(0, kTextBytesMax)},
                          {"time", FormatTime(proof.time)}};
  return crypto::SignEnvelope(jailer, kProofType, CanonicalJson(object));
}

Result<Proof> OpenProof(const crypto::PublicKey& jailer, std::string_view envelope) {
  RINGFENCE_ASSIGN(const std::string payload, crypto::OpenEnvelope(jailer, kProofType, envelope));
  RINGFENCE_ASSIGN(const Json json, ParseJson(payload, crypto::kEnvelopeBytesMax));
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(json, "proof"));
  RINGFENCE_TRY(reader.Int("v", 1, 1));
  Proof proof;
  RINGFENCE_ASSIGN(proof.node, reader.String("node", kTextBytesMax));
  RINGFENCE_ASSIGN(proof.lease, reader.String("lease", kTextBytesMax));
  RINGFENCE_ASSIGN(proof.command,
                   reader.Strings("command", model::kCommandWordsMax, model::kCommandBytesMax));
  RINGFENCE_ASSIGN(proof.walls_away, reader.Strings("walls_away", model::kWallsMax, kTextBytesMax));
  RINGFENCE_ASSIGN(proof.ending, reader.String("ending", kTextBytesMax));
  RINGFENCE_ASSIGN(const std::string time, reader.String("time", 40));
  RINGFENCE_ASSIGN(proof.time, ParseTime(time));
  RINGFENCE_TRY(reader.Finish());
  if (!IsName(proof.node) || !IsName(proof.lease)) {
    return Error{Code::kInvalidArgument, "proof: node or lease is not a name", {}, "proof"};
  }
  return proof;
}

}  // namespace ringfence::isolate

#include "crypto/dsse.h"

#include "base/encoding.h"
#include "base/json.h"

namespace ringfence::crypto {
namespace {

std::string PreAuthEncoding(std::string_view type, std::string_view payload) {
  std::string text = "DSSEv1 ";
  text += std::to_string(type.size()) + " " + std::string(type) + " ";
  text += std::to_string(payload.size()) + " " + std::string(payload);
  return text;
}

}  // namespace

std::string SignEnvelope(const SigningKey& key, std::string_view type, std::string_view payload) {
  const Signature signature = key.Sign(AsBytes(PreAuthEncoding(type, payload)));
  JsonObject envelope;
  envelope["payload"] = Base64(AsBytes(payload));
  envelope["payloadType"] = std::string(type);
  envelope["signatures"] =
      JsonArray{JsonObject{{"keyid", key.public_key().Id()}, {"sig", Base64(signature)}}};
  return CanonicalJson(envelope);
}

Result<std::string> OpenEnvelope(const PublicKey& key, std::string_view type,
                                 std::string_view envelope) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(envelope, kEnvelopeBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "envelope"));
  RINGFENCE_ASSIGN(const std::string encoded, reader.String("payload", kEnvelopeBytesMax));
  RINGFENCE_ASSIGN(const std::string found_type, reader.String("payloadType", 256));
  RINGFENCE_ASSIGN(const auto signatures, reader.Array("signatures", 8));
  RINGFENCE_TRY(reader.Finish());
  RINGFENCE_ASSIGN(const Bytes payload, FromBase64(encoded));
  if (found_type != type) {
    return Error{Code::kPermissionDenied,
                 "envelope holds " + found_type.substr(0, 80) + ", expected " + std::string(type)};
  }
  const std::string message = PreAuthEncoding(type, AsText(payload));
  for (const Json* entry : signatures) {
    RINGFENCE_ASSIGN(auto fields, JsonReader::Open(*entry, "envelope.signatures"));
    RINGFENCE_ASSIGN(const std::string text, fields.String("sig", 128));
    RINGFENCE_ASSIGN(const std::string key_id, fields.StringOr("keyid", "", 128));
    (void)key_id;  // a hint only: the signature itself says whose it is
    RINGFENCE_TRY(fields.Finish());
    RINGFENCE_ASSIGN(const Bytes signature, FromBase64(text));
    if (key.Verify(AsBytes(message), signature)) {
      return ToText(payload);
    }
  }
  return Error{Code::kPermissionDenied, "envelope has no valid signature by key " + key.Id()};
}

}  // namespace ringfence::crypto

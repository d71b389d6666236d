// Texts that reach root from outside: grants, receipts, incidents and join tokens. The input is
// tried as it is, and as a payload that the right key has signed, so that what lies behind the
// signature is reached too.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "crypto/dsse.h"
#include "isolate/grant.h"
#include "isolate/incident.h"
#include "isolate/join_token.h"

namespace {

const ringfence::crypto::SigningKey& Key() {
  static const auto key = ringfence::crypto::SigningKey::FromSeed(
      ringfence::SecretBytes(ringfence::Bytes(32, std::byte{7})));
  return *key;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence;           // NOLINT(google-build-using-namespace)
  using namespace ringfence::isolate;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const crypto::PublicKey& key = Key().public_key();
  (void)OpenGrant(key, text);
  (void)OpenReceipt(key, text);
  (void)OpenIncident(key, text);
  const auto grant = OpenGrant(key, crypto::SignEnvelope(Key(), kGrantType, text));
  if (grant.has_value()) {
    RINGFENCE_CHECK(OpenGrant(key, SealGrant(Key(), *grant)).has_value());
  }
  const auto receipt = OpenReceipt(key, crypto::SignEnvelope(Key(), kReceiptType, text));
  if (receipt.has_value()) {
    RINGFENCE_CHECK(OpenReceipt(key, SealReceipt(Key(), *receipt)).has_value());
  }
  (void)OpenIncident(key, crypto::SignEnvelope(Key(), kIncidentType, text));
  const auto token = ParseJoinToken(text);
  if (token.has_value()) {
    RINGFENCE_CHECK(ParseJoinToken(FormatJoinToken(*token)).has_value());
  }
  (void)ParseAgentJoin(text);
  return 0;
}

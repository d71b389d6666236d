#include "isolate/join_token.h"

#include <algorithm>

#include "base/encoding.h"
#include "base/json.h"
#include "crypto/sha256.h"

namespace ringfence::isolate {
namespace {

Error Bad(std::string_view why) {
  return Error{Code::kInvalidArgument, "join token: " + std::string(why),
               "ask the server for a new one: ringfence node token"};
}

// HOST:PORT, HOST a name, an IPv4 address or a bracketed IPv6 address.
bool IsServer(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || text.size() > 300) {
    return false;
  }
  const std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const auto host_char = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
  };
  if (!std::all_of(host.begin(), host.end(), host_char) || port.empty() || port.size() > 5) {
    return false;
  }
  int number = 0;
  for (const char c : port) {
    if (c < '0' || c > '9') {
      return false;
    }
    number = number * 10 + (c - '0');
  }
  return number >= 1 && number <= 65535;
}

// One, or several with commas between them.
bool AreServers(std::string_view text) {
  for (;;) {
    const std::size_t comma = text.find(',');
    if (!IsServer(text.substr(0, comma))) {
      return false;
    }
    if (comma == std::string_view::npos) {
      return true;
    }
    text.remove_prefix(comma + 1);
  }
}

bool IsDigestHex(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

Result<SecretBytes> ReadSecret(JsonReader& reader) {
  RINGFENCE_ASSIGN(const std::string text, reader.String("secret", 128));
  auto bytes = FromBase64Url(text);
  if (!bytes.has_value() || bytes->size() < kJoinSecretBytesLeast ||
      bytes->size() > kJoinSecretBytesMax) {
    return Bad("its secret is damaged");
  }
  return SecretBytes(std::move(bytes).value());
}

Result<JoinToken> TokenFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "token"));
  RINGFENCE_TRY(reader.Int("v", 1, 1));
  JoinToken token;
  RINGFENCE_ASSIGN(token.server, reader.String("server", 2048));
  RINGFENCE_ASSIGN(token.ca, reader.String("ca", 64));
  RINGFENCE_ASSIGN(const std::string key_text, reader.String("grant_key", 64));
  RINGFENCE_ASSIGN(token.secret, ReadSecret(reader));
  RINGFENCE_TRY(reader.Finish());
  RINGFENCE_ASSIGN(const Bytes key, FromBase64(key_text));
  RINGFENCE_ASSIGN(token.grant_key, crypto::PublicKey::FromRaw(key));
  if (!AreServers(token.server)) {
    return Bad("its server is not HOST:PORT, or several with commas between them");
  }
  if (!IsDigestHex(token.ca)) {
    return Bad("its CA digest is damaged");
  }
  return token;
}

SecretBytes Half(const SecretBytes& secret, std::string_view info) {
  const Digest half = crypto::HkdfSha256(secret.Reveal(), AsBytes(info));
  return SecretBytes(ByteView(half));
}

}  // namespace

std::string FormatJoinToken(const JoinToken& token) {
  const Json json = JsonObject{
      {"v", 1},
      {"server", token.server},
      {"ca", token.ca},
      {"grant_key", Base64(token.grant_key.raw())},
      {"secret", Base64Url(token.secret.Reveal())},
  };
  return std::string(kJoinTokenPrefix) + Base64Url(AsBytes(CanonicalJson(json)));
}

Result<JoinToken> ParseJoinToken(std::string_view text) {
  if (text.size() > kJoinTokenBytesMax) {
    return Bad("it is too long to be one");
  }
  text = Trim(text);
  if (!text.starts_with(kJoinTokenPrefix)) {
    return Bad("it does not start with 'rfjoin.'");
  }
  const auto bytes = FromBase64Url(text.substr(kJoinTokenPrefix.size()));
  if (!bytes.has_value()) {
    return Bad("it is cut short or damaged");
  }
  const auto json = ParseJson(AsText(*bytes), kJoinTokenBytesMax);
  if (!json.has_value()) {
    return Bad("it is cut short or damaged");
  }
  auto token = TokenFromJson(*json);
  if (!token.has_value() && !token.error().message.starts_with("join token: ")) {
    return Bad("it is damaged, or of a version this program does not know");
  }
  return token;
}

SecretBytes JailerHalf(const SecretBytes& secret) {
  return Half(secret, "ringfence join jailer v1");
}

SecretBytes AgentHalf(const SecretBytes& secret) { return Half(secret, "ringfence join agent v1"); }

std::string JailerKeyProof(const SecretBytes& jailer_half, const crypto::PublicKey& key) {
  Bytes message = ToBytes("ringfence jailer key v1\n");
  Append(message, key.raw());
  return Hex(crypto::HmacSha256(jailer_half.Reveal(), message));
}

std::string FormatAgentJoin(const AgentJoin& join) {
  return CanonicalJson(JsonObject{
      {"server", join.server}, {"ca", join.ca}, {"secret", Base64Url(join.secret.Reveal())}});
}

Result<AgentJoin> ParseAgentJoin(std::string_view text) {
  const auto json = ParseJson(text, kJoinTokenBytesMax);
  if (!json.has_value()) {
    return Bad("what the jailer handed over is damaged");
  }
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(*json, "join"));
  AgentJoin join;
  RINGFENCE_ASSIGN(join.server, reader.String("server", 2048));
  RINGFENCE_ASSIGN(join.ca, reader.String("ca", 64));
  RINGFENCE_ASSIGN(join.secret, ReadSecret(reader));
  RINGFENCE_TRY(reader.Finish());
  if (!IsServer(join.server) || !IsDigestHex(join.ca)) {
    return Bad("what the jailer handed over is damaged");
  }
  return join;
}

}  // namespace ringfence::isolate

#pragma once

// What lets a machine become a node: where the server is, how to know it, and a secret that is
// good once. "rfjoin." + base64url of canonical JSON; docs/formats/jailer.md.
//
// The jailer reads the token and splits the secret: one half proves its own key, the other goes to
// the agent. Neither half gives the other, or the secret.

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "base/secret.h"
#include "crypto/ed25519.h"

namespace ringfence::isolate {

inline constexpr std::string_view kJoinTokenPrefix = "rfjoin.";
inline constexpr std::size_t kJoinTokenBytesMax = 4096;
inline constexpr std::size_t kJoinSecretBytesLeast = 16;
inline constexpr std::size_t kJoinSecretBytesMax = 64;

struct JoinToken {
  std::string server;  // "HOST:PORT"
  std::string ca;      // hex SHA-256 of the CA certificate's DER
  crypto::PublicKey grant_key;
  SecretBytes secret;
};

std::string FormatJoinToken(const JoinToken& token);
// Leading and trailing white space is passed over; anything else that Format never writes is
// refused. Errors never hold any of the text.
Result<JoinToken> ParseJoinToken(std::string_view text);

SecretBytes JailerHalf(const SecretBytes& secret);
SecretBytes AgentHalf(const SecretBytes& secret);
// Hex HMAC-SHA256 of the key that verifies the node's receipts, keyed with the jailer's half.
std::string JailerKeyProof(const SecretBytes& jailer_half, const crypto::PublicKey& key);

// What the jailer hands its agent (descriptor RINGFENCE_JOIN_FD): {"server","ca","secret"}.
struct AgentJoin {
  std::string server;
  std::string ca;
  SecretBytes secret;  // the agent's half
};
std::string FormatAgentJoin(const AgentJoin& join);
Result<AgentJoin> ParseAgentJoin(std::string_view text);

}  // namespace ringfence::isolate

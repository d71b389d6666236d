#pragma once

// The jailer's own secrets, and what it knows of its server.

#include <optional>
#include <string>

#include "base/result.h"
#include "crypto/ed25519.h"
#include "isolate/join_token.h"
#include "os/unique_fd.h"

namespace ringfence::jailer {

struct Identity {
  crypto::SigningKey key;                        // signs receipts and incidents
  std::optional<crypto::PublicKey> grant_key;    // of the server; none: not joined yet
  std::string key_proof;                         // empty without a join token
  std::optional<isolate::AgentJoin> agent_join;  // the agent's half of a join token
};

// Reads (the first time: makes) the key in `folder`. With a token file, also takes the server's
// grant key from it; the file must not be readable by anyone else.
Result<Identity> LoadIdentity(const std::string& folder, const std::string& join_token_file);

}  // namespace ringfence::jailer

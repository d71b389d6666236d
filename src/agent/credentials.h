#pragma once

// What lets this node speak with its server: where it is, the CA it must prove itself by, and the
// node's own certificate. Kept in one file, replaced as a whole.

#include <memory>
#include <mutex>
#include <string>

#include "agent/surroundings.h"
#include "base/result.h"
#include "base/time.h"
#include "isolate/jailer_client.h"
#include "isolate/join_token.h"
#include "net/client.h"

namespace ringfence::agent {

struct Credentials {
  std::string server;  // "HOST:PORT"
  std::string ca_pem;
  std::string certificate_pem;
  std::string private_key_pem;  // a secret
  std::string log_vkey;
};

// kNotFound when the node has not joined yet.
Result<Credentials> LoadCredentials(const std::string& path);
Status SaveCredentials(const std::string& path, const Credentials& credentials);

// Trades the token for a certificate. `witness_vkey` verifies this node's cosignatures.
Result<Credentials> Join(const isolate::AgentJoin& join, const isolate::JailerHello& jailer,
                         const std::string& witness_vkey, const std::string& node);

// Whether so little of the certificate's life is left that it is to be renewed.
Result<bool> NeedsRenewal(const Credentials& credentials, Timestamp now);
Result<Credentials> Renew(const Credentials& credentials, const std::string& node, Line& line);

net::ClientOptions OptionsFor(const Credentials& credentials);

// Shared by the agent's threads. Any thread.
class CredentialHolder {
 public:
  explicit CredentialHolder(Credentials credentials) : credentials_(std::move(credentials)) {}
  Credentials Get() const {
    const std::lock_guard lock(mutex_);
    return credentials_;
  }
  void Set(Credentials credentials) {
    const std::lock_guard lock(mutex_);
    credentials_ = std::move(credentials);
  }

 private:
  mutable std::mutex mutex_;
  Credentials credentials_;
};

}  // namespace ringfence::agent

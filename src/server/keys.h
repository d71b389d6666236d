#pragma once

// The server's keys, made on first start and kept in a folder that only its user can read:
// the CA, the TLS certificate, and the keys that sign grants, checkpoints and tokens.

#include <string>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "base/time.h"
#include "crypto/ed25519.h"
#include "crypto/x509.h"
#include "net/server.h"

namespace ringfence::server {

inline constexpr Milliseconds kCaLife = std::chrono::hours(24 * 3650);
inline constexpr Milliseconds kServerCertificateLife = std::chrono::hours(24 * 90);
inline constexpr Milliseconds kNodeCertificateLife = std::chrono::hours(24 * 7);

struct KeyOptions {
  std::string folder;
  std::vector<std::string> names;  // DNS names and addresses in the server's certificate
  // A CA of the operator's own instead of a made one; both or neither.
  std::string ca_certificate_file;
  std::string ca_key_file;
};

struct ServerKeys {
  crypto::SigningKey grant;
  crypto::SigningKey log;
  SecretBytes token;
  crypto::KeyAndCertificate ca;
  std::string ca_fingerprint;  // hex
};

// kCorrupt for a key file that is damaged: nothing is made anew over it.
Result<ServerKeys> OpenKeys(const KeyOptions& options, Timestamp now);

// The stored TLS identity, or a new one when there is none, the names changed, or less than a
// third of its life is left.
Result<net::TlsIdentity> OpenTlsIdentity(const KeyOptions& options, const ServerKeys& keys,
                                         Timestamp now);

}  // namespace ringfence::server

#pragma once

// Certificates of Ringfence's own CA: P-256 keys, SHA-256, short lives.

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace ringfence::crypto {

struct KeyAndCertificate {
  std::string private_key_pem;  // PKCS#8; a secret
  std::string certificate_pem;
};

struct CertificateNames {
  std::string common_name = {};
  std::vector<std::string> dns = {};
  std::vector<std::string> ips = {};
  std::vector<std::string> uris = {};
};

enum class CertificateUse { kServer, kClient };

// A self-signed CA (path length 0, key usage certificate and CRL signing).
Result<KeyAndCertificate> MakeCa(std::string_view common_name, Timestamp now, Milliseconds life);

// A fresh key with a certificate from `ca`. Valid from five minutes before `now`, for clocks that
// differ.
Result<KeyAndCertificate> IssueWithKey(const KeyAndCertificate& ca, const CertificateNames& names,
                                       CertificateUse use, Timestamp now, Milliseconds life);

struct KeyAndRequest {
  std::string private_key_pem;
  std::string request_pem;  // PKCS#10
};
// The names asked for do not matter: the CA decides them. The request only proves the key.
Result<KeyAndRequest> MakeRequest(std::string_view common_name);

// kInvalidArgument when the request's own signature does not verify or its key is not P-256.
Result<std::string> IssueForRequest(const KeyAndCertificate& ca, std::string_view request_pem,
                                    const CertificateNames& names, CertificateUse use,
                                    Timestamp now, Milliseconds life);

struct CertificateFacts {
  std::string common_name;
  std::vector<std::string> dns;
  std::vector<std::string> ips;
  std::vector<std::string> uris;
  Timestamp not_before;
  Timestamp not_after;
  std::string fingerprint;  // SHA-256 of the DER, hex
  std::string serial;       // hex
};
Result<CertificateFacts> ReadCertificate(std::string_view pem);  // the first one in the text

}  // namespace ringfence::crypto

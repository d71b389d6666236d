#pragma once

// OpenSSL's objects with owners, for the files that speak to it. Not for folders other than
// crypto/ and, for TLS contexts, net/.

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace ringfence::crypto {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Cert = std::unique_ptr<X509, Freer<X509_free>>;
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;

inline constexpr std::size_t kPemBytesMax = 256 * 1024;

// What OpenSSL says went wrong last in this thread, which is then forgotten.
Error LibraryError(std::string_view what);

// For every PEM reader: without it OpenSSL would ask the terminal for a key's passphrase.
int NoPassphrase(char*, int, int, void*);

// A reader of `text`, which must outlive it; kInvalidArgument beyond kPemBytesMax.
Result<Bio> PemReader(std::string_view text);

// The next certificate in the text; null when there is none.
Cert NextCertificate(BIO* pem);
Result<Cert> ParseCertificate(std::string_view pem);
Result<Key> ParseKey(std::string_view pem);

Result<Timestamp> ToTimestamp(const ASN1_TIME* time);

}  // namespace ringfence::crypto

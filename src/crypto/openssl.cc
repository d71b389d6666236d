#include "crypto/openssl.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <ctime>
#include <string>

namespace ringfence::crypto {

Error LibraryError(std::string_view what) {
  const unsigned long code = ERR_get_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return Error{Code::kInternal,
               std::string(what) + ": " + (reason == nullptr ? "OpenSSL failed" : reason)};
}

int NoPassphrase(char*, int, int, void*) { return -1; }

Result<Bio> PemReader(std::string_view text) {
  if (text.size() > kPemBytesMax) {
    return Error{Code::kInvalidArgument, "PEM text is longer than 262144 bytes"};
  }
  Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (bio == nullptr) {
    return LibraryError("reading PEM text");
  }
  return bio;
}

Cert NextCertificate(BIO* pem) {
  Cert certificate(PEM_read_bio_X509(pem, nullptr, &NoPassphrase, nullptr));
  ERR_clear_error();
  return certificate;
}

Result<Cert> ParseCertificate(std::string_view pem) {
  RINGFENCE_ASSIGN(const Bio bio, PemReader(pem));
  Cert certificate = NextCertificate(bio.get());
  if (certificate == nullptr) {
    return Error{Code::kInvalidArgument, "not a certificate in PEM form",
                 "it starts with -----BEGIN CERTIFICATE-----"};
  }
  return certificate;
}

Result<Key> ParseKey(std::string_view pem) {
  RINGFENCE_ASSIGN(const Bio bio, PemReader(pem));
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return Error{Code::kInvalidArgument, "not a private key in PEM form without a passphrase",
                 "it starts with -----BEGIN PRIVATE KEY-----"};
  }
  return key;
}

Result<Timestamp> ToTimestamp(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    ERR_clear_error();
    return Error{Code::kInvalidArgument, "a certificate's time cannot be read"};
  }
  const std::chrono::year_month_day date{
      std::chrono::year(parts.tm_year + 1900),
      std::chrono::month(static_cast<unsigned>(parts.tm_mon + 1)),
      std::chrono::day(static_cast<unsigned>(parts.tm_mday))};
  return Timestamp(std::chrono::sys_days(date)) + std::chrono::hours(parts.tm_hour) +
         std::chrono::minutes(parts.tm_min) + std::chrono::seconds(parts.tm_sec);
}

}  // namespace ringfence::crypto

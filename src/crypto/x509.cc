#include "crypto/x509.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/obj_mac.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>

#include "base/encoding.h"
#include "crypto/openssl.h"
#include "crypto/random.h"

namespace ringfence::crypto {
namespace {

constexpr std::size_t kCommonNameBytesMax = 64;  // X.520's upper bound
constexpr std::size_t kNameBytesMax = 253;
constexpr std::size_t kNamesMax = 64;
constexpr std::size_t kSerialBytes = 16;
// How far before its making a certificate's life begins. Who is let in is decided by fingerprints
// and by the end of a life; its beginning would only lock everybody out when a clock that was ahead
// is put right.
constexpr Milliseconds kBackdated = std::chrono::hours(24 * 30);
constexpr std::string_view kCurve = "prime256v1";

using CertRequest = std::unique_ptr<X509_REQ, Freer<X509_REQ_free>>;
using Number = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using AltNames = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size <= 0 ? std::string() : std::string(data, static_cast<std::size_t>(size));
}

Result<Key> NewKey() {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) {
    return LibraryError("making a P-256 key");
  }
  return key;
}

Result<std::string> KeyPem(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr ||
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return LibraryError("writing a private key");
  }
  return Contents(bio.get());
}

Result<std::string> CertificatePem(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || PEM_write_bio_X509(bio.get(), certificate) != 1) {
    return LibraryError("writing a certificate");
  }
  return Contents(bio.get());
}

bool IsP256(const EVP_PKEY* key) {
  char name[32];
  std::size_t size = 0;
  return key != nullptr && EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
         EVP_PKEY_get_group_name(key, name, sizeof name, &size) == 1 &&
         std::string_view(name, size) == kCurve;
}

bool IsPrintableAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

Status CheckCommonName(std::string_view name) {
  const bool control =
      std::any_of(name.begin(), name.end(), [](char c) { return c >= 0 && c < ' '; });
  if (name.empty() || name.size() > kCommonNameBytesMax || !IsUtf8(name) || control) {
    return Error{Code::kInvalidArgument, "a certificate's common name has 1 to 64 bytes of text",
                 "", "common_name"};
  }
  return {};
}

Status SetSubject(X509_NAME* subject, std::string_view common_name) {
  RINGFENCE_TRY(CheckCommonName(common_name));
  if (X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(common_name.data()),
                                 static_cast<int>(common_name.size()), -1, 0) != 1) {
    return LibraryError("setting a certificate's subject");
  }
  return {};
}

std::time_t Seconds(Timestamp time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

struct Life {
  Timestamp from;
  Timestamp to;
};

Status SetLife(X509* certificate, const Life& life) {
  if (life.to <= life.from) {
    return Error{Code::kInvalidArgument, "a certificate's life must be longer than nothing"};
  }
  if (ASN1_TIME_set(X509_getm_notBefore(certificate), Seconds(life.from - kBackdated)) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate), Seconds(life.to)) == nullptr) {
    return LibraryError("setting a certificate's life");
  }
  return {};
}

Status SetSerial(X509* certificate) {
  const Bytes random = RandomBytes(kSerialBytes);
  const Number number(BN_bin2bn(reinterpret_cast<const unsigned char*>(random.data()),
                                static_cast<int>(random.size()), nullptr));
  if (number == nullptr ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr) {
    return LibraryError("setting a certificate's serial");
  }
  return {};
}

// `value` is OpenSSL's configuration syntax: constants of ours only, never a caller's text.
Status AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return LibraryError("adding a certificate extension");
  }
  return {};
}

Status PushText(GENERAL_NAMES* names, int type, const std::string& text, const char* field) {
  if (text.empty() || text.size() > kNameBytesMax || !IsPrintableAscii(text)) {
    return Error{Code::kInvalidArgument, "a certificate name has 1 to 253 printable characters", "",
                 field};
  }
  GENERAL_NAME* const name = GENERAL_NAME_new();
  ASN1_IA5STRING* const value = ASN1_IA5STRING_new();
  if (name == nullptr || value == nullptr ||
      ASN1_STRING_set(value, text.data(), static_cast<int>(text.size())) != 1 ||
      sk_GENERAL_NAME_push(names, name) == 0) {
    GENERAL_NAME_free(name);
    ASN1_IA5STRING_free(value);
    return LibraryError("adding a certificate name");
  }
  GENERAL_NAME_set0_value(name, type, value);
  return {};
}

Status PushIp(GENERAL_NAMES* names, const std::string& text) {
  ASN1_OCTET_STRING* const value = a2i_IPADDRESS(text.c_str());
  if (value == nullptr) {
    ERR_clear_error();
    return Error{Code::kInvalidArgument, "not an IP address: \"" + text.substr(0, 64) + "\"",
                 "write it as 192.0.2.7 or 2001:db8::7", "ips"};
  }
  GENERAL_NAME* const name = GENERAL_NAME_new();
  if (name == nullptr || sk_GENERAL_NAME_push(names, name) == 0) {
    GENERAL_NAME_free(name);
    ASN1_OCTET_STRING_free(value);
    return LibraryError("adding a certificate address");
  }
  GENERAL_NAME_set0_value(name, GEN_IPADD, value);
  return {};
}

Status AddNames(X509* certificate, const CertificateNames& names) {
  if (names.dns.size() + names.ips.size() + names.uris.size() > kNamesMax) {
    return Error{Code::kInvalidArgument, "a certificate has at most 64 names"};
  }
  if (names.dns.empty() && names.ips.empty() && names.uris.empty()) {
    return {};
  }
  const AltNames list(GENERAL_NAMES_new());
  if (list == nullptr) {
    return LibraryError("adding certificate names");
  }
  for (const std::string& dns : names.dns) {
    RINGFENCE_TRY(PushText(list.get(), GEN_DNS, dns, "dns"));
  }
  for (const std::string& uri : names.uris) {
    RINGFENCE_TRY(PushText(list.get(), GEN_URI, uri, "uris"));
  }
  for (const std::string& ip : names.ips) {
    RINGFENCE_TRY(PushIp(list.get(), ip));
  }
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, list.get(), 0, X509V3_ADD_DEFAULT) !=
      1) {
    return LibraryError("adding certificate names");
  }
  return {};
}

struct Authority {
  Cert certificate;
  Key key;
};

Result<Authority> OpenAuthority(const KeyAndCertificate& ca) {
  RINGFENCE_ASSIGN(Cert certificate, ParseCertificate(ca.certificate_pem));
  RINGFENCE_ASSIGN(Key key, ParseKey(ca.private_key_pem));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return Error{Code::kInvalidArgument, "the CA's key does not belong to its certificate",
                 "supply the key that the CA certificate was made with"};
  }
  if (X509_check_ca(certificate.get()) != 1) {
    return Error{Code::kInvalidArgument, "the CA's certificate is not one of a CA",
                 "it needs basicConstraints CA:TRUE and key usage keyCertSign"};
  }
  return Authority{std::move(certificate), std::move(key)};
}

struct Plan {
  const CertificateNames& names;
  CertificateUse use;
  Timestamp now;
  Milliseconds life;
};

Result<std::string> Issue(const Authority& ca, EVP_PKEY* subject_key, const Plan& plan) {
  RINGFENCE_ASSIGN(const Timestamp ca_end, ToTimestamp(X509_get0_notAfter(ca.certificate.get())));
  if (ca_end <= plan.now) {
    return Error{Code::kFailedPrecondition, "the CA's certificate expired " + FormatTime(ca_end),
                 "check the clock, or make a new CA"};
  }
  const Cert certificate(X509_new());
  X509* const cert = certificate.get();
  if (cert == nullptr || X509_set_version(cert, X509_VERSION_3) != 1 ||
      X509_set_pubkey(cert, subject_key) != 1 ||
      X509_set_issuer_name(cert, X509_get_subject_name(ca.certificate.get())) != 1) {
    return LibraryError("making a certificate");
  }
  RINGFENCE_TRY(SetSerial(cert));
  RINGFENCE_TRY(SetSubject(X509_get_subject_name(cert), plan.names.common_name));
  // A certificate that outlives its CA would only fail later and less clearly.
  const Timestamp end = std::min(plan.now + plan.life, ca_end);
  RINGFENCE_TRY(SetLife(cert, {plan.now, end}));
  X509* const issuer = ca.certificate.get();
  RINGFENCE_TRY(AddExtension(cert, issuer, NID_basic_constraints, "critical,CA:FALSE"));
  RINGFENCE_TRY(AddExtension(cert, issuer, NID_key_usage, "critical,digitalSignature"));
  RINGFENCE_TRY(AddExtension(cert, issuer, NID_ext_key_usage,
                             plan.use == CertificateUse::kServer ? "serverAuth" : "clientAuth"));
  RINGFENCE_TRY(AddExtension(cert, issuer, NID_subject_key_identifier, "hash"));
  RINGFENCE_TRY(AddExtension(cert, issuer, NID_authority_key_identifier, "keyid"));
  RINGFENCE_TRY(AddNames(cert, plan.names));
  if (X509_sign(cert, ca.key.get(), EVP_sha256()) == 0) {
    return LibraryError("signing a certificate");
  }
  return CertificatePem(cert);
}

}  // namespace

Result<KeyAndCertificate> MakeCa(std::string_view common_name, Timestamp now, Milliseconds life) {
  RINGFENCE_ASSIGN(const Key key, NewKey());
  const Cert certificate(X509_new());
  X509* const cert = certificate.get();
  if (cert == nullptr || X509_set_version(cert, X509_VERSION_3) != 1 ||
      X509_set_pubkey(cert, key.get()) != 1) {
    return LibraryError("making a CA certificate");
  }
  RINGFENCE_TRY(SetSerial(cert));
  RINGFENCE_TRY(SetSubject(X509_get_subject_name(cert), common_name));
  if (X509_set_issuer_name(cert, X509_get_subject_name(cert)) != 1) {
    return LibraryError("making a CA certificate");
  }
  RINGFENCE_TRY(SetLife(cert, {now, now + life}));
  RINGFENCE_TRY(AddExtension(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  RINGFENCE_TRY(AddExtension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign"));
  RINGFENCE_TRY(AddExtension(cert, cert, NID_subject_key_identifier, "hash"));
  if (X509_sign(cert, key.get(), EVP_sha256()) == 0) {
    return LibraryError("signing a CA certificate");
  }
  KeyAndCertificate made;
  RINGFENCE_ASSIGN(made.private_key_pem, KeyPem(key.get()));
  RINGFENCE_ASSIGN(made.certificate_pem, CertificatePem(cert));
  return made;
}

Result<KeyAndCertificate> IssueWithKey(const KeyAndCertificate& ca, const CertificateNames& names,
                                       CertificateUse use, Timestamp now, Milliseconds life) {
  RINGFENCE_ASSIGN(const Authority authority, OpenAuthority(ca));
  RINGFENCE_ASSIGN(const Key key, NewKey());
  KeyAndCertificate made;
  RINGFENCE_ASSIGN(made.certificate_pem, Issue(authority, key.get(), {names, use, now, life}));
  RINGFENCE_ASSIGN(made.private_key_pem, KeyPem(key.get()));
  return made;
}

Result<KeyAndRequest> MakeRequest(std::string_view common_name) {
  RINGFENCE_ASSIGN(const Key key, NewKey());
  const CertRequest request(X509_REQ_new());
  if (request == nullptr || X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) != 1 ||
      X509_REQ_set_pubkey(request.get(), key.get()) != 1) {
    return LibraryError("making a certificate request");
  }
  RINGFENCE_TRY(SetSubject(X509_REQ_get_subject_name(request.get()), common_name));
  const Bio bio(BIO_new(BIO_s_mem()));
  if (X509_REQ_sign(request.get(), key.get(), EVP_sha256()) == 0 || bio == nullptr ||
      PEM_write_bio_X509_REQ(bio.get(), request.get()) != 1) {
    return LibraryError("signing a certificate request");
  }
  KeyAndRequest made;
  RINGFENCE_ASSIGN(made.private_key_pem, KeyPem(key.get()));
  made.request_pem = Contents(bio.get());
  return made;
}

Result<std::string> IssueForRequest(const KeyAndCertificate& ca, std::string_view request_pem,
                                    const CertificateNames& names, CertificateUse use,
                                    Timestamp now, Milliseconds life) {
  RINGFENCE_ASSIGN(const Bio bio, PemReader(request_pem));
  const CertRequest request(PEM_read_bio_X509_REQ(bio.get(), nullptr, &NoPassphrase, nullptr));
  ERR_clear_error();
  if (request == nullptr) {
    return Error{Code::kInvalidArgument, "not a certificate request in PEM form",
                 "it starts with -----BEGIN CERTIFICATE REQUEST-----", "request"};
  }
  EVP_PKEY* const key = X509_REQ_get0_pubkey(request.get());
  if (!IsP256(key)) {
    ERR_clear_error();
    return Error{Code::kInvalidArgument, "the certificate request's key is not on P-256",
                 "make the key with the curve prime256v1", "request"};
  }
  if (X509_REQ_verify(request.get(), key) != 1) {
    ERR_clear_error();
    return Error{Code::kInvalidArgument,
                 "the certificate request is not signed by the key it carries",
                 "make a new request", "request"};
  }
  RINGFENCE_ASSIGN(const Authority authority, OpenAuthority(ca));
  return Issue(authority, key, {names, use, now, life});
}

}  // namespace ringfence::crypto

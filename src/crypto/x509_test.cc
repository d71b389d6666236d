// Goal: what the CA issues verifies with OpenSSL for its use and within its life only, carries the
// names it was given, and is issued only for a P-256 key that signed its request.
// Method: OpenSSL's own chain verification at chosen times; every bit of a request flipped; keys of
// other kinds.

#include "crypto/x509.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <set>

#include "base/encoding.h"
#include "crypto/openssl.h"

namespace ringfence::crypto {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

const Timestamp kNow = ParseTime("2030-06-15T12:00:00Z").value();
const CertificateNames kNames{.common_name = "node-1",
                              .dns = {"localhost", "node-1.example"},
                              .ips = {"127.0.0.1", "2001:db8::7", "::1", "::", "1:0:0:2::3"},
                              .uris = {"ringfence://node/node-1"}};

KeyAndCertificate NewCa() { return MakeCa("Ringfence CA", kNow, hours(24 * 365)).value(); }

// OpenSSL's verdict on a leaf for a purpose at a time.
int Verdict(const std::string& leaf_pem, const std::string& ca_pem, int purpose, Timestamp when) {
  const Cert leaf = ParseCertificate(leaf_pem).value();
  const Cert ca = ParseCertificate(ca_pem).value();
  const std::unique_ptr<X509_STORE, Freer<X509_STORE_free>> store(X509_STORE_new());
  const std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>> context(X509_STORE_CTX_new());
  EXPECT_EQ(X509_STORE_add_cert(store.get(), ca.get()), 1);
  EXPECT_EQ(X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), nullptr), 1);
  X509_VERIFY_PARAM* const parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(
      parameters, std::chrono::floor<std::chrono::seconds>(when).time_since_epoch().count());
  EXPECT_EQ(X509_VERIFY_PARAM_set_purpose(parameters, purpose), 1);
  X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_X509_STRICT);
  (void)X509_verify_cert(context.get());
  ERR_clear_error();
  return X509_STORE_CTX_get_error(context.get());
}

TEST(X509Test, IssuedCertificatesVerifyForTheirUseOnly) {
  const KeyAndCertificate ca = NewCa();
  const auto server = IssueWithKey(ca, kNames, CertificateUse::kServer, kNow, hours(1)).value();
  const auto client = IssueWithKey(ca, kNames, CertificateUse::kClient, kNow, hours(1)).value();
  EXPECT_EQ(Verdict(server.certificate_pem, ca.certificate_pem, X509_PURPOSE_SSL_SERVER, kNow),
            X509_V_OK);
  EXPECT_EQ(Verdict(client.certificate_pem, ca.certificate_pem, X509_PURPOSE_SSL_CLIENT, kNow),
            X509_V_OK);
  EXPECT_EQ(Verdict(server.certificate_pem, ca.certificate_pem, X509_PURPOSE_SSL_CLIENT, kNow),
            X509_V_ERR_INVALID_PURPOSE);
  EXPECT_EQ(Verdict(client.certificate_pem, ca.certificate_pem, X509_PURPOSE_SSL_SERVER, kNow),
            X509_V_ERR_INVALID_PURPOSE);
}

TEST(X509Test, LifeBeginsFiveMinutesEarlyAndEndsOnTime) {
  const KeyAndCertificate ca = NewCa();
  const auto leaf = IssueWithKey(ca, kNames, CertificateUse::kServer, kNow, hours(1)).value();
  const auto at = [&](Timestamp when) {
    return Verdict(leaf.certificate_pem, ca.certificate_pem, X509_PURPOSE_SSL_SERVER, when);
  };
  EXPECT_EQ(at(kNow - hours(24 * 29)), X509_V_OK);
  EXPECT_EQ(at(kNow - hours(24 * 31)), X509_V_ERR_CERT_NOT_YET_VALID);
  EXPECT_EQ(at(kNow + minutes(59)), X509_V_OK);
  EXPECT_EQ(at(kNow + minutes(61)), X509_V_ERR_CERT_HAS_EXPIRED);
}

TEST(X509Test, AnotherCaOfTheSameNameDoesNotVerifyIt) {
  const KeyAndCertificate ca = NewCa();
  const KeyAndCertificate other = NewCa();
  const auto leaf = IssueWithKey(ca, kNames, CertificateUse::kServer, kNow, hours(1)).value();
  EXPECT_NE(Verdict(leaf.certificate_pem, other.certificate_pem, X509_PURPOSE_SSL_SERVER, kNow),
            X509_V_OK);
  const KeyAndCertificate mixed{other.private_key_pem, ca.certificate_pem};
  EXPECT_FALSE(IssueWithKey(mixed, kNames, CertificateUse::kServer, kNow, hours(1)).has_value());
}

TEST(X509Test, ALeafCannotIssueAndACaCannotHaveOneBelow) {
  const KeyAndCertificate ca = NewCa();
  const auto leaf = IssueWithKey(ca, kNames, CertificateUse::kServer, kNow, hours(1)).value();
  EXPECT_FALSE(IssueWithKey(leaf, kNames, CertificateUse::kServer, kNow, hours(1)).has_value());
  const Cert certificate = ParseCertificate(ca.certificate_pem).value();
  EXPECT_EQ(X509_get_pathlen(certificate.get()), 0);
  EXPECT_EQ(X509_get_key_usage(certificate.get()), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
}

TEST(X509Test, FactsAreWhatWasAskedFor) {
  const KeyAndCertificate ca = NewCa();
  const auto leaf = IssueWithKey(ca, kNames, CertificateUse::kServer, kNow, hours(1)).value();
  const auto facts = ReadCertificate(leaf.certificate_pem + ca.certificate_pem).value();
  EXPECT_EQ(facts.common_name, kNames.common_name);
  EXPECT_EQ(facts.dns, kNames.dns);
  const std::vector<std::string> ips = {"127.0.0.1", "2001:db8::7", "::1", "::", "1:0:0:2::3"};
  EXPECT_EQ(facts.ips, ips);
  EXPECT_EQ(facts.uris, kNames.uris);
  EXPECT_EQ(facts.not_before, kNow - hours(24 * 30));
  EXPECT_EQ(facts.not_after, kNow + hours(1));
  EXPECT_EQ(facts.fingerprint.size(), 64U);
  const auto ca_facts = ReadCertificate(ca.certificate_pem).value();
  EXPECT_EQ(ca_facts.common_name, "Ringfence CA");
  EXPECT_TRUE(ca_facts.dns.empty());
  EXPECT_NE(ca_facts.fingerprint, facts.fingerprint);
}

TEST(X509Test, SerialsAreRandomAndLong) {
  const KeyAndCertificate ca = NewCa();
  std::set<std::string> seen;
  std::size_t longest = 0;
  for (int i = 0; i < 50; ++i) {
    const auto leaf = IssueWithKey(ca, kNames, CertificateUse::kServer, kNow, hours(1)).value();
    const std::string serial = ReadCertificate(leaf.certificate_pem).value().serial;
    EXPECT_TRUE(seen.insert(serial).second);
    longest = std::max(longest, serial.size());
  }
  EXPECT_EQ(longest, 32U) << "128 bits";
}

TEST(X509Test, ALeafDoesNotOutliveItsCaAndAnExpiredCaIssuesNothing) {
  const auto ca = MakeCa("brief", kNow, hours(1)).value();
  const auto leaf = IssueWithKey(ca, kNames, CertificateUse::kServer, kNow, hours(100)).value();
  EXPECT_EQ(ReadCertificate(leaf.certificate_pem).value().not_after, kNow + hours(1));
  const auto late = IssueWithKey(ca, kNames, CertificateUse::kServer, kNow + hours(2), hours(1));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Code::kFailedPrecondition);
  EXPECT_FALSE(late.error().hint.empty());
}

TEST(X509Test, ARequestsNamesDoNotMatter) {
  const KeyAndCertificate ca = NewCa();
  const auto request = MakeRequest("administrator").value();
  const auto issued =
      IssueForRequest(ca, request.request_pem, kNames, CertificateUse::kClient, kNow, hours(1))
          .value();
  EXPECT_EQ(ReadCertificate(issued).value().common_name, "node-1");
  EXPECT_EQ(Verdict(issued, ca.certificate_pem, X509_PURPOSE_SSL_CLIENT, kNow), X509_V_OK);
  const Cert certificate = ParseCertificate(issued).value();
  const Key key = ParseKey(request.private_key_pem).value();
  EXPECT_EQ(X509_check_private_key(certificate.get(), key.get()), 1);
}

std::string Pem(const Bytes& der) {
  std::string text = "-----BEGIN CERTIFICATE REQUEST-----\n";
  const std::string body = Base64(der);
  for (std::size_t i = 0; i < body.size(); i += 64) {
    text += body.substr(i, 64) + "\n";
  }
  return text + "-----END CERTIFICATE REQUEST-----\n";
}

Bytes Der(const std::string& request_pem) {
  const Bio bio = PemReader(request_pem).value();
  const std::unique_ptr<X509_REQ, Freer<X509_REQ_free>> request(
      PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr));
  unsigned char* raw = nullptr;
  const int size = i2d_X509_REQ(request.get(), &raw);
  const auto* const bytes = reinterpret_cast<const std::byte*>(raw);
  const Bytes der(bytes, bytes + size);
  OPENSSL_free(raw);
  return der;
}

TEST(X509Test, ARequestWithAnyBitChangedIsRefused) {
  const KeyAndCertificate ca = NewCa();
  const Bytes der = Der(MakeRequest("node").value().request_pem);
  const auto issue = [&](const Bytes& bytes) {
    return IssueForRequest(ca, Pem(bytes), kNames, CertificateUse::kClient, kNow, hours(1));
  };
  ASSERT_TRUE(issue(der).has_value());
  for (std::size_t i = 0; i < der.size() * 8; ++i) {
    Bytes damaged = der;
    damaged[i / 8] ^= std::byte{1} << (i % 8);
    const auto issued = issue(damaged);
    ASSERT_FALSE(issued.has_value()) << i;
    EXPECT_EQ(issued.error().code, Code::kInvalidArgument) << i << issued.error().message;
  }
}

std::string RequestWith(EVP_PKEY* key, const EVP_MD* digest) {
  const std::unique_ptr<X509_REQ, Freer<X509_REQ_free>> request(X509_REQ_new());
  EXPECT_EQ(X509_REQ_set_pubkey(request.get(), key), 1);
  EXPECT_GT(X509_REQ_sign(request.get(), key, digest), 0);
  const Bio bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_X509_REQ(bio.get(), request.get()), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

TEST(X509Test, KeysOfOtherKindsAreRefused) {
  const KeyAndCertificate ca = NewCa();
  const Key rsa(EVP_RSA_gen(2048));
  const Key p384(EVP_EC_gen("P-384"));
  const Key ed(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  for (const auto& [key, digest] :
       {std::pair(rsa.get(), EVP_sha256()), std::pair(p384.get(), EVP_sha256()),
        std::pair(ed.get(), static_cast<const EVP_MD*>(nullptr))}) {
    const auto issued = IssueForRequest(ca, RequestWith(key, digest), kNames,
                                        CertificateUse::kClient, kNow, hours(1));
    ASSERT_FALSE(issued.has_value());
    EXPECT_EQ(issued.error().code, Code::kInvalidArgument);
    EXPECT_NE(issued.error().message.find("P-256"), std::string::npos);
  }
}

TEST(X509Test, WrongInputIsRefused) {
  const KeyAndCertificate ca = NewCa();
  const auto issue = [&](const CertificateNames& names) {
    return IssueWithKey(ca, names, CertificateUse::kServer, kNow, hours(1)).has_value();
  };
  EXPECT_TRUE(issue({.common_name = "ok"}));
  EXPECT_FALSE(issue({.common_name = ""}));
  EXPECT_FALSE(issue({.common_name = std::string(65, 'a')}));
  EXPECT_FALSE(issue({.common_name = "a\nb"}));
  EXPECT_FALSE(issue({.common_name = "\xff"}));
  EXPECT_FALSE(issue({.common_name = "a", .dns = {"b,IP:1.2.3.4 x"}}));
  EXPECT_FALSE(issue({.common_name = "a", .dns = {""}}));
  EXPECT_FALSE(issue({.common_name = "a", .ips = {"1.2.3"}}));
  EXPECT_FALSE(issue({.common_name = "a", .uris = {"\xc3\xbc"}}));
  EXPECT_FALSE(issue({.common_name = "a", .dns = std::vector<std::string>(65, "b")}));
  EXPECT_FALSE(IssueWithKey(ca, kNames, CertificateUse::kServer, kNow, -hours(1)).has_value());
  EXPECT_FALSE(MakeCa("", kNow, hours(1)).has_value());
  for (const std::string& text :
       {std::string(), std::string("nonsense"), std::string(300000, 'a'), ca.private_key_pem}) {
    EXPECT_FALSE(ReadCertificate(text).has_value());
    EXPECT_FALSE(
        IssueForRequest(ca, text, kNames, CertificateUse::kServer, kNow, hours(1)).has_value());
    EXPECT_FALSE(
        IssueWithKey({ca.private_key_pem, text}, kNames, CertificateUse::kServer, kNow, hours(1))
            .has_value());
    EXPECT_FALSE(IssueWithKey({text + "x", ca.certificate_pem}, kNames, CertificateUse::kServer,
                              kNow, hours(1))
                     .has_value() &&
                 text != ca.private_key_pem);
  }
}

}  // namespace
}  // namespace ringfence::crypto

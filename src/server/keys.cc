#include "server/keys.h"

#include <algorithm>

#include "base/encoding.h"
#include "crypto/random.h"
#include "os/file.h"

namespace ringfence::server {
namespace {

constexpr std::size_t kPemBytesMax = 64 * 1024;
constexpr unsigned kSecretMode = 0600;

Result<SecretBytes> OpenSecret(const std::string& path) {
  const auto text = os::ReadText(path, 256);
  if (text.has_value()) {
    auto bytes = FromBase64(*text);
    if (!bytes.has_value() || bytes->size() != 32) {
      return Error{Code::kCorrupt, path + " is damaged", "restore it from a backup"};
    }
    return SecretBytes(std::move(bytes).value());
  }
  if (text.error().code != Code::kNotFound) {
    return text.error();
  }
  SecretBytes made = crypto::RandomSecret(32);
  RINGFENCE_TRY(os::CreateFileDurable(path, AsBytes(Base64(made.Reveal())), kSecretMode));
  return made;
}

Result<crypto::SigningKey> OpenSigningKey(const std::string& path) {
  RINGFENCE_ASSIGN(SecretBytes seed, OpenSecret(path));
  return crypto::SigningKey::FromSeed(std::move(seed));
}

Result<crypto::KeyAndCertificate> OpenCa(const KeyOptions& options, Timestamp now) {
  crypto::KeyAndCertificate ca;
  const bool supplied = !options.ca_certificate_file.empty();
  const std::string certificate =
      supplied ? options.ca_certificate_file : options.folder + "/ca.pem";
  const std::string key = supplied ? options.ca_key_file : options.folder + "/ca.key.pem";
  if (!supplied && !os::Exists(certificate)) {
    RINGFENCE_ASSIGN(ca, crypto::MakeCa("Ringfence CA", now, kCaLife));
    // The key first: a certificate without its key would look like a whole CA after a crash.
    RINGFENCE_TRY(os::WriteFileDurable(key, AsBytes(ca.private_key_pem), kSecretMode));
    RINGFENCE_TRY(os::WriteFileDurable(certificate, AsBytes(ca.certificate_pem)));
    return ca;
  }
  RINGFENCE_ASSIGN(ca.certificate_pem, os::ReadText(certificate, kPemBytesMax));
  RINGFENCE_ASSIGN(ca.private_key_pem, os::ReadText(key, kPemBytesMax));
  return ca;
}

bool IsAddress(const std::string& name) {
  return name.find(':') != std::string::npos || std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || c == '.';
         });
}

}  // namespace

Result<ServerKeys> OpenKeys(const KeyOptions& options, Timestamp now) {
  RINGFENCE_TRY(os::MakeDirs(options.folder, 0700));
  RINGFENCE_ASSIGN(crypto::SigningKey grant, OpenSigningKey(options.folder + "/grant.key"));
  RINGFENCE_ASSIGN(crypto::SigningKey log, OpenSigningKey(options.folder + "/log.key"));
  RINGFENCE_ASSIGN(SecretBytes token, OpenSecret(options.folder + "/token.key"));
  RINGFENCE_ASSIGN(crypto::KeyAndCertificate ca, OpenCa(options, now));
  RINGFENCE_ASSIGN(const crypto::CertificateFacts facts,
                   crypto::ReadCertificate(ca.certificate_pem));
  if (facts.not_after <= now) {
    return Error{Code::kFailedPrecondition, "the CA expired on " + FormatTime(facts.not_after),
                 "supply a new one (server.ca.certificate, server.ca.key), or set the clock right"};
  }
  return ServerKeys{std::move(grant), std::move(log), std::move(token), std::move(ca),
                    facts.fingerprint};
}

Result<net::TlsIdentity> OpenTlsIdentity(const KeyOptions& options, const ServerKeys& keys,
                                         Timestamp now) {
  const std::string certificate_path = options.folder + "/tls.pem";
  const std::string key_path = options.folder + "/tls.key.pem";
  crypto::CertificateNames names{"ringfence", {"localhost"}, {"127.0.0.1", "::1"}, {}};
  for (const std::string& name : options.names) {
    auto& list = IsAddress(name) ? names.ips : names.dns;
    if (!name.empty() && std::find(list.begin(), list.end(), name) == list.end()) {
      list.push_back(name);
    }
  }
  const auto certificate = os::ReadText(certificate_path, kPemBytesMax);
  const auto key = os::ReadText(key_path, kPemBytesMax);
  if (certificate.has_value() && key.has_value()) {
    const auto facts = crypto::ReadCertificate(*certificate);
    if (facts.has_value() && facts->not_after - now > kServerCertificateLife / 3 &&
        facts->not_before <= now && facts->dns == names.dns &&
        facts->ips.size() == names.ips.size()) {
      return net::TlsIdentity{*certificate + keys.ca.certificate_pem, *key,
                              keys.ca.certificate_pem};
    }
  }
  RINGFENCE_ASSIGN(const crypto::KeyAndCertificate made,
                   crypto::IssueWithKey(keys.ca, names, crypto::CertificateUse::kServer, now,
                                        kServerCertificateLife));
  RINGFENCE_TRY(os::WriteFileDurable(key_path, AsBytes(made.private_key_pem), kSecretMode));
  RINGFENCE_TRY(os::WriteFileDurable(certificate_path, AsBytes(made.certificate_pem)));
  return net::TlsIdentity{made.certificate_pem + keys.ca.certificate_pem, made.private_key_pem,
                          keys.ca.certificate_pem};
}

}  // namespace ringfence::server

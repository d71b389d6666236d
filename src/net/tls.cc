#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "crypto/openssl.h"
#include "crypto/x509.h"

namespace ringfence::net {
namespace {

constexpr int kChainMax = 8;
constexpr int kAuthoritiesMax = 64;
constexpr long kSessionSeconds = 3600;

using crypto::Bio;
using crypto::Cert;
using crypto::NextCertificate;

Error Wrong(std::string message, std::string hint = {}) {
  ERR_clear_error();
  return Error{Code::kInvalidArgument, std::move(message), std::move(hint)};
}

Status UseChain(SSL_CTX* context, std::string_view chain_pem, std::string_view key_pem) {
  RINGFENCE_ASSIGN(const Bio chain, crypto::PemReader(chain_pem));
  const Cert leaf = NextCertificate(chain.get());
  if (leaf == nullptr || SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return Wrong("the TLS certificate is not one in PEM form",
                 "it starts with -----BEGIN CERTIFICATE-----");
  }
  for (int i = 0; Cert link = NextCertificate(chain.get()); ++i) {
    if (i == kChainMax || SSL_CTX_add0_chain_cert(context, link.get()) != 1) {
      return Wrong("the TLS certificate's chain is longer than 8");
    }
    (void)link.release();  // now the context's
  }
  const auto key = crypto::ParseKey(key_pem);
  if (!key.has_value()) {
    return Prefix("the TLS private key", key.error());
  }
  if (SSL_CTX_use_PrivateKey(context, key->get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return Wrong("the TLS private key does not belong to the certificate",
                 "supply the key that the certificate was made for");
  }
  return {};
}

// Trusts exactly the certificates in `pem`; for a server also names them to clients that have
// several certificates to choose from.
Status Trust(SSL_CTX* context, std::string_view pem, bool tell_clients) {
  RINGFENCE_ASSIGN(const Bio bio, crypto::PemReader(pem));
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  int count = 0;
  while (const Cert authority = NextCertificate(bio.get())) {
    if (++count > kAuthoritiesMax || X509_STORE_add_cert(store, authority.get()) != 1 ||
        (tell_clients && SSL_CTX_add_client_CA(context, authority.get()) != 1)) {
      return Wrong("the CA certificates cannot be used: too many, or damaged");
    }
  }
  if (count == 0) {
    return Wrong("the CA certificate is not one in PEM form",
                 "it starts with -----BEGIN CERTIFICATE-----");
  }
  (void)X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  return {};
}

Result<TlsContext> NewContext(const SSL_METHOD* method) {
  TlsContext context(SSL_CTX_new(method), &SSL_CTX_free);
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set1_groups_list(context.get(), "X25519:P-256") != 1) {
    ERR_clear_error();
    return Error{Code::kInternal, "OpenSSL cannot make a TLS 1.3 context"};
  }
  (void)SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                            SSL_MODE_RELEASE_BUFFERS);
  // One read of the socket for a record instead of two.
  SSL_CTX_set_read_ahead(context.get(), 1);
  // A peer that just goes away is told from one that says goodbye by no one: HTTP's own lengths
  // show whether a message was cut.
  (void)SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  return context;
}

struct VerifyWords {
  long result;
  const char* what;
  const char* hint;
};
constexpr VerifyWords kVerifyWords[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, "the server's certificate has expired",
     "check the clock of both machines; otherwise renew the certificate"},
    {X509_V_ERR_CERT_NOT_YET_VALID, "the server's certificate is not valid yet",
     "check the clock of both machines"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
     "the server's certificate is not signed by our CA",
     "check that this is the right server and the CA file is the one it was set up with"},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, "the server's certificate is not signed by our CA",
     "check that this is the right server and the CA file is the one it was set up with"},
    {X509_V_ERR_CERT_SIGNATURE_FAILURE, "the server's certificate is not signed by our CA",
     "check that this is the right server and the CA file is the one it was set up with"},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, "the server's certificate is not signed by our CA",
     "check that this is the right server and the CA file is the one it was set up with"},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, "the server's certificate is not signed by our CA",
     "check that this is the right server and the CA file is the one it was set up with"},
    {X509_V_ERR_HOSTNAME_MISMATCH, "the server's certificate does not carry the name we called",
     "use the name or address that the certificate was made for"},
    {X509_V_ERR_IP_ADDRESS_MISMATCH,
     "the server's certificate does not carry the address we called",
     "use the name or address that the certificate was made for"},
    {X509_V_ERR_INVALID_PURPOSE, "the server's certificate was not made for a server", ""},
};

struct AlertWords {
  int reason;
  const char* what;
  const char* hint;
};
constexpr AlertWords kAlertWords[] = {
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, "the server refused our certificate: it has expired",
     "check the clock of both machines; otherwise renew the certificate or join again"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, "the server refused our certificate: it is not by its CA",
     "join this server again to get a certificate from it"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "the server refused our certificate",
     "check the clock of both machines; otherwise join again"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, "the server refused our certificate",
     "check the clock of both machines; otherwise join again"},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, "the server refused our certificate: wrong kind",
     "use a certificate made for a client"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "the server does not speak TLS 1.3", ""},
    {SSL_R_UNSUPPORTED_PROTOCOL, "the server does not speak TLS 1.3", ""},
    {SSL_R_WRONG_VERSION_NUMBER, "the server does not speak TLS there",
     "check the port: is another program listening on it?"},
    {SSL_R_UNEXPECTED_EOF_WHILE_READING, "the server closed the connection",
     "it may be restarting or have too many connections: try again"},
};

}  // namespace

Result<TlsContext> MakeServerContext(const TlsIdentity& identity) {
  RINGFENCE_ASSIGN(TlsContext context, NewContext(TLS_server_method()));
  RINGFENCE_TRY(UseChain(context.get(), identity.certificate_chain_pem, identity.private_key_pem));
  if (!identity.client_ca_pem.empty()) {
    RINGFENCE_TRY(Trust(context.get(), identity.client_ca_pem, true));
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  constexpr unsigned char kSessions[] = "ringfence";
  (void)SSL_CTX_set_session_id_context(context.get(), kSessions, sizeof kSessions - 1);
  (void)SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  (void)SSL_CTX_set_timeout(context.get(), kSessionSeconds);
  (void)SSL_CTX_set_num_tickets(context.get(), 1);
  return context;
}

Result<TlsContext> MakeClientContext(const ClientTls& tls) {
  RINGFENCE_ASSIGN(TlsContext context, NewContext(TLS_client_method()));
  RINGFENCE_TRY(Trust(context.get(), tls.ca_pem, false));
  if (!tls.certificate_chain_pem.empty()) {
    RINGFENCE_TRY(UseChain(context.get(), tls.certificate_chain_pem, tls.private_key_pem));
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

Status ExpectName(SSL* ssl, const std::string& name) {
  X509_VERIFY_PARAM* const parameters = SSL_get0_param(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str()) == 1) {
    return {};
  }
  ERR_clear_error();
  X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (X509_VERIFY_PARAM_set1_host(parameters, name.data(), name.size()) != 1 ||
      SSL_set_tlsext_host_name(ssl, name.c_str()) != 1) {
    return Wrong("not a server name: \"" + name.substr(0, 80) + "\"");
  }
  return {};
}

Result<std::optional<PeerCertificate>> PeerOf(SSL* ssl) {
  X509* const certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr) {
    return std::optional<PeerCertificate>();
  }
  if (SSL_get_verify_result(ssl) != X509_V_OK ||
      X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0) {
    return Error{Code::kUnauthenticated, "the client's certificate has expired"};
  }
  const Bio bio(BIO_new(BIO_s_mem()));
  char* data = nullptr;
  if (bio == nullptr || PEM_write_bio_X509(bio.get(), certificate) != 1) {
    return Error{Code::kInternal, "the client's certificate cannot be written"};
  }
  const long size = BIO_get_mem_data(bio.get(), &data);
  RINGFENCE_ASSIGN(crypto::CertificateFacts facts,
                   crypto::ReadCertificate({data, static_cast<std::size_t>(size)}));
  return std::optional(PeerCertificate{std::move(facts.common_name), std::move(facts.uris),
                                       std::move(facts.fingerprint)});
}

Error ExplainTls(SSL* ssl, int reason) {
  if (const long result = SSL_get_verify_result(ssl); result != X509_V_OK) {
    for (const VerifyWords& words : kVerifyWords) {
      if (words.result == result) {
        return Error{Code::kUnavailable, words.what, words.hint};
      }
    }
    return Error{Code::kUnavailable, std::string("the server's certificate is not trusted: ") +
                                         X509_verify_cert_error_string(result)};
  }
  for (const AlertWords& words : kAlertWords) {
    if (words.reason == reason) {
      return Error{Code::kUnavailable, words.what, words.hint};
    }
  }
  const char* const text =
      reason == 0 ? nullptr : ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, reason));
  return Error{Code::kUnavailable,
               std::string("TLS failed: ") + (text == nullptr ? "the connection was cut" : text)};
}

}  // namespace ringfence::net

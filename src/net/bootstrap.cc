#include "net/bootstrap.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <memory>

#include "base/encoding.h"
#include "crypto/sha256.h"
#include "net/address.h"
#include "net/client_connection.h"

namespace ringfence::net {
namespace {

constexpr std::chrono::milliseconds kTimeout{10000};
constexpr int kShownMax = 8;

struct Search {
  std::string fingerprint;
  std::string pem;  // of the one found
};

std::string FingerprintOf(X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate, &der);
  if (size <= 0) {
    return {};
  }
  const std::string text = Hex(crypto::Sha256(
      ByteView(reinterpret_cast<const std::byte*>(der), static_cast<std::size_t>(size))));
  OPENSSL_free(der);
  return text;
}

std::string PemOf(X509* certificate) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
  if (bio == nullptr || PEM_write_bio_X509(bio.get(), certificate) != 1) {
    return {};
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

// Takes the place of OpenSSL's verification: looks for the one certificate, believes nothing.
int FindCertificate(X509_STORE_CTX* context, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  STACK_OF(X509)* const shown = X509_STORE_CTX_get0_untrusted(context);
  for (int i = 0; i < sk_X509_num(shown) && i < kShownMax; ++i) {
    X509* const certificate = sk_X509_value(shown, i);
    if (FingerprintOf(certificate) == search.fingerprint) {
      search.pem = PemOf(certificate);
      return 1;
    }
  }
  X509_STORE_CTX_set_error(context, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN);
  return 0;
}

Result<std::string> FetchFrom(const Address& parsed, std::string_view fingerprint) {
  const TlsContext context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  Search search{std::string(fingerprint), {}};
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1) {
    return Error{Code::kInternal, "TLS could not be set up"};
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context.get(), &FindCertificate, &search);
  ClientConnection connection(parsed, parsed.host, context);
  const Status connected = connection.Connect(kTimeout);
  if (!search.pem.empty()) {
    return search.pem;
  }
  if (!connected.has_value() && connected.error().code != Code::kUnavailable) {
    return connected.error();
  }
  return Error{Code::kUnavailable,
               connected.has_value()
                   ? "the server at " + FormatAddress(parsed) + " does not show the CA of the token"
                   : connected.error().message,
               "is this the server the join token is from? Make a new token there"};
}

}  // namespace

Result<std::string> FetchCa(const std::string& address, std::string_view fingerprint) {
  RINGFENCE_ASSIGN(const std::vector<Address> addresses, ParseAddresses(address));
  Result<std::string> pem = Error{Code::kUnavailable, "no server"};
  for (const Address& one : addresses) {
    pem = FetchFrom(one, fingerprint);
    if (pem.has_value() || pem.error().code != Code::kUnavailable) {
      break;
    }
  }
  return pem;
}

}  // namespace ringfence::net

#pragma once

// TLS contexts of the server and the client: TLS 1.3 only, one CA, nothing of the system's.

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "net/http.h"
#include "net/server.h"

namespace ringfence::net {

// Shared: each connection keeps the context it was made with while Replace() brings a new one.
using TlsContext = std::shared_ptr<SSL_CTX>;

// Client certificates are asked for and, where one is shown, verified by identity.client_ca_pem
// (empty: none is asked for). Sessions resume by ticket.
Result<TlsContext> MakeServerContext(const TlsIdentity& identity);

struct ClientTls {
  std::string_view ca_pem;
  std::string_view certificate_chain_pem;  // empty: no client certificate
  std::string_view private_key_pem;
};
Result<TlsContext> MakeClientContext(const ClientTls& tls);

// The server's certificate must carry this name or IP address.
Status ExpectName(SSL* ssl, const std::string& name);

// The verified certificate of the other side, none if it showed none. kUnauthenticated when it
// has expired since the session that was resumed began.
Result<std::optional<PeerCertificate>> PeerOf(SSL* ssl);

// Why a handshake or read failed, for people. `reason` is OpenSSL's reason code.
Error ExplainTls(SSL* ssl, int reason);

}  // namespace ringfence::net

#pragma once

// One TLS connection over a non-blocking socket: every step does what can be done now and says
// what to wait for. OpenSSL reads and writes the socket itself, so there is no copy between them.

#include <string>
#include <string_view>

#include "net/asio.h"
#include "net/tls.h"

namespace ringfence::net {

// One thread at a time. Stays where it is made: OpenSSL holds its address.
class TlsSocket {
 public:
  enum class Step {
    kDone,
    kWantRead,
    kWantWrite,
    kClosed,  // by the other side
    kFailed,  // reason() says why, where OpenSSL knows
  };
  enum class Side { kServer, kClient };

  // `socket` is connected and non-blocking.
  TlsSocket(TcpSocket socket, TlsContext context, Side side);
  ~TlsSocket();
  TlsSocket(const TlsSocket&) = delete;
  TlsSocket& operator=(const TlsSocket&) = delete;

  Step Handshake();
  Step Read(char* into, std::size_t size, std::size_t& got);
  // `put` may be less than all of it; call again with the rest.
  Step Write(std::string_view bytes, std::size_t& put);
  // Says goodbye, if there is room for it now.
  void SayClose();
  // Bytes were read from the socket that no wait for the socket would report.
  bool HasPending() const;

  TcpSocket& socket() { return socket_; }
  SSL* ssl() { return ssl_; }
  int reason() const { return reason_; }

 private:
  Step After(int returned);

  TcpSocket socket_;
  TlsContext context_;
  SSL* ssl_;
  int reason_ = 0;
  bool dead_ = false;  // OpenSSL must not be asked again after a fatal error
};

}  // namespace ringfence::net

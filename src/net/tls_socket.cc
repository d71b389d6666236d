#include "net/tls_socket.h"

#include <openssl/bio.h>
#include <openssl/err.h>

#include <algorithm>

#include "base/check.h"

namespace ringfence::net {
namespace {

constexpr int kOneCallBytesMax = 1 << 30;
constexpr int kEndOfFile = 1;  // kept in the BIO's number

TcpSocket& SocketOf(BIO* bio) { return *static_cast<TcpSocket*>(BIO_get_data(bio)); }

bool IsRetry(const AsioError& failure) {
  return failure == asio::error::would_block || failure == asio::error::try_again ||
         failure == asio::error::interrupted;
}

int SocketRead(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  AsioError failure;
  const std::size_t got =
      SocketOf(bio).read_some(asio::buffer(into, static_cast<std::size_t>(size)), failure);
  if (!failure) {
    return static_cast<int>(got);
  }
  if (IsRetry(failure)) {
    BIO_set_retry_read(bio);
    return -1;
  }
  BIO_set_init(bio, 1);
  BIO_set_shutdown(bio, kEndOfFile);
  return 0;
}

int SocketWrite(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  AsioError failure;
  const std::size_t put =
      SocketOf(bio).write_some(asio::buffer(from, static_cast<std::size_t>(size)), failure);
  if (!failure) {
    return static_cast<int>(put);
  }
  if (IsRetry(failure)) {
    BIO_set_retry_write(bio);
  }
  return -1;
}

long SocketControl(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) {
    return BIO_get_shutdown(bio) == kEndOfFile ? 1 : 0;
  }
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// Asio's sockets send without raising SIGPIPE; OpenSSL's own socket BIO does not.
const BIO_METHOD* SocketMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ringfence socket");
    RINGFENCE_CHECK(made != nullptr && BIO_meth_set_read(made, &SocketRead) == 1 &&
                    BIO_meth_set_write(made, &SocketWrite) == 1 &&
                    BIO_meth_set_ctrl(made, &SocketControl) == 1);
    return made;
  }();
  return method;
}

}  // namespace

TlsSocket::TlsSocket(TcpSocket socket, TlsContext context, Side side)
    : socket_(std::move(socket)), context_(std::move(context)), ssl_(SSL_new(context_.get())) {
  BIO* const bio = BIO_new(SocketMethod());
  RINGFENCE_CHECK(ssl_ != nullptr && bio != nullptr);
  BIO_set_data(bio, &socket_);
  BIO_set_init(bio, 1);
  BIO_set_shutdown(bio, 0);
  SSL_set_bio(ssl_, bio, bio);
  if (side == Side::kServer) {
    SSL_set_accept_state(ssl_);
  } else {
    SSL_set_connect_state(ssl_);
  }
}

TlsSocket::~TlsSocket() { SSL_free(ssl_); }

TlsSocket::Step TlsSocket::After(int returned) {
  switch (SSL_get_error(ssl_, returned)) {
    case SSL_ERROR_NONE:
      return Step::kDone;
    case SSL_ERROR_WANT_READ:
      return Step::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Step::kWantWrite;
    case SSL_ERROR_ZERO_RETURN:
      return Step::kClosed;
    default:
      reason_ = ERR_GET_REASON(ERR_peek_error());
      ERR_clear_error();
      // With no reason the socket failed, not TLS: what the other side sent before it went can
      // still be read.
      dead_ = reason_ != 0;
      return dead_ ? Step::kFailed : Step::kClosed;
  }
}

TlsSocket::Step TlsSocket::Handshake() {
  if (dead_) {
    return Step::kFailed;
  }
  ERR_clear_error();
  return After(SSL_do_handshake(ssl_));
}

TlsSocket::Step TlsSocket::Read(char* into, std::size_t size, std::size_t& got) {
  got = 0;
  if (dead_) {
    return Step::kFailed;
  }
  ERR_clear_error();
  return After(SSL_read_ex(ssl_, into, size, &got));
}

TlsSocket::Step TlsSocket::Write(std::string_view bytes, std::size_t& put) {
  put = 0;
  if (dead_) {
    return Step::kFailed;
  }
  ERR_clear_error();
  return After(SSL_write_ex(ssl_, bytes.data(),
                            std::min<std::size_t>(bytes.size(), kOneCallBytesMax), &put));
}

void TlsSocket::SayClose() {
  if (!dead_ && SSL_is_init_finished(ssl_) == 1) {
    ERR_clear_error();
    (void)SSL_shutdown(ssl_);
    ERR_clear_error();
  }
}

bool TlsSocket::HasPending() const { return !dead_ && SSL_has_pending(ssl_) == 1; }

}  // namespace ringfence::net

#include "net/client_connection.h"

#include <array>

#include "os/tcp_socket.h"

namespace ringfence::net {
namespace {

constexpr std::size_t kEndpointsMax = 8;
constexpr std::size_t kReadBytes = 16 * 1024;

Error CancelledError() { return Error{Code::kUnavailable, "cancelled"}; }

}  // namespace

ClientConnection::ClientConnection(Address address, std::string server_name, TlsContext context)
    : address_(std::move(address)),
      name_(FormatAddress(address_)),
      server_name_(std::move(server_name)),
      context_(std::move(context)) {}

ClientConnection::~ClientConnection() = default;

void ClientConnection::Cancel() {
  cancelled_ = true;
  // On the thread of the call under way, which runs the loop; if there is none, nothing has to
  // be closed.
  asio::post(loop_, [this] {
    AsioError ignored;
    if (connecting_ != nullptr) {
      (void)connecting_->close(ignored);
    }
    if (tls_ != nullptr) {
      (void)tls_->socket().close(ignored);
    }
  });
}

ClientConnection::Waited ClientConnection::RunUntil(const bool& done, Deadline deadline) {
  loop_.restart();
  while (!done && !cancelled_ && loop_.run_one_until(deadline) > 0) {
  }
  if (cancelled_) {
    return Waited::kCancelled;
  }
  return done ? Waited::kReady : Waited::kTimeout;
}

ClientConnection::Waited ClientConnection::WaitFor(TlsSocket::Step step, Deadline deadline) {
  // The flag is shared with the handler: after a timeout the handler runs when no one waits.
  const auto done = std::make_shared<bool>(false);
  tls_->socket().async_wait(
      step == TlsSocket::Step::kWantRead ? TcpSocket::wait_read : TcpSocket::wait_write,
      [done](AsioError) { *done = true; });
  return RunUntil(*done, deadline);
}

bool ClientConnection::IsUsable() {
  if (tls_ == nullptr || cancelled_) {
    return false;
  }
  // Between requests the server has nothing to say but goodbye.
  char byte = 0;
  AsioError failure;
  (void)tls_->socket().receive(asio::buffer(&byte, 1), TcpSocket::message_peek, failure);
  if (failure == asio::error::would_block && !tls_->HasPending()) {
    return true;
  }
  tls_.reset();
  return false;
}

Result<std::vector<ClientConnection::Endpoint>> ClientConnection::Resolve(Deadline deadline) {
  AsioError failure;
  const auto ip = asio::ip::make_address(address_.host, failure);
  if (!failure) {
    return std::vector<Endpoint>{Endpoint(ip, address_.port)};
  }
  struct Found {
    bool done = false;
    AsioError failure;
    std::vector<Endpoint> endpoints;
  };
  const auto found = std::make_shared<Found>();
  asio::ip::basic_resolver<asio::ip::tcp, Executor> resolver(loop_);
  resolver.async_resolve(address_.host, std::to_string(address_.port),
                         [found](AsioError result, const auto& entries) {
                           found->done = true;
                           found->failure = result;
                           for (const auto& entry : entries) {
                             if (found->endpoints.size() < kEndpointsMax) {
                               found->endpoints.push_back(entry.endpoint());
                             }
                           }
                         });
  const Waited waited = RunUntil(found->done, deadline);
  if (waited != Waited::kReady) {
    return TimeoutError(waited, "looking up its name");
  }
  if (found->failure || found->endpoints.empty()) {
    return Error{Code::kUnavailable,
                 "cannot find the host " + address_.host + ": " + found->failure.message(),
                 "check the name, or use its IP address"};
  }
  return std::move(found->endpoints);
}

Status ClientConnection::Connect(std::chrono::milliseconds timeout) {
  const Deadline deadline = SteadyClock::now() + timeout;
  tls_.reset();
  may_resend_ = false;
  if (cancelled_) {
    return CancelledError();
  }
  RINGFENCE_ASSIGN(const auto endpoints, Resolve(deadline));
  Status status;
  for (const Endpoint& endpoint : endpoints) {
    status = ConnectTo(endpoint, deadline);
    if (status.has_value() || cancelled_) {
      break;
    }
  }
  if (status.has_value()) {
    status = Handshake(deadline);
  }
  if (!status.has_value()) {
    tls_.reset();
  }
  return status;
}

Status ClientConnection::ConnectTo(const Endpoint& endpoint, Deadline deadline) {
  RINGFENCE_ASSIGN(os::UniqueFd fd, os::TcpSocket(endpoint.address().is_v6() ? os::IpVersion::kV6
                                                                             : os::IpVersion::kV4));
  connecting_ = std::make_unique<TcpSocket>(loop_);
  AsioError failure;
  (void)connecting_->assign(endpoint.protocol(), fd.get(), failure);
  if (failure) {
    return Error{Code::kInternal, "cannot use a socket: " + failure.message()};
  }
  (void)fd.Release();
  const auto done = std::make_shared<bool>(false);
  const auto result = std::make_shared<AsioError>();
  connecting_->async_connect(endpoint, [done, result](AsioError connected) {
    *done = true;
    *result = connected;
  });
  const Waited waited = RunUntil(*done, deadline);
  const std::unique_ptr<TcpSocket> socket = std::move(connecting_);
  if (waited != Waited::kReady) {
    return TimeoutError(waited, "connecting");
  }
  if (*result == asio::error::connection_refused) {
    return Error{Code::kUnavailable, "connection refused at " + name_,
                 "is the server running? check the address and port"};
  }
  if (*result) {
    return Error{Code::kUnavailable, "cannot reach " + name_ + ": " + result->message(),
                 "check the address and the network"};
  }
  (void)socket->non_blocking(true, failure);
  (void)socket->set_option(asio::ip::tcp::no_delay(true), failure);
  tls_ = std::make_unique<TlsSocket>(std::move(*socket), context_, TlsSocket::Side::kClient);
  return ExpectName(tls_->ssl(), server_name_);
}

Status ClientConnection::Handshake(Deadline deadline) {
  for (;;) {
    const TlsSocket::Step step = tls_->Handshake();
    if (step == TlsSocket::Step::kDone) {
      return {};
    }
    if (step != TlsSocket::Step::kWantRead && step != TlsSocket::Step::kWantWrite) {
      return BrokenError(step);
    }
    if (const Waited waited = WaitFor(step, deadline); waited != Waited::kReady) {
      return TimeoutError(waited, "greeting it");
    }
  }
}

Status ClientConnection::Exchange(std::string_view message, std::chrono::milliseconds timeout,
                                  ResponseReader& reader) {
  const Deadline deadline = SteadyClock::now() + timeout;
  may_resend_ = false;
  Status status = SendAll(message, deadline);
  if (status.has_value()) {
    status = ReadAnswer(deadline, reader);
  }
  if (!status.has_value() || !reader.keep_alive()) {
    tls_.reset();
  }
  return status;
}

Status ClientConnection::SendAll(std::string_view message, Deadline deadline) {
  while (!message.empty()) {
    std::size_t put = 0;
    const TlsSocket::Step step = tls_->Write(message, put);
    message.remove_prefix(put);
    if (step == TlsSocket::Step::kDone) {
      continue;
    }
    if (step != TlsSocket::Step::kWantRead && step != TlsSocket::Step::kWantWrite) {
      // The server may have said why before it closed: the answer, or a TLS alert, is read next.
      return {};
    }
    if (const Waited waited = WaitFor(step, deadline); waited != Waited::kReady) {
      return TimeoutError(waited, "sending it the request");
    }
  }
  return {};
}

Status ClientConnection::ReadAnswer(Deadline deadline, ResponseReader& reader) {
  bool started = false;
  std::array<char, kReadBytes> bytes;
  while (!reader.complete()) {
    std::size_t got = 0;
    const TlsSocket::Step step = tls_->Read(bytes.data(), bytes.size(), got);
    if (step == TlsSocket::Step::kDone) {
      started = true;
      RINGFENCE_TRY(reader.Feed({bytes.data(), got}));
    } else if (step == TlsSocket::Step::kWantRead || step == TlsSocket::Step::kWantWrite) {
      if (const Waited waited = WaitFor(step, deadline); waited != Waited::kReady) {
        return TimeoutError(waited, "waiting for its answer");
      }
    } else {
      may_resend_ = !started && step == TlsSocket::Step::kClosed;
      return BrokenError(step);
    }
  }
  return {};
}

Error ClientConnection::TimeoutError(Waited waited, std::string_view doing) const {
  if (waited == Waited::kCancelled || cancelled_) {
    return CancelledError();
  }
  return Error{Code::kUnavailable,
               "no answer from " + name_ + " in time while " + std::string(doing),
               "check the network, and whether the server is overloaded"};
}

Error ClientConnection::BrokenError(TlsSocket::Step step) {
  if (cancelled_) {
    return CancelledError();
  }
  if (step == TlsSocket::Step::kClosed) {
    return Error{Code::kUnavailable, name_ + " closed the connection before it answered",
                 "it may be restarting or have too many connections: try again"};
  }
  return Prefix("cannot talk to " + name_, ExplainTls(tls_->ssl(), tls_->reason()));
}

}  // namespace ringfence::net

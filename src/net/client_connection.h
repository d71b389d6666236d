#pragma once

// The client's connection: blocking calls with deadlines on top of a loop of its own.

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/address.h"
#include "net/asio.h"
#include "net/response_reader.h"
#include "net/tls_socket.h"

namespace ringfence::net {

// One thread at a time; Cancel from any.
class ClientConnection {
 public:
  ClientConnection(Address address, std::string server_name, TlsContext context);
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  // A connection is open, and the other side has not closed it since it was last used.
  bool IsUsable();
  Status Connect(std::chrono::milliseconds timeout);
  // Sends `message` and feeds `reader` until it is complete. Whatever fails closes the connection.
  Status Exchange(std::string_view message, std::chrono::milliseconds timeout,
                  ResponseReader& reader);
  // The last Exchange failed because the connection ended, and no byte of an answer came.
  bool may_resend() const { return may_resend_; }
  void Cancel();

 private:
  using Deadline = SteadyClock::time_point;
  using Endpoint = asio::ip::tcp::endpoint;
  enum class Waited { kReady, kTimeout, kCancelled };

  Result<std::vector<Endpoint>> Resolve(Deadline deadline);
  Status ConnectTo(const Endpoint& endpoint, Deadline deadline);
  Status Handshake(Deadline deadline);
  Waited RunUntil(const bool& done, Deadline deadline);
  Waited WaitFor(TlsSocket::Step step, Deadline deadline);
  Status SendAll(std::string_view message, Deadline deadline);
  Status ReadAnswer(Deadline deadline, ResponseReader& reader);
  Error TimeoutError(Waited waited, std::string_view doing) const;
  Error BrokenError(TlsSocket::Step step);

  const Address address_;
  const std::string name_;  // the address, for people
  const std::string server_name_;
  const TlsContext context_;
  asio::io_context loop_{1};
  std::unique_ptr<TcpSocket> connecting_;
  std::unique_ptr<TlsSocket> tls_;
  std::atomic<bool> cancelled_{false};
  bool may_resend_ = false;
};

}  // namespace ringfence::net

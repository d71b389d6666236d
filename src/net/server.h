#pragma once

// An HTTPS server: TLS 1.3 only, HTTP/1.1 keep-alive, everything bounded.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/secret.h"
#include "net/http.h"

namespace ringfence::net {

struct ServerLimits {
  std::size_t body_bytes_max = 1024 * 1024;
  std::string_view long_body_path = {};  // the one path that may be sent more; empty: none
  std::size_t long_body_bytes_max = 1024 * 1024;
  std::size_t header_bytes_max = 16 * 1024;
  std::size_t connections_max = 1024;
  std::size_t connections_per_address_max = 256;
  std::size_t requests_queued_max = 512;          // waiting for a handler thread; beyond it: 429
  double requests_per_second_per_address = 2000;  // token bucket with a burst of one second
  std::chrono::seconds header_timeout{10};        // a slow client is cut off
  std::chrono::seconds body_timeout{30};
  std::chrono::seconds idle_timeout{75};
  std::chrono::seconds write_timeout{30};
  // More than cores: a handler that changes something waits for the disk, and those that wait at
  // the same time share one sync of it.
  std::size_t handler_threads = 80;
};

struct TlsIdentity {
  std::string certificate_chain_pem;
  std::string private_key_pem;
  std::string client_ca_pem;  // client certificates are asked for, not demanded, and verified by it
};

struct ServerStats {  // all since start, except the gauges
  std::uint64_t requests = 0;
  std::uint64_t refused_busy = 0;  // answered 429
  std::uint64_t refused_malformed = 0;
  std::uint64_t handshakes_failed = 0;
  std::uint64_t connections = 0;
  std::uint64_t evicted = 0;           // closed while waiting for their client, to let another in
  std::uint64_t connections_open = 0;  // gauge
  std::uint64_t requests_queued = 0;   // gauge
};

class Server {
 public:
  // Called on one of `handler_threads` threads. May answer later, from any thread, through the
  // Responder (long polling); a waiting request holds no thread.
  using Handler = std::function<void(Request, Responder)>;

  // Listens on `address` ("127.0.0.1:0", "[::1]:8443"); serves once it returns.
  static Result<std::unique_ptr<Server>> Start(const std::string& address, TlsIdentity identity,
                                               ServerLimits limits, Handler handler);
  virtual ~Server() = default;  // stops: no new requests, those under way get a moment to finish
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  virtual std::string address() const = 0;  // with the port that was really taken
  virtual ServerStats stats() const = 0;
  // New connections use the new identity (renewed certificate).
  virtual Status Replace(TlsIdentity identity) = 0;
  // Calls `task` on a handler thread after `delay`; for long-poll deadlines.
  virtual void After(std::chrono::milliseconds delay, std::function<void()> task) = 0;

 protected:
  Server() = default;
};

}  // namespace ringfence::net

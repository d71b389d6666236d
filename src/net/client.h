#pragma once

// An HTTPS client: TLS 1.3, the server verified against one given CA (never the system's),
// keep-alive, one reconnect when a kept connection turns out to be dead. Of several servers it
// keeps to the one that answers and goes on to the next when that cannot be reached or cannot
// serve.

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/http.h"

namespace ringfence::net {

struct ClientOptions {
  std::string address;      // "127.0.0.1:8443", or several with commas between
  std::string server_name;  // checked against the certificate's names; default: the address's host
  std::string ca_pem;       // trust exactly these
  std::string certificate_chain_pem;  // empty: no client certificate
  std::string private_key_pem;
  std::string bearer_token;  // sent as Authorization: Bearer when not empty
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds response_timeout{60000};
  std::size_t response_bytes_max = 16 * 1024 * 1024;
};

struct ClientRequest {
  std::string method = "GET";
  std::string target = {};  // path and query, already encoded
  std::string body = {};
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// For one thread at a time; Cancel from any.
class Client {
 public:
  static Result<std::unique_ptr<Client>> Create(ClientOptions options);
  virtual ~Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Any HTTP status is a Response; kUnavailable when the server could not be reached, did not
  // prove its name, or answered nonsense. A request is sent a second time only if it is a GET, or
  // carries an Idempotency-Key, and no byte of an answer came.
  virtual Result<Response> Send(const ClientRequest& request) = 0;
  // A Send under way returns kUnavailable "cancelled"; so does each later one.
  virtual void Cancel() = 0;

 protected:
  Client() = default;
};

// Percent-encodes everything but unreserved characters (and '/', if kept).
std::string UrlEncode(std::string_view text, bool keep_slashes = false);

}  // namespace ringfence::net

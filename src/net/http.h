#pragma once

// HTTP messages as the rest of the house sees them: plain values, nothing of Asio or Beast.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ringfence::net {

// The certificate a TLS peer proved to hold, after it was verified against our CA.
struct PeerCertificate {
  std::string common_name;
  std::vector<std::string> uris;  // URI subject alternative names, as "ringfence://node/NAME"
  std::string fingerprint;        // SHA-256 of the DER, hex
};

struct Request {
  std::string method;  // "GET"
  std::string path;    // percent-decoded, without the query: "/v1/leases"
  std::vector<std::pair<std::string, std::string>> query;    // decoded, in order
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  std::string remote_address;  // "127.0.0.1"
  std::optional<PeerCertificate> peer;

  // First value, or empty.
  std::string_view Query(std::string_view name) const;
  std::string_view Header(std::string_view lower_case_name) const;
};

struct Response {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string content_type = "application/json";
  std::string body;

  static Response OfJson(int status, const Json& body);
  static Response OfText(int status, std::string body);
  // RFC 9457: application/problem+json with type, title, status, detail, code, and hint and field
  // where there are any. kExhausted and kUnavailable carry Retry-After.
  static Response OfError(const Error& error);
};

// Answers one request, once, from any thread, now or later. Dropped unanswered, it answers 500.
// Copies share the one answer; only the first Send counts.
class Responder {
 public:
  explicit Responder(std::function<void(Response)> send);
  void Send(Response response) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared: the handler and a waiting list may both hold it
};

// The error inside a problem+json body (or a plain one where it is not): what a client reports.
Error ErrorFromResponse(int status, std::string_view body);

}  // namespace ringfence::net

#pragma once

// Bytes of a connection into Requests, one after another. The server and its fuzzer read with
// this, so what one refuses, so does the other. Refused on purpose, beyond what HTTP forbids:
// whatever makes two readers disagree where a message ends (both Content-Length and
// Transfer-Encoding, either of them twice, folded lines, bare CR or LF).

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"

namespace ringfence::net {

inline constexpr std::size_t kHeaderLinesMax = 100;

struct ReaderLimits {
  std::size_t header_bytes_max = 16 * 1024;
  std::size_t body_bytes_max = 1024 * 1024;
  std::string_view long_body_path = {};  // its bodies have a limit of their own; empty: none
  std::size_t long_body_bytes_max = 1024 * 1024;
};

// One thread at a time.
class RequestReader {
 public:
  enum class State {
    kIdle,      // no byte of a request yet
    kHead,      // in the request line or headers
    kBody,      // the head was accepted
    kComplete,  // Take() gives the request
    kRefused,   // refusal() says why; the connection cannot go on
  };

  explicit RequestReader(const ReaderLimits& limits);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Takes bytes until the request is complete or refused, or there are no more; returns how many.
  std::size_t Feed(std::string_view bytes);
  State state() const;

  // The next four: once the head was accepted.
  bool keep_alive() const;
  bool http_1_0() const;
  bool head_only() const;         // the client sent HEAD, which Take() calls GET
  bool expects_continue() const;  // it waits for "100 Continue" before it sends the body
  std::size_t body_bytes() const;

  Response refusal() const;
  // The request, without remote_address and peer; the reader is then idle again.
  Request Take();

 private:
  struct Message;
  std::unique_ptr<Message> message_;
  ReaderLimits limits_;
};

}  // namespace ringfence::net

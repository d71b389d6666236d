#pragma once

// Bytes of a connection into one Response: the client's side of RequestReader.

#include <memory>
#include <string_view>

#include "net/http.h"

namespace ringfence::net {

struct ResponseLimits {
  std::size_t body_bytes_max = 16 * 1024 * 1024;
  bool head_only = false;  // the request was HEAD: no body follows, whatever the headers say
};

// One thread at a time; for one response. Header names come in lower case. A response whose end
// only the end of the connection would tell is refused: a cut could not be told from an end.
class ResponseReader {
 public:
  explicit ResponseReader(const ResponseLimits& limits);
  ~ResponseReader();
  ResponseReader(const ResponseReader&) = delete;
  ResponseReader& operator=(const ResponseReader&) = delete;

  // An error: not HTTP, or over a limit. Bytes after the response count as nonsense too.
  Status Feed(std::string_view bytes);
  bool complete() const;
  bool keep_alive() const;
  Response Take();

 private:
  struct Message;
  std::unique_ptr<Message> message_;
};

}  // namespace ringfence::net

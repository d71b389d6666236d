#pragma once

#include <string>
#include <string_view>

#include "net/http.h"

namespace ringfence::net {

struct WriteOptions {
  bool keep_alive = true;
  bool http_1_0 = false;   // such a client must be told that the connection stays
  bool head_only = false;  // the length, not the body
  std::string_view request_id;
};

// The bytes of a response with the headers that every one of ours carries. A header that holds
// control characters is left out, so that no caller can split a response in two.
std::string WriteResponse(const Response& response, const WriteOptions& options);

}  // namespace ringfence::net

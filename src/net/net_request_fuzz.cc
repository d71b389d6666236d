// Goal: no bytes crash the reader of requests, what it accepts keeps its promises, and how the
// bytes are cut changes nothing.

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "net/client.h"
#include "net/request_reader.h"
#include "net/target.h"

namespace {

using ringfence::net::Request;
using ringfence::net::RequestReader;

struct Outcome {
  std::vector<Request> requests;
  int refused_with = 0;
};

void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

Outcome ReadAll(std::string_view bytes, std::size_t piece) {
  constexpr ringfence::net::ReaderLimits kLimits{.header_bytes_max = 2048, .body_bytes_max = 4096};
  RequestReader reader(kLimits);
  Outcome outcome;
  while (!bytes.empty()) {
    const std::size_t used = reader.Feed(bytes.substr(0, piece));
    Require(used > 0 && used <= piece);
    bytes.remove_prefix(used);
    Require(reader.body_bytes() <= kLimits.body_bytes_max);
    if (reader.state() == RequestReader::State::kRefused) {
      outcome.refused_with = reader.refusal().status;
      Require(outcome.refused_with >= 400);
      break;
    }
    if (reader.state() == RequestReader::State::kComplete) {
      outcome.requests.push_back(reader.Take());
    }
  }
  return outcome;
}

void CheckPromises(const Request& request) {
  Require(!request.path.empty() && request.path.front() == '/');
  Require(request.path.find('\0') == std::string::npos);
  Require((request.path + "/").find("/../") == std::string::npos);
  Require(request.query.size() <= ringfence::net::kQueryPairsMax);
  for (const auto& [name, value] : request.headers) {
    Require(value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    for (const char c : name) {
      Require(c < 'A' || c > 'Z');
    }
  }
  const auto again = ringfence::net::ParseTarget(ringfence::net::UrlEncode(request.path, true));
  Require(again.has_value() && again->path == request.path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Outcome whole = ReadAll(bytes, std::max<std::size_t>(1, size));
  for (const Request& request : whole.requests) {
    CheckPromises(request);
  }
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}}) {
    const Outcome pieces = ReadAll(bytes, piece);
    Require(pieces.requests.size() == whole.requests.size());
    Require(pieces.refused_with == whole.refused_with);
    for (std::size_t i = 0; i < whole.requests.size(); ++i) {
      Require(pieces.requests[i].body == whole.requests[i].body);
      Require(pieces.requests[i].headers == whole.requests[i].headers);
    }
  }
  return 0;
}

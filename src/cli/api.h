#pragma once

// The server's API as client commands use it: JSON in, JSON or an Error out.

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/context.h"
#include "net/client.h"

namespace ringfence::cli {

// A bundle of 256 of the longest audit entries is a little over 16 MiB.
inline constexpr std::size_t kAnswerBytesMax = 17 * 1024 * 1024;
inline constexpr std::size_t kListMax = 100000;  // items of one list, over all pages

using QueryItems = std::vector<std::pair<std::string_view, std::string>>;
// "/v1/leases?tenant=acme%2Fweb"; items with an empty value are left out.
std::string Target(std::string_view path, const QueryItems& query = {});
// "/v1/leases/ID/logs": `id` encoded, so that no id can reach another path.
std::string Target(std::string_view before, std::string_view id, std::string_view after,
                   const QueryItems& query = {});

std::string FreshIdempotencyKey();

// For one thread at a time; Cancel from any.
class Api {
 public:
  static Result<std::unique_ptr<Api>> Create(
      Connection connection, std::chrono::milliseconds response_timeout = std::chrono::seconds(60));
  // With the connection that the settings say.
  static Result<std::unique_ptr<Api>> Open(const Settings& settings);

  // Errors: kUnavailable when the server cannot be reached; else what the server said.
  Result<Json> Get(const std::string& target);
  Result<Json> Post(const std::string& target, const Json* body, std::string idempotency_key = {});
  Result<Json> Delete(const std::string& target);
  Result<std::string> Raw(const std::string& target);
  // The items of all pages, at most `limit`.
  Result<JsonArray> List(std::string_view path, QueryItems query, std::size_t limit);

  // What is under way ends with kUnavailable; calls after Reconnect work again.
  void Cancel();
  Status Reconnect();
  // The last error came from the way to the server, not from the server.
  bool unreachable() const { return unreachable_; }
  const Connection& connection() const { return connection_; }

 private:
  Api(Connection connection, std::chrono::milliseconds response_timeout)
      : connection_(std::move(connection)), response_timeout_(response_timeout) {}
  Result<std::string> Send(const net::ClientRequest& request);
  Result<Json> SendForJson(const net::ClientRequest& request);

  Connection connection_;
  std::chrono::milliseconds response_timeout_;
  bool unreachable_ = false;
  std::mutex mutex_;                     // guards client_ against Cancel
  std::shared_ptr<net::Client> client_;  // shared: Cancel may meet a Reconnect
};

}  // namespace ringfence::cli

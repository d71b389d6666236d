#include "cli/api.h"

#include <algorithm>

#include "base/encoding.h"
#include "crypto/random.h"

namespace ringfence::cli {

std::string Target(std::string_view path, const QueryItems& query) {
  std::string target(path);
  char separator = '?';
  for (const auto& [name, value] : query) {
    if (!value.empty()) {
      target += separator;
      target += name;
      target += '=';
      target += net::UrlEncode(value);
      separator = '&';
    }
  }
  return target;
}

std::string Target(std::string_view before, std::string_view id, std::string_view after,
                   const QueryItems& query) {
  // A lone dot segment would be folded away on the way.
  const std::string encoded = id == "." ? "%2E" : id == ".." ? "%2E%2E" : net::UrlEncode(id);
  return Target(std::string(before) + "/" + encoded + std::string(after), query);
}

std::string FreshIdempotencyKey() { return Hex(crypto::RandomBytes(16)); }

Result<std::unique_ptr<Api>> Api::Create(Connection connection,
                                         std::chrono::milliseconds response_timeout) {
  std::unique_ptr<Api> api(new Api(std::move(connection), response_timeout));
  RINGFENCE_TRY(api->Reconnect());
  return api;
}

Result<std::unique_ptr<Api>> Api::Open(const Settings& settings) {
  RINGFENCE_ASSIGN(Connection connection, Connect(settings));
  return Create(std::move(connection));
}

Status Api::Reconnect() {
  net::ClientOptions options;
  options.address = connection_.server;
  options.ca_pem = connection_.ca_pem;
  options.bearer_token = ToText(connection_.token.Reveal());
  options.response_timeout = response_timeout_;
  options.connect_timeout = std::min(options.connect_timeout, response_timeout_);
  options.response_bytes_max = kAnswerBytesMax;
  RINGFENCE_ASSIGN(std::unique_ptr<net::Client> client, net::Client::Create(std::move(options)));
  const std::lock_guard lock(mutex_);
  client_ = std::move(client);
  return {};
}

void Api::Cancel() {
  std::shared_ptr<net::Client> client;
  {
    const std::lock_guard lock(mutex_);
    client = client_;
  }
  client->Cancel();
}

Result<std::string> Api::Send(const net::ClientRequest& request) {
  std::shared_ptr<net::Client> client;
  {
    const std::lock_guard lock(mutex_);
    client = client_;
  }
  auto response = client->Send(request);
  unreachable_ = !response.has_value();
  if (unreachable_) {
    Error error = Prefix("no answer from the server at " + connection_.server, response.error());
    // The client's own hint, unless it is the same question in other words.
    const bool adds = !error.hint.empty() && error.hint.find("running") == std::string::npos;
    error.hint = "is it running? `ringfence up` starts one here; --server names another" +
                 (adds ? "\n        " + error.hint : "");
    return error;
  }
  if (response->status < 200 || response->status > 299) {
    Error error = net::ErrorFromResponse(response->status, response->body);
    if (error.code == Code::kUnauthenticated && error.hint.empty()) {
      error.hint = "the token may be expired or revoked: set RINGFENCE_TOKEN to a new one";
    }
    return error;
  }
  return std::move(response->body);
}

Result<Json> Api::SendForJson(const net::ClientRequest& request) {
  RINGFENCE_ASSIGN(const std::string body, Send(request));
  auto json = ParseJson(body, kAnswerBytesMax);
  if (!json.has_value()) {
    return Error{Code::kInternal, "the server's answer is not JSON: " + json.error().message,
                 "is " + connection_.server + " a Ringfence server of this version?"};
  }
  return json;
}

Result<Json> Api::Get(const std::string& target) {
  net::ClientRequest request;
  request.target = target;
  return SendForJson(request);
}

Result<Json> Api::Post(const std::string& target, const Json* body, std::string idempotency_key) {
  net::ClientRequest request;
  request.method = "POST";
  request.target = target;
  if (body != nullptr) {
    request.body = CanonicalJson(*body);
  }
  if (!idempotency_key.empty()) {
    request.headers.emplace_back("Idempotency-Key", std::move(idempotency_key));
  }
  return SendForJson(request);
}

Result<Json> Api::Delete(const std::string& target) {
  net::ClientRequest request;
  request.method = "DELETE";
  request.target = target;
  return SendForJson(request);
}

Result<std::string> Api::Raw(const std::string& target) {
  net::ClientRequest request;
  request.target = target;
  return Send(request);
}

Result<JsonArray> Api::List(std::string_view path, QueryItems query, std::size_t limit) {
  constexpr std::size_t kPage = 1000;
  constexpr std::size_t kPagesMax = 10000;
  JsonArray all;
  query.emplace_back("limit", "");
  query.emplace_back("cursor", "");
  std::string cursor;
  for (std::size_t pages = 0; all.size() < limit && pages < kPagesMax; ++pages) {
    query[query.size() - 2].second = std::to_string(std::min(kPage, limit - all.size()));
    query.back().second = cursor;
    RINGFENCE_ASSIGN(const Json page, Get(Target(path, query)));
    const auto* object = page.if_object();
    const Json* items = object == nullptr ? nullptr : object->if_contains("items");
    if (items == nullptr || !items->is_array()) {
      return Error{Code::kInternal, "the server's answer is not a list"};
    }
    for (const Json& item : items->get_array()) {
      if (all.size() < limit) {
        all.push_back(item);
      }
    }
    const Json* next = object->if_contains("next_cursor");
    const auto* text = next == nullptr ? nullptr : next->if_string();
    if (text == nullptr || text->empty() ||
        std::string_view(text->data(), text->size()) == cursor) {
      break;
    }
    cursor.assign(text->data(), text->size());
  }
  return all;
}

}  // namespace ringfence::cli

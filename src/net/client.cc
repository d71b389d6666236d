#include "net/client.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "net/address.h"
#include "net/client_connection.h"
#include "net/head_check.h"

namespace ringfence::net {
namespace {

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

bool IsLineText(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
  });
}

bool IsTarget(std::string_view text) {
  return !text.empty() && text.front() == '/' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

class TlsClient final : public Client {
 public:
  TlsClient(ClientOptions options, Address address, TlsContext context)
      : options_(std::move(options)),
        connection_(std::move(address), options_.server_name, std::move(context)) {}

  Result<Response> Send(const ClientRequest& request) override;
  void Cancel() override { connection_.Cancel(); }

 private:
  Result<std::string> Compose(const ClientRequest& request) const;
  Result<Response> Exchange(const std::string& message, const ClientRequest& request);

  const ClientOptions options_;
  ClientConnection connection_;
};

Result<std::string> TlsClient::Compose(const ClientRequest& request) const {
  if (!IsToken(request.method)) {
    return Error{Code::kInvalidArgument, "not an HTTP method", "", "method"};
  }
  if (!IsTarget(request.target)) {
    return Error{Code::kInvalidArgument,
                 "not a path and query: it must start with / and be encoded",
                 "encode its parts with UrlEncode", "target"};
  }
  std::string text = request.method + " " + request.target + " HTTP/1.1\r\n";
  text += "Host: " + options_.address + "\r\n";
  text += "User-Agent: ringfence/" RINGFENCE_VERSION "\r\n";
  if (!options_.bearer_token.empty()) {
    text += "Authorization: Bearer " + options_.bearer_token + "\r\n";
  }
  for (const auto& [name, value] : request.headers) {
    if (!IsToken(name) || !IsLineText(value)) {
      return Error{Code::kInvalidArgument, "not an HTTP header: " + name.substr(0, 80), "",
                   "headers"};
    }
    text += name + ": " + value + "\r\n";
  }
  if (!request.body.empty()) {
    text += "Content-Type: " + request.content_type + "\r\n";
  }
  if (!request.body.empty() || (request.method != "GET" && request.method != "HEAD")) {
    text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  }
  return text + "\r\n" + request.body;
}

Result<Response> TlsClient::Exchange(const std::string& message, const ClientRequest& request) {
  ResponseReader reader({options_.response_bytes_max, request.method == "HEAD"});
  RINGFENCE_TRY(connection_.Exchange(message, options_.response_timeout, reader));
  return reader.Take();
}

Result<Response> TlsClient::Send(const ClientRequest& request) {
  RINGFENCE_ASSIGN(const std::string message, Compose(request));
  const bool kept = connection_.IsUsable();
  if (!kept) {
    RINGFENCE_TRY(connection_.Connect(options_.connect_timeout));
  }
  auto response = Exchange(message, request);
  if (response.has_value() || !kept || !connection_.may_resend()) {
    return response;
  }
  const bool harmless =
      request.method == "GET" || request.method == "HEAD" ||
      std::any_of(request.headers.begin(), request.headers.end(),
                  [](const auto& header) { return LowerAscii(header.first) == "idempotency-key"; });
  if (!harmless) {
    Error error = response.error();
    error.message += "; the request may or may not have been carried out";
    error.hint = "look whether it was, or send it with an Idempotency-Key";
    return error;
  }
  RINGFENCE_TRY(connection_.Connect(options_.connect_timeout));
  return Exchange(message, request);
}

}  // namespace

Result<std::unique_ptr<Client>> Client::Create(ClientOptions options) {
  RINGFENCE_ASSIGN(Address address, ParseAddress(options.address));
  if (options.server_name.empty()) {
    options.server_name = address.host;
  }
  if (!IsLineText(options.bearer_token)) {
    return Error{Code::kInvalidArgument, "the bearer token holds control characters",
                 "copy it again", "bearer_token"};
  }
  RINGFENCE_ASSIGN(
      TlsContext context,
      MakeClientContext({options.ca_pem, options.certificate_chain_pem, options.private_key_pem}));
  return std::unique_ptr<Client>(
      std::make_unique<TlsClient>(std::move(options), std::move(address), std::move(context)));
}

}  // namespace ringfence::net

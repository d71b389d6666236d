#include "net/client.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "net/address.h"
#include "net/client_connection.h"
#include "net/head_check.h"

namespace ringfence::net {
namespace {

constexpr int kCannotServe = 503;

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
  TlsClient(ClientOptions options, const std::vector<Address>& addresses, const TlsContext& context)
      : options_(std::move(options)) {
    for (const Address& address : addresses) {
      servers_.push_back(std::make_unique<Server>(
          FormatAddress(address), address,
          options_.server_name.empty() ? address.host : options_.server_name, context));
    }
  }

  Result<Response> Send(const ClientRequest& request) override;
  void Cancel() override {
    for (const auto& server : servers_) {
      server->connection.Cancel();
    }
  }

 private:
  struct Server {
    Server(std::string host_text, const Address& address, std::string name,
           const TlsContext& context)
        : host(std::move(host_text)), connection(address, std::move(name), context) {}
    const std::string host;
    ClientConnection connection;
  };
  // How far a request came with one server.
  enum class Came { kNowhere, kSent, kAnswered };

  Result<std::string> Compose(const ClientRequest& request, const std::string& host) const;
  Result<Response> Exchange(Server& server, const std::string& message,
                            const ClientRequest& request);
  Result<Response> Try(Server& server, const ClientRequest& request, bool harmless, Came& came);

  const ClientOptions options_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::size_t current_ = 0;
};

Result<std::string> TlsClient::Compose(const ClientRequest& request,
                                       const std::string& host) const {
  if (!IsToken(request.method)) {
    return Error{Code::kInvalidArgument, "not an HTTP method", "", "method"};
  }
  if (!IsTarget(request.target)) {
    return Error{Code::kInvalidArgument,
                 "not a path and query: it must start with / and be encoded",
                 "encode its parts with UrlEncode", "target"};
  }
  std::string text = request.method + " " + request.target + " HTTP/1.1\r\n";
  text += "Host: " + host + "\r\n";
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

Result<Response> TlsClient::Exchange(Server& server, const std::string& message,
                                     const ClientRequest& request) {
  ResponseReader reader({options_.response_bytes_max, request.method == "HEAD"});
  RINGFENCE_TRY(server.connection.Exchange(message, options_.response_timeout, reader));
  return reader.Take();
}

Result<Response> TlsClient::Try(Server& server, const ClientRequest& request, bool harmless,
                                Came& came) {
  came = Came::kNowhere;
  RINGFENCE_ASSIGN(const std::string message, Compose(request, server.host));
  ClientConnection& connection = server.connection;
  const bool kept = connection.IsUsable();
  if (!kept) {
    RINGFENCE_TRY(connection.Connect(options_.connect_timeout));
  }
  came = Came::kSent;
  auto response = Exchange(server, message, request);
  if (response.has_value() || !kept || !connection.may_resend()) {
    came = response.has_value() ? Came::kAnswered : Came::kSent;
    return response;
  }
  if (!harmless) {
    Error error = response.error();
    error.message += "; the request may or may not have been carried out";
    error.hint = "look whether it was, or send it with an Idempotency-Key";
    return error;
  }
  RINGFENCE_TRY(connection.Connect(options_.connect_timeout));
  response = Exchange(server, message, request);
  came = response.has_value() ? Came::kAnswered : Came::kSent;
  return response;
}

Result<Response> TlsClient::Send(const ClientRequest& request) {
  const bool harmless =
      request.method == "GET" || request.method == "HEAD" ||
      std::any_of(request.headers.begin(), request.headers.end(),
                  [](const auto& header) { return LowerAscii(header.first) == "idempotency-key"; });
  for (std::size_t tried = 1;; ++tried) {
    Came came = Came::kNowhere;
    auto response = Try(*servers_[current_], request, harmless, came);
    const bool refused = response.has_value() && response->status == kCannotServe;
    if (response.has_value() && !refused) {
      return response;
    }
    current_ = (current_ + 1) % servers_.size();
    // What another server was given may be under way there: only what is harmless twice goes on.
    if (tried == servers_.size() || (came != Came::kNowhere && !harmless) ||
        (!response.has_value() && response.error().code != Code::kUnavailable)) {
      return response;
    }
  }
}

}  // namespace

Result<std::unique_ptr<Client>> Client::Create(ClientOptions options) {
  RINGFENCE_ASSIGN(const std::vector<Address> addresses, ParseAddresses(options.address));
  if (!IsLineText(options.bearer_token)) {
    return Error{Code::kInvalidArgument, "the bearer token holds control characters",
                 "copy it again", "bearer_token"};
  }
  RINGFENCE_ASSIGN(
      const TlsContext context,
      MakeClientContext({options.ca_pem, options.certificate_chain_pem, options.private_key_pem}));
  return std::unique_ptr<Client>(
      std::make_unique<TlsClient>(std::move(options), addresses, context));
}

}  // namespace ringfence::net

#include "load/ops.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/json.h"
#include "net/address.h"
#include "net/client.h"
#include "os/file.h"

namespace ringfence::bench {
namespace {

constexpr std::size_t kContextBytesMax = 1024 * 1024;
constexpr int kTriesMax = 60;
constexpr std::size_t kAnswerBytesMax = 16 * 1024 * 1024;

const std::vector<OpSpec>& AllOps() {
  static const std::vector<OpSpec> all = {
      {"health", 200, "liveness, no sign-in"},
      {"read", 200, "one lease"},
      {"list", 200, "a page of 20 leases"},
      {"status", 200, "health of everything"},
      {"audit", 200, "a page of 20 audit entries; leaves an entry itself"},
      {"denied", 403, "a lease that policy denies; leaves an entry"},
      {"request", 201, "a lease that runs `true`"},
      {"poll", 200, "waits --poll-ms for a lease to change"},
  };
  return all;
}

// Where the server is, how it proves itself, and who we are.
struct Access {
  std::string server;
  std::string ca_pem;
  std::string token;
};

Result<Access> FindAccess(const Options& options) {
  Access access;
  if (!options.state.empty()) {
    RINGFENCE_ASSIGN(const std::string text,
                     os::ReadText(options.state + "/cli/context.json", kContextBytesMax));
    RINGFENCE_ASSIGN(const Json json, ParseJson(text, kContextBytesMax));
    RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
    RINGFENCE_ASSIGN(access.server, reader.String("server"));
    RINGFENCE_ASSIGN(access.ca_pem, reader.String("ca_pem", kContextBytesMax));
    RINGFENCE_ASSIGN(access.token, reader.String("token"));
    return access;
  }
  access.server = options.server;
  RINGFENCE_ASSIGN(access.ca_pem, os::ReadText(options.ca_file, kContextBytesMax));
  const char* const token = std::getenv("RINGFENCE_TOKEN");
  access.token = token == nullptr ? "" : token;
  return access;
}

class Setup {
 public:
  Setup(const Options& options, const Access& access) : options_(options), access_(access) {}

  Result<Op> Make(const Share& share) {
    Op op;
    op.spec = *FindOp(share.op);
    op.weight = share.weight;
    RINGFENCE_ASSIGN(op.bytes, BytesOf(share.op));
    return op;
  }

 private:
  Result<std::string> BytesOf(const std::string& name) {
    if (name == "health") {
      return Get("/healthz");
    }
    if (name == "list") {
      return Get("/v1/leases?limit=20");
    }
    if (name == "status") {
      return Get("/v1/status");
    }
    if (name == "audit") {
      return Get("/v1/audit/entries?limit=20");
    }
    if (name == "request") {
      return Post("/v1/leases", LeaseBody(options_.tenant), access_.token);
    }
    if (name == "denied") {
      RINGFENCE_ASSIGN(
          const Json made,
          Ask("POST", "/v1/tokens", CanonicalJson(JsonObject{{"principal", options_.denied_as}})));
      return Post("/v1/leases", LeaseBody(options_.denied_tenant), TextOf(made, "token"));
    }
    RINGFENCE_ASSIGN(const std::string lease, Lease());
    if (name == "poll") {
      return Get("/v1/leases/" + lease + "?state=" + state_ +
                 "&wait_ms=" + std::to_string(options_.poll_ms));
    }
    return Get("/v1/leases/" + lease);
  }

  static std::string TextOf(const Json& json, const char* name) {
    const Json* const value = json.is_object() ? json.get_object().if_contains(name) : nullptr;
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
  }

  static std::string LeaseBody(const std::string& tenant) {
    return CanonicalJson(
        JsonObject{{"tenant", tenant}, {"gpus", 1}, {"command", JsonArray{"true"}}});
  }

  // The lease that is read; over by then, so that its state no longer changes.
  Result<std::string> Lease() {
    if (lease_.empty() && !options_.lease.empty()) {
      lease_ = options_.lease;
    } else if (lease_.empty()) {
      RINGFENCE_ASSIGN(const Json page, Ask("GET", "/v1/leases?limit=1", ""));
      const JsonArray& items = page.as_object().at("items").as_array();
      if (!items.empty()) {
        lease_ = TextOf(items[0], "id");
      } else {
        RINGFENCE_ASSIGN(const Json made, Ask("POST", "/v1/leases", LeaseBody(options_.tenant)));
        lease_ = TextOf(made, "id");
      }
    }
    for (std::string state = "?";
         state_ != "closed" && state_ != "quarantined" && state != state_;) {
      state = state_;
      RINGFENCE_ASSIGN(
          const Json lease,
          Ask("GET",
              "/v1/leases/" + lease_ + "?wait_ms=10000&state=" + (state_.empty() ? "none" : state_),
              ""));
      state_ = TextOf(lease, "state");
    }
    return lease_;
  }

  Result<Json> Ask(const std::string& method, const std::string& target, std::string body) {
    if (client_ == nullptr) {
      net::ClientOptions client;
      client.address = access_.server;
      client.ca_pem = access_.ca_pem;
      client.bearer_token = access_.token;
      RINGFENCE_ASSIGN(client_, net::Client::Create(std::move(client)));
    }
    net::ClientRequest request;
    request.method = method;
    request.target = target;
    request.body = std::move(body);
    RINGFENCE_ASSIGN(net::Response response, client_->Send(request));
    // An earlier load may have used up what this address has for the second.
    for (int i = 0; i < kTriesMax && response.status == 429; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      RINGFENCE_ASSIGN(response, client_->Send(request));
    }
    if (response.status >= 300) {
      return Prefix(method + " " + target, net::ErrorFromResponse(response.status, response.body));
    }
    return ParseJson(response.body, kAnswerBytesMax);
  }

  std::string Get(const std::string& target) const {
    return Message("GET", target, "", access_.token);
  }
  static std::string AuthorizationOf(const std::string& token) {
    return token.empty() ? "" : "Authorization: Bearer " + token + "\r\n";
  }
  std::string Post(const std::string& target, const std::string& body,
                   const std::string& token) const {
    return Message("POST", target, body, token);
  }
  std::string Message(const std::string& method, const std::string& target, const std::string& body,
                      const std::string& token) const {
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: " + access_.server + "\r\n" +
                       AuthorizationOf(token);
    if (!body.empty()) {
      text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n";
    }
    return text + "\r\n" + body;
  }

  const Options& options_;
  const Access& access_;
  std::unique_ptr<net::Client> client_;
  std::string lease_;
  std::string state_;
};

}  // namespace

const OpSpec* FindOp(const std::string& name) {
  for (const OpSpec& op : AllOps()) {
    if (op.name == name) {
      return &op;
    }
  }
  return nullptr;
}

std::string OpNames() {
  std::string names;
  for (const OpSpec& op : AllOps()) {
    names += (names.empty() ? "" : " ") + op.name;
  }
  return names;
}

Result<Target> OpenTarget(const Options& options) {
  RINGFENCE_ASSIGN(const Access access, FindAccess(options));
  RINGFENCE_ASSIGN(const net::Address address, net::ParseAddress(access.server));
  Target target;
  target.host = address.host;
  target.port = address.port;
  RINGFENCE_ASSIGN(target.tls, net::MakeClientContext({access.ca_pem, {}, {}}));
  Setup setup(options, access);
  for (const Share& share : options.mix) {
    RINGFENCE_ASSIGN(Op op, setup.Make(share));
    target.ops.push_back(std::move(op));
  }
  return target;
}

}  // namespace ringfence::bench

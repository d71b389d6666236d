#pragma once

// Tells a webhook of new alerts, signed as Standard Webhooks has it (Ed25519, "v1a"). Which alerts
// are still to be told is in the database, so none is lost with the server; one may be told twice,
// under the same webhook-id. In the background: a receiver that is slow, gone or hostile holds up
// nothing here.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "crypto/ed25519.h"
#include "net/client.h"
#include "server/core.h"

namespace ringfence::server {

struct WebhookTarget {
  std::string address;  // "hooks.example:443"
  std::string target;   // "/path"
};
// "https://hooks.example/path".
Result<WebhookTarget> ParseWebhook(std::string_view url);

// The key that signs what is told: worked out from the servers' common secret, so that all of them
// have the same and backups have it too.
crypto::SigningKey WebhookKey(const ServerKeys& keys);
std::string WebhookPublicKey(const ServerKeys& keys);  // "whpk_..."

// What goes into webhook-signature, for this id, time (seconds since 1970) and body.
std::string SignWebhook(const crypto::SigningKey& key, std::string_view id, std::int64_t seconds,
                        std::string_view body);

class AlertWebhook {
 public:
  // `core` must outlive it.
  static Result<std::unique_ptr<AlertWebhook>> Start(Core& core, std::string_view url,
                                                     std::string ca_pem);
  ~AlertWebhook();  // cancels what is under way
  AlertWebhook(const AlertWebhook&) = delete;
  AlertWebhook& operator=(const AlertWebhook&) = delete;

 private:
  AlertWebhook(Core& core, WebhookTarget target, std::unique_ptr<net::Client> client)
      : core_(core),
        target_(std::move(target)),
        client_(std::move(client)),
        key_(WebhookKey(core.keys())) {}
  void Loop(const std::stop_token& stop);
  Result<bool> TellNext();
  Status Tell(const std::string& id, const std::string& body);

  Core& core_;
  const WebhookTarget target_;
  const std::unique_ptr<net::Client> client_;
  const crypto::SigningKey key_;
  std::string problem_;  // said last
  std::jthread thread_;  // last: stops before what it uses goes
};

}  // namespace ringfence::server

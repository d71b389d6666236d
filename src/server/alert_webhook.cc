#include "server/alert_webhook.h"

#include <algorithm>

#include "base/check.h"
#include "base/encoding.h"
#include "crypto/sha256.h"
#include "detect/alert.h"
#include "os/log.h"
#include "store/alert_records.h"

namespace ringfence::server {
namespace {

constexpr std::string_view kScheme = "https://";
constexpr std::size_t kUrlBytesMax = 512;
constexpr std::chrono::milliseconds kTimeout{10000};
constexpr std::chrono::milliseconds kPauseLeast{1000};
constexpr std::chrono::milliseconds kPauseMost{60000};
constexpr Milliseconds kGiveUp = std::chrono::hours(24);

}  // namespace

Result<WebhookTarget> ParseWebhook(std::string_view url) {
  const Error bad{
      Code::kInvalidArgument,
      "server.alert_webhook: \"" + std::string(url.substr(0, 200)) + "\" is no https URL",
      "write https://hooks.example/path", "server.alert_webhook"};
  if (!url.starts_with(kScheme) || url.size() > kUrlBytesMax ||
      url.find_first_of("#@ ") != std::string_view::npos) {
    return bad;
  }
  url.remove_prefix(kScheme.size());
  const std::size_t slash = std::min(url.find_first_of("/?"), url.size());
  WebhookTarget target{std::string(url.substr(0, slash)), std::string(url.substr(slash))};
  if (target.address.empty()) {
    return bad;
  }
  if (target.address.find(':', target.address.find(']') + 1) == std::string::npos) {
    target.address += ":443";
  }
  if (!target.target.starts_with('/')) {
    target.target.insert(0, "/");
  }
  return target;
}

crypto::SigningKey WebhookKey(const ServerKeys& keys) {
  const Digest seed =
      crypto::HkdfSha256(keys.token.Reveal(), AsBytes("ringfence alert webhook ed25519 v1"));
  auto key = crypto::SigningKey::FromSeed(SecretBytes(seed));
  RINGFENCE_CHECK(key.has_value());  // any 32 bytes are a seed
  return std::move(key).value();
}

std::string WebhookPublicKey(const ServerKeys& keys) {
  return "whpk_" + Base64(WebhookKey(keys).public_key().raw());
}

std::string SignWebhook(const crypto::SigningKey& key, std::string_view id, std::int64_t seconds,
                        std::string_view body) {
  std::string text(id);
  text += "." + std::to_string(seconds) + ".";
  text += body;
  return "v1a," + Base64(key.Sign(AsBytes(text)));
}

Result<std::unique_ptr<AlertWebhook>> AlertWebhook::Start(Core& core, std::string_view url,
                                                          std::string ca_pem) {
  RINGFENCE_ASSIGN(WebhookTarget target, ParseWebhook(url));
  net::ClientOptions options;
  options.address = target.address;
  options.ca_pem = std::move(ca_pem);
  options.response_timeout = kTimeout;
  options.response_bytes_max = 64 * 1024;
  RINGFENCE_ASSIGN(auto client, net::Client::Create(std::move(options)));
  std::unique_ptr<AlertWebhook> webhook(
      new AlertWebhook(core, std::move(target), std::move(client)));
  AlertWebhook* const raw = webhook.get();
  raw->thread_ = std::jthread([raw](const std::stop_token& stop) { raw->Loop(stop); });
  return webhook;
}

AlertWebhook::~AlertWebhook() {
  thread_.request_stop();
  client_->Cancel();
}

Status AlertWebhook::Tell(const std::string& id, const std::string& body) {
  const std::int64_t seconds = core_.Now().time_since_epoch() / std::chrono::seconds(1);
  net::ClientRequest request;
  request.method = "POST";
  request.target = target_.target;
  request.body = body;
  request.headers = {{"webhook-id", id},
                     {"webhook-timestamp", std::to_string(seconds)},
                     {"webhook-signature", SignWebhook(key_, id, seconds, body)},
                     {"Idempotency-Key", id}};
  RINGFENCE_ASSIGN(const net::Response response, client_->Send(request));
  if (response.status < 200 || response.status > 299) {
    return Error{Code::kUnavailable, "it answered " + std::to_string(response.status)};
  }
  return {};
}

// True: it told one, and there may be more.
Result<bool> AlertWebhook::TellNext() {
  if (!core_.sequencer().leads()) {
    return false;  // another server's turn
  }
  std::vector<store::AlertRow> rows;
  RINGFENCE_TRY(core_.database().Read([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(rows, store::UntoldAlerts(db, 1));
    return {};
  }));
  if (rows.empty()) {
    return false;
  }
  RINGFENCE_ASSIGN(const Json json, ParseJson(rows[0].record, detect::kAlertJsonBytesMax));
  RINGFENCE_ASSIGN(const detect::Alert alert, detect::AlertFromJson(json));
  JsonObject data = detect::AlertToJson(alert);
  JsonArray steps;
  for (const std::string& step : detect::NextSteps(alert)) {
    steps.emplace_back(step);
  }
  data["next_steps"] = std::move(steps);
  const JsonObject body{
      {"type", "alert.opened"}, {"timestamp", FormatTime(alert.opened)}, {"data", std::move(data)}};
  const Status told = Tell(alert.id, CanonicalJson(body));
  if (!told.has_value() && core_.Now() - alert.opened < kGiveUp) {
    return told.error();
  }
  if (!told.has_value()) {
    os::Log(os::Level::kError, "alert_webhook_gave_up", {{"alert", alert.id}});
  }
  RINGFENCE_TRY(
      core_.database().Write([&](store::Connection& db) { return store::SetTold(db, alert.id); }));
  return true;
}

void AlertWebhook::Loop(const std::stop_token& stop) {
  std::chrono::milliseconds pause = kPauseLeast;
  std::mutex mutex;
  std::condition_variable_any never;
  while (!stop.stop_requested()) {
    const auto told = TellNext();
    const std::string problem = told.has_value() ? "" : told.error().message;
    if (problem != problem_ && !stop.stop_requested()) {
      problem_ = problem;
      os::Log(problem.empty() ? os::Level::kInfo : os::Level::kWarning,
              problem.empty() ? "alert_webhook_works" : "alert_webhook_fails", {{"why", problem}});
    }
    if (told.has_value() && *told) {
      pause = kPauseLeast;
      continue;
    }
    std::unique_lock lock(mutex);
    (void)never.wait_for(lock, stop, pause, [] { return false; });
    pause = told.has_value() ? kPauseLeast : std::min(pause * 2, kPauseMost);
  }
}

}  // namespace ringfence::server

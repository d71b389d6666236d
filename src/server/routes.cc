#include "server/routes.h"

#include <charconv>

#include "base/encoding.h"
#include "crypto/sha256.h"

namespace ringfence::server {
namespace {

constexpr std::size_t kBodyBytesMax = 1024 * 1024;
constexpr std::int64_t kPageMax = 1000;
constexpr std::size_t kIdempotencyKeyLeast = 8;
constexpr std::size_t kIdempotencyKeyMost = 128;

Result<net::Response> Repeat(const store::KeptAnswer& kept, const std::string& digest,
                             const std::function<void(JsonObject&)>& finish) {
  if (kept.digest != digest) {
    return Error{Code::kConflict, "this Idempotency-Key was used for another request",
                 "use a new key for a new request", "Idempotency-Key"};
  }
  RINGFENCE_ASSIGN(Json body, ParseJson(kept.body, kBodyBytesMax * 4));
  if (finish && body.is_object()) {
    finish(body.get_object());
  }
  return net::Response::OfJson(kept.status, body);
}

}  // namespace

void Answer(const net::Responder& responder, const std::function<Result<net::Response>()>& make) {
  auto response = make();
  responder.Send(response.has_value() ? std::move(response).value()
                                      : net::Response::OfError(response.error()));
}

Result<Json> BodyOf(const net::Request& request) {
  if (request.body.empty()) {
    return Json(JsonObject());
  }
  return ParseJson(request.body, kBodyBytesMax);
}

Result<std::int64_t> IntQuery(const net::Request& request, std::string_view name,
                              std::int64_t fallback, std::int64_t least, std::int64_t most) {
  const std::string_view text = request.Query(name);
  if (text.empty()) {
    return fallback;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return Error{Code::kInvalidArgument,
                 std::string(name) + " must be a whole number from " + std::to_string(least) +
                     " to " + std::to_string(most),
                 {},
                 std::string(name)};
  }
  return value;
}

Result<Page> PageOf(const net::Request& request) {
  Page page;
  RINGFENCE_ASSIGN(page.limit, IntQuery(request, "limit", 100, 1, kPageMax));
  page.cursor = request.Query("cursor");
  if (page.cursor.size() > 256) {
    return Error{Code::kInvalidArgument, "cursor is too long", "pass back next_cursor", "cursor"};
  }
  return page;
}

Result<net::Response> CreateOnce(const Call& call,
                                 const std::function<Status(store::Connection&, Creation&)>& work,
                                 const std::function<void(JsonObject&)>& finish) {
  const std::string key(call.request.Header("idempotency-key"));
  if (!key.empty() && (key.size() < kIdempotencyKeyLeast || key.size() > kIdempotencyKeyMost)) {
    return Error{
        Code::kInvalidArgument, "Idempotency-Key must have 8 to 128 bytes", {}, "Idempotency-Key"};
  }
  const std::string digest = Hex(crypto::Sha256(
      AsBytes(call.request.method + "\n" + call.request.path + "\n" + call.request.body)));
  Creation creation;
  std::optional<store::KeptAnswer> kept;
  RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
    creation = {};
    kept.reset();
    if (!key.empty()) {
      RINGFENCE_ASSIGN(kept, store::FindAnswer(db, call.caller.principal, key));
      if (kept.has_value()) {
        return {};
      }
    }
    RINGFENCE_TRY(work(db, creation));
    if (key.empty()) {
      return {};
    }
    return store::KeepAnswer(db, call.caller.principal, key,
                             {digest, creation.status, CanonicalJson(creation.body)},
                             call.core.Now());
  }));
  if (kept.has_value()) {
    return Repeat(*kept, digest, finish);
  }
  if (finish) {
    finish(creation.body);
  }
  return net::Response::OfJson(creation.status, creation.body);
}

}  // namespace ringfence::server

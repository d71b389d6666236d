// Tokens: to act as a principal, and for a node to join.

#include "base/encoding.h"
#include "crypto/random.h"
#include "crypto/sha256.h"
#include "isolate/join_token.h"
#include "server/routes.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kDayMs = 24LL * 3600 * 1000;

JsonObject ViewOf(const store::Token& token) {
  JsonObject view{{"id", token.id},
                  {"principal", token.principal},
                  {"created", FormatTime(token.created)},
                  {"expires", FormatTime(token.expires)},
                  {"created_by", token.created_by}};
  if (!token.note.empty()) {
    view["note"] = token.note;
  }
  if (!token.revoked.empty()) {
    view["revoked"] = token.revoked;
  }
  return view;
}

Result<net::Response> Create(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(const std::string principal, reader.String("principal", 128));
  RINGFENCE_ASSIGN(const std::int64_t life, reader.IntOr("ttl_ms", kDayMs, 1000, 365 * kDayMs));
  RINGFENCE_ASSIGN(const std::string note, reader.StringOr("note", "", 200));
  RINGFENCE_TRY(reader.Finish());
  if (call.core.policy()->FindPrincipal(principal) == nullptr) {
    return Error{Code::kNotFound, "no principal \"" + principal + "\" in the policy",
                 "declare it in the policy folder, then `ringfence policy reload`", "principal"};
  }
  return CreateOnce(
      call,
      [&](store::Connection& db, Creation& creation) -> Status {
        store::Token token;
        token.id = crypto::RandomId("t");
        token.principal = principal;
        token.created = call.core.Now();
        token.expires = token.created + Milliseconds(life);
        token.created_by = call.caller.principal;
        token.note = note;
        RINGFENCE_TRY(store::PutToken(db, token));
        audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "token.create");
        Note(call, entry);
        entry.result = "ok";
        entry.detail["token"] = token.id;
        entry.detail["as"] = principal;
        entry.detail["expires"] = FormatTime(token.expires);
        RINGFENCE_TRY(Core::Record(db, entry));
        creation.body = ViewOf(token);
        return {};
      },
      [&](JsonObject& answer) {
        const auto& id = answer["id"].as_string();
        answer["token"] = call.core.mint().Mint(std::string_view(id.data(), id.size()));
      });
}

Result<net::Response> CreateJoin(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(const std::string node, reader.String("node", 63));
  RINGFENCE_ASSIGN(const std::int64_t life, reader.IntOr("ttl_ms", 3600 * 1000, 1000, 7 * kDayMs));
  RINGFENCE_TRY(reader.Finish());
  RINGFENCE_TRY(model::CheckNodeName(node));
  // The secret follows from the answer's id, so that a repeated request gets the same token and
  // nothing that opens a door is stored.
  const auto secret_of = [&](std::string_view id) {
    return SecretBytes(ByteView(crypto::HmacSha256(
        call.core.keys().token.Reveal(), AsBytes("ringfence join v1\n" + std::string(id)))));
  };
  return CreateOnce(
      call,
      [&](store::Connection& db, Creation& creation) -> Status {
        const std::string id = crypto::RandomId("j");
        const SecretBytes secret = secret_of(id);
        store::JoinToken token;
        token.id = Hex(crypto::Sha256(isolate::AgentHalf(secret).Reveal()));
        token.node = node;
        token.jailer_half = Base64(isolate::JailerHalf(secret).Reveal());
        token.expires = call.core.Now() + Milliseconds(life);
        RINGFENCE_TRY(store::InsertJoinToken(db, token));
        audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "node.token_create");
        entry.node = node;
        Note(call, entry);
        entry.result = "ok";
        entry.detail["expires"] = FormatTime(token.expires);
        RINGFENCE_TRY(Core::Record(db, entry));
        creation.body = {{"id", id}, {"node", node}, {"expires", FormatTime(token.expires)}};
        return {};
      },
      [&](JsonObject& answer) {
        const auto& id = answer["id"].as_string();
        answer["token"] =
            isolate::FormatJoinToken({call.core.public_address(), call.core.keys().ca_fingerprint,
                                      call.core.keys().grant.public_key(),
                                      secret_of(std::string_view(id.data(), id.size()))});
      });
}

}  // namespace

void CreateToken(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return Create(call); });
}

void CreateNodeToken(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return CreateJoin(call); });
}

void ListTokens(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const Page page, PageOf(call.request));
    JsonObject body;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(const auto tokens, store::ListTokens(db, page.cursor, page.limit));
      JsonArray items;
      for (const store::Token& token : tokens) {
        if (token.revoked.empty() && token.expires > call.core.Now()) {
          items.emplace_back(ViewOf(token));
        }
      }
      if (static_cast<std::int64_t>(tokens.size()) == page.limit) {
        body["next_cursor"] = tokens.back().id;
      }
      body["items"] = std::move(items);
      return {};
    }));
    return net::Response::OfJson(200, body);
  });
}

void RevokeToken(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    store::Token token;
    RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(token, store::GetToken(db, call.params.find("token")->second));
      if (!token.revoked.empty()) {
        return {};
      }
      token.revoked = FormatTime(call.core.Now());
      RINGFENCE_TRY(store::PutToken(db, token));
      audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "token.revoke");
      Note(call, entry);
      entry.result = "ok";
      entry.detail["token"] = token.id;
      entry.detail["as"] = token.principal;
      return Core::Record(db, entry);
    }));
    return net::Response::OfJson(200, ViewOf(token));
  });
}

}  // namespace ringfence::server

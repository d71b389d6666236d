// Feeds of known-bad indicators: imported in parts, put in force at once, listed, removed.

#include "detect/indicator_json.h"
#include "server/live_intel.h"
#include "server/routes.h"
#include "store/intel_records.h"

namespace ringfence::server {
namespace {

constexpr std::int64_t kPartsMax = 10'000;
constexpr std::size_t kFeedNameBytesMax = 64;

Result<std::string> FeedOf(const Call& call) {
  const std::string& name = call.params.find("feed")->second;
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789._-";
  if (name.size() > kFeedNameBytesMax || name.find_first_not_of(kAllowed) != std::string::npos) {
    return Error{Code::kInvalidArgument, "\"" + name.substr(0, 64) + "\" is no name for a feed",
                 "use up to 64 of a-z, 0-9, '.', '_' and '-'", "feed"};
  }
  return name;
}

JsonObject ViewOf(const store::IntelFeed& feed) {
  const bool hunted = feed.hunt_until >= 0 && feed.hunt_from >= feed.hunt_until;
  return {{"name", feed.name},
          {"source", feed.source},
          {"imported_by", feed.by},
          {"imported", FormatTime(feed.time)},
          {"indicators", feed.indicators},
          {"hunted", hunted}};
}

audit::Entry EntryFor(const Call& call, std::string_view action, const std::string& feed) {
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), action);
  Note(call, entry);
  entry.result = "ok";
  entry.detail["feed"] = feed;
  return entry;
}

Result<net::Response> TakePart(const Call& call) {
  store::IntelFeed feed;
  RINGFENCE_ASSIGN(feed.name, FeedOf(call));
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(feed.upload, reader.String("upload", 64));
  RINGFENCE_ASSIGN(const std::int64_t part, reader.Int("part", 0, kPartsMax - 1));
  RINGFENCE_ASSIGN(const auto items, reader.Array("indicators"));
  RINGFENCE_TRY(reader.Finish());
  JsonArray kept;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto indicator = detect::IndicatorFromJson(*items[i]);
    if (!indicator.has_value()) {
      return Prefix("indicators[" + std::to_string(i) + "]", indicator.error());
    }
    kept.push_back(detect::IndicatorToJson(*indicator));
  }
  feed.indicators = static_cast<std::int64_t>(kept.size());
  feed.time = call.core.Now();
  const std::string text = CanonicalJson(JsonObject{{"indicators", std::move(kept)}});
  RINGFENCE_TRY(call.core.database().Write(
      [&](store::Connection& db) { return store::PutIntelPart(db, feed, part, text); }));
  return net::Response::OfJson(200, JsonObject{{"part", part}, {"indicators", feed.indicators}});
}

Result<net::Response> PutInForce(const Call& call) {
  store::IntelFeed feed;
  RINGFENCE_ASSIGN(feed.name, FeedOf(call));
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(feed.upload, reader.String("upload", 64));
  RINGFENCE_ASSIGN(feed.parts, reader.Int("parts", 1, kPartsMax));
  RINGFENCE_ASSIGN(feed.source, reader.StringOr("source", "", 1024));
  RINGFENCE_TRY(reader.Finish());
  feed.by = call.caller.principal;
  feed.time = call.core.Now();
  RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
    RINGFENCE_TRY(store::PutIntelFeed(db, feed));
    std::int64_t all = 0;
    RINGFENCE_ASSIGN(const auto feeds, store::ListIntelFeeds(db));
    for (const store::IntelFeed& one : feeds) {
      all += one.indicators;
    }
    if (all > kIntelIndicatorsMax) {
      return Error{Code::kFailedPrecondition,
                   "with this feed there would be " + std::to_string(all) +
                       " indicators; a server holds " + std::to_string(kIntelIndicatorsMax),
                   "remove a feed first, or match offline: ringfence intel match"};
    }
    audit::Entry entry = EntryFor(call, "intel.import", feed.name);
    entry.detail["indicators"] = feed.indicators;
    entry.detail["source"] = feed.source;
    return Core::Record(db, entry);
  }));
  return net::Response::OfJson(200, ViewOf(feed));
}

}  // namespace

void ListIntelFeeds(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    JsonArray items;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      items.clear();
      RINGFENCE_ASSIGN(const auto feeds, store::ListIntelFeeds(db));
      for (const store::IntelFeed& feed : feeds) {
        items.push_back(ViewOf(feed));
      }
      return {};
    }));
    return net::Response::OfJson(200, JsonObject{{"items", std::move(items)}});
  });
}

void PutIntelPart(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return TakePart(call); });
}

void PutIntelFeed(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return PutInForce(call); });
}

void RemoveIntelFeed(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    RINGFENCE_ASSIGN(const std::string name, FeedOf(call));
    RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
      RINGFENCE_TRY(store::RemoveIntelFeed(db, name));
      return Core::Record(db, EntryFor(call, "intel.remove", name));
    }));
    return net::Response::OfJson(200, JsonObject{{"name", name}});
  });
}

}  // namespace ringfence::server

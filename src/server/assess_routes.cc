// What checks found on nodes. A node speaks for itself, with its certificate; what it says is as
// true as the node is, and kept with what it said before.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "server/routes.h"
#include "store/assessments.h"

namespace ringfence::server {
namespace {

constexpr std::size_t kChecksMax = 2'000;
constexpr std::size_t kDriftMax = 200;
// Of one audit entry, which holds 64 KiB: the rest is in the assessment.
constexpr std::size_t kFailuresTold = 50;
constexpr std::size_t kMendedTold = 100;
constexpr std::size_t kDriftTold = 30;
constexpr std::size_t kValueTold = 160;
constexpr std::size_t kSeenBytesMax = 300;
constexpr Milliseconds kLeastApart{1000};
constexpr std::string_view kResults[] = {"pass", "fail", "cannot tell", "not applicable"};
constexpr std::string_view kSeverities[] = {"low", "medium", "high", "critical"};
constexpr std::pair<std::string_view, std::int64_t> kWeights[] = {
    {"likelihood", 5}, {"impact", 5}, {"effort", 3}};
constexpr std::string_view kBaselines[] = {"none", "ok", "drifted", "refused"};

template <std::size_t kCount>
Result<std::string> OneOf(JsonReader& reader, std::string_view name,
                          const std::string_view (&words)[kCount]) {
  RINGFENCE_ASSIGN(std::string text, reader.String(name, 32));
  if (std::find(std::begin(words), std::end(words), text) == std::end(words)) {
    return Error{Code::kInvalidArgument, reader.Path(name) + ": \"" + text + "\" is not known",
                 "node and server may be of different versions", std::string(name)};
  }
  return text;
}

struct Said {
  JsonObject document;
  std::map<std::string, JsonObject> failing;  // by check
  std::map<std::string, JsonObject> drift;    // by fact
  std::set<std::string> passing;
  std::int64_t score = 0;
  std::int64_t doubtful = 0;
};

Result<JsonObject> ReadCheck(const Json& item, std::size_t index) {
  RINGFENCE_ASSIGN(auto one, JsonReader::Open(item, "checks[" + std::to_string(index) + "]"));
  RINGFENCE_ASSIGN(const std::string id, one.String("id", 64));
  RINGFENCE_ASSIGN(const std::string title, one.String("title", 200));
  RINGFENCE_ASSIGN(const std::string area, one.String("class", 64));
  RINGFENCE_ASSIGN(const std::string result, OneOf(one, "result", kResults));
  RINGFENCE_ASSIGN(const std::string severity, OneOf(one, "severity", kSeverities));
  RINGFENCE_ASSIGN(const std::string seen, one.StringOr("seen", "", kSeenBytesMax));
  JsonObject check{{"id", id},         {"title", title},       {"class", area},
                   {"result", result}, {"severity", severity}, {"seen", seen}};
  for (const auto& [name, most] : kWeights) {
    if (one.Has(name)) {  // an older node does not say them
      RINGFENCE_ASSIGN(check[name], one.Int(name, 1, most));
    }
  }
  RINGFENCE_TRY(one.Finish());
  return check;
}

Result<Said> ReadSaid(const Call& call) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(call.request));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(body));
  Said said;
  RINGFENCE_ASSIGN(said.score, reader.Int("score", 0, 100));
  RINGFENCE_ASSIGN(const std::string baseline, OneOf(reader, "baseline", kBaselines));
  RINGFENCE_ASSIGN(const auto checks, reader.Array("checks", kChecksMax));
  RINGFENCE_ASSIGN(const auto drifts, reader.Array("drift", kDriftMax));
  RINGFENCE_TRY(reader.Finish());
  JsonArray kept;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    RINGFENCE_ASSIGN(JsonObject check, ReadCheck(*checks[i], i));
    const std::string id(check.at("id").as_string());
    const std::string result(check.at("result").as_string());
    said.doubtful += result == "cannot tell" ? 1 : 0;
    if (result == "fail") {
      said.failing[id] = check;
    } else if (result != "cannot tell") {
      said.passing.insert(id);
    }
    kept.push_back(std::move(check));
  }
  JsonArray drifted;
  for (std::size_t i = 0; i < drifts.size(); ++i) {
    RINGFENCE_ASSIGN(auto one, JsonReader::Open(*drifts[i], "drift[" + std::to_string(i) + "]"));
    RINGFENCE_ASSIGN(const std::string fact, one.String("fact", 200));
    RINGFENCE_ASSIGN(const std::string was, one.StringOr("was", "", 600));
    RINGFENCE_ASSIGN(const std::string is, one.StringOr("is", "", 600));
    RINGFENCE_TRY(one.Finish());
    said.drift[fact] = JsonObject{{"fact", fact}, {"was", was}, {"is", is}};
    drifted.push_back(said.drift[fact]);
  }
  said.document = JsonObject{{"node", call.caller.principal}, {"time", FormatTime(call.core.Now())},
                             {"score", said.score},           {"baseline", baseline},
                             {"drift", std::move(drifted)},   {"checks", std::move(kept)}};
  return said;
}

// Names in a stored document: of a list's objects that have `value` in `field`.
std::set<std::string> Before(const JsonObject& document, std::string_view list,
                             std::string_view name, std::string_view field,
                             std::string_view value) {
  std::set<std::string> names;
  const Json* items = document.if_contains(list);
  if (items == nullptr || !items->is_array()) {
    return names;
  }
  for (const Json& item : items->get_array()) {
    const JsonObject* object = item.if_object();
    const Json* id = object == nullptr ? nullptr : object->if_contains(name);
    const Json* found = object == nullptr || field.empty() ? nullptr : object->if_contains(field);
    const bool wanted =
        field.empty() || (found != nullptr && found->is_string() && found->get_string() == value);
    if (id != nullptr && id->is_string() && wanted) {
      names.emplace(id->get_string());
    }
  }
  return names;
}

// Bytes of ASCII, as baselines hold them; what is not is left out.
std::string Short(const Json& text) {
  std::string out;
  for (const char c : std::string_view(text.as_string()).substr(0, kValueTold)) {
    out += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return out;
}

// What is new since the last time; of a first time only drift is.
Status RecordNews(const Call& call, store::Connection& db, const Said& said,
                  const JsonObject& before) {
  const bool first = before.empty();
  const auto failed = Before(before, "checks", "id", "result", "fail");
  const auto drifted = Before(before, "drift", "fact", "", "");
  JsonArray failures;
  JsonArray mended;
  JsonArray drift;
  for (const auto& [id, check] : said.failing) {
    if (!first && !failed.contains(id) && failures.size() < kFailuresTold) {
      failures.push_back(check);
    }
  }
  for (const std::string& id : failed) {
    if (said.passing.contains(id) && mended.size() < kMendedTold) {
      mended.push_back(Json(id));
    }
  }
  for (const auto& [fact, change] : said.drift) {
    if (!drifted.contains(fact) && drift.size() < kDriftTold) {
      drift.push_back(JsonObject{
          {"fact", fact}, {"was", Short(change.at("was"))}, {"is", Short(change.at("is"))}});
    }
  }
  if (failures.empty() && mended.empty() && drift.empty()) {
    return {};
  }
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "node.assess");
  entry.node = call.caller.principal;
  entry.result = failures.empty() && drift.empty() ? "ok" : "error";
  entry.detail["score"] = said.score;
  entry.detail["failing"] = static_cast<std::int64_t>(said.failing.size());
  entry.detail["first"] = first;
  entry.detail["new_failures"] = std::move(failures);
  entry.detail["mended"] = std::move(mended);
  entry.detail["drift"] = std::move(drift);
  return Core::Record(db, entry);
}

JsonObject TrendOf(const Said& said, JsonObject before) {
  JsonArray points;
  if (Json* old = before.if_contains("points"); old != nullptr && old->is_array()) {
    points = std::move(old->get_array());
  }
  if (points.size() >= store::kAssessmentPointsMax) {
    points.erase(points.begin());
  }
  const auto failing = static_cast<std::int64_t>(said.failing.size());
  points.push_back(
      JsonObject{{"time", said.document.at("time")}, {"score", said.score}, {"failing", failing}});
  JsonObject severities;
  for (const std::string_view severity : kSeverities) {
    severities[severity] =
        std::count_if(said.failing.begin(), said.failing.end(), [severity](const auto& member) {
          return member.second.at("severity").as_string() == severity;
        });
  }
  return JsonObject{{"node", said.document.at("node")},
                    {"time", said.document.at("time")},
                    {"score", said.score},
                    {"failing", failing},
                    {"cannot_tell", said.doubtful},
                    {"severities", std::move(severities)},
                    {"baseline", said.document.at("baseline")},
                    {"drift", static_cast<std::int64_t>(said.drift.size())},
                    {"points", std::move(points)}};
}

Result<net::Response> Take(const Call& call) {
  RINGFENCE_ASSIGN(const Said said, ReadSaid(call));
  RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const model::Node node, store::GetNode(db, call.caller.principal));
    RINGFENCE_ASSIGN(const JsonObject before, store::GetAssessment(db, node.name));
    if (const Json* time = before.if_contains("time"); time != nullptr && time->is_string()) {
      const auto last = ParseTime(std::string_view(time->get_string()));
      if (last.has_value() && call.core.Now() - *last < kLeastApart && call.core.Now() >= *last) {
        return Error{Code::kExhausted, "this node was assessed less than a second ago",
                     "try again in a second"};
      }
    }
    RINGFENCE_ASSIGN(JsonObject trend, store::GetAssessmentTrend(db, node.name));
    RINGFENCE_TRY(
        store::PutAssessment(db, node.name, said.document, TrendOf(said, std::move(trend))));
    return RecordNews(call, db, said, before);
  }));
  return net::Response::OfJson(
      200, JsonObject{{"failing", static_cast<std::int64_t>(said.failing.size())}});
}

}  // namespace

void AgentAssessment(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return Take(call); });
}

void ListAssessments(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    JsonArray trends;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(trends, store::ListAssessmentTrends(db));
      return {};
    }));
    return net::Response::OfJson(200, JsonObject{{"assessments", std::move(trends)}});
  });
}

void GetAssessment(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    JsonObject document;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(const model::Node node,
                       store::GetNode(db, call.params.find("node")->second));
      RINGFENCE_ASSIGN(document, store::GetAssessment(db, node.name));
      RINGFENCE_ASSIGN(JsonObject trend, store::GetAssessmentTrend(db, node.name));
      if (document.empty()) {
        return Error{Code::kNotFound, "node " + node.name + " was never assessed",
                     "on the node, as root: `ringfence assess send`"};
      }
      document["points"] = trend["points"];
      return {};
    }));
    return net::Response::OfJson(200, document);
  });
}

}  // namespace ringfence::server

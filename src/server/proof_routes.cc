// What came of attacking a node. The probes ran as leases; here their signed endings are looked at,
// and nothing else counts: not what a client or an agent says of them.

#include <algorithm>

#include "base/encoding.h"
#include "crypto/sha256.h"
#include "isolate/probe_table.h"
#include "isolate/proof.h"
#include "lease/life.h"
#include "server/routes.h"
#include "store/proofs.h"

namespace ringfence::server {
namespace {

constexpr std::size_t kProbesMax = 256;
constexpr std::size_t kWhyBytesMax = 512;
constexpr Milliseconds kProofAgeMax = std::chrono::hours(1);
constexpr std::size_t kClasses = 5;  // those of a probe that speaks about every one
constexpr const char* kUntried = "could not be tried";

struct Claim {  // of one probe: the leases that tried it
  const isolate::Probe* probe = nullptr;
  std::string attack;  // may be empty: not tried
  std::string control;
  std::string why;  // for people, where one is missing
};

Result<std::vector<Claim>> ReadClaims(const net::Request& request) {
  RINGFENCE_ASSIGN(const Json body, BodyOf(request));
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(body));
  RINGFENCE_ASSIGN(const auto items, reader.Array("probes", kProbesMax));
  RINGFENCE_TRY(reader.Finish());
  std::vector<Claim> claims;
  for (const Json* item : items) {
    RINGFENCE_ASSIGN(JsonReader fields, JsonReader::Open(*item, "probes"));
    RINGFENCE_ASSIGN(const std::string name, fields.String("name", 64));
    Claim claim;
    claim.probe = isolate::FindProbe(name);
    if (claim.probe == nullptr) {
      return Error{Code::kInvalidArgument, "no probe \"" + name + "\"",
                   "client and server may be of different versions", "probes"};
    }
    RINGFENCE_ASSIGN(claim.attack, fields.StringOr("attack", "", 64));
    RINGFENCE_ASSIGN(claim.control, fields.StringOr("control", "", 64));
    RINGFENCE_ASSIGN(claim.why, fields.StringOr("why", "", kWhyBytesMax));
    RINGFENCE_TRY(fields.Finish());
    claims.push_back(std::move(claim));
  }
  return claims;
}

std::vector<std::string> NamesOf(const std::vector<isolate::Wall>& walls) {
  std::vector<std::string> names;
  for (const isolate::Wall wall : walls) {
    names.emplace_back(isolate::Name(wall));
  }
  return names;
}

// The verdict of one lease's box, from the jailer's own statement.
Result<int> VerdictOf(const Call& call, store::Connection& db, const model::Node& node,
                      const std::string& id, const isolate::Probe& probe,
                      const std::vector<std::string>& walls_away) {
  RINGFENCE_ASSIGN(const model::Lease lease, store::GetLease(db, id));
  const auto bad = [&](std::string_view why) {
    return Error{Code::kFailedPrecondition, "lease " + id + " " + std::string(why)};
  };
  if (!lease.request.probe.has_value() || lease.node != node.name ||
      lease.request.probe->name != probe.name || lease.request.probe->role != "attack" ||
      lease.request.probe->walls_away != walls_away) {
    return bad("did not try that");
  }
  if (!lease.ended.has_value() || lease.proof.empty()) {
    return bad("has no signed ending: " + (lease.reason.empty() ? lease.outcome : lease.reason));
  }
  RINGFENCE_ASSIGN(const Bytes raw, FromBase64(node.receipt_key));
  RINGFENCE_ASSIGN(const crypto::PublicKey key, crypto::PublicKey::FromRaw(raw));
  RINGFENCE_ASSIGN(const isolate::Proof proof, isolate::OpenProof(key, lease.proof));
  if (proof.node != node.name || proof.lease != id || proof.command != lease.request.command ||
      proof.walls_away != walls_away) {
    return bad("has a signed ending of something else");
  }
  if (call.core.Now() - proof.time > kProofAgeMax) {
    return bad("ended too long ago");
  }
  RINGFENCE_ASSIGN(const lease::Ending ending, lease::ParseEnding(proof.ending));
  return ending.outcome == "exited" ? ending.exit_code : isolate::kProbeCannotTry;
}

JsonObject Judge(const Call& call, store::Connection& db, const model::Node& node,
                 const Claim& claim) {
  JsonArray classes;
  for (const model::IsolationClass one : claim.probe->classes) {
    classes.emplace_back(std::string(Name(one)));
  }
  JsonObject result{{"name", claim.probe->name},
                    {"classes", std::move(classes)},
                    {"time", FormatTime(call.core.Now())},
                    {"attack", claim.attack},
                    {"control", claim.control}};
  const auto say = [&](std::string_view verdict, std::string why) {
    result["result"] = verdict;
    result["why"] = std::move(why);
    return result;
  };
  if (claim.attack.empty()) {
    return say(kUntried, claim.why);
  }
  const auto attack = VerdictOf(call, db, node, claim.attack, *claim.probe, {});
  if (!attack.has_value()) {
    return say(kUntried, attack.error().message);
  }
  if (*attack == isolate::kProbeLeaked) {
    return say("leaked", claim.why);
  }
  if (*attack != isolate::kProbeHeld) {
    return say(kUntried, claim.why.empty() ? "the probe could not try it" : claim.why);
  }
  if (claim.control.empty()) {
    return say(kUntried, claim.why.empty() ? "its control was not run" : claim.why);
  }
  const auto control =
      VerdictOf(call, db, node, claim.control, *claim.probe, NamesOf(claim.probe->control));
  if (!control.has_value()) {
    return say(kUntried, "its control: " + control.error().message);
  }
  if (*control != isolate::kProbeLeaked) {
    return say(kUntried, "its control did not get through either, so that it held means nothing" +
                             (claim.why.empty() ? "" : " (" + claim.why + ")"));
  }
  return say("held", "");
}

// What all results say about one class. Walls of the kernel stand around a box of any class; they
// alone prove nothing about how a GPU is shared, so that takes a probe of the class's own, and
// boxes of that class: today's have whole GPUs.
JsonObject SumOf(model::IsolationClass isolation, const JsonObject& probes) {
  std::int64_t held = 0;
  std::int64_t leaked = 0;
  std::int64_t untried = 0;
  bool own_held = false;
  for (const auto& member : probes) {
    const JsonObject& result = member.value().get_object();
    const JsonArray& classes = result.at("classes").get_array();
    if (std::find(classes.begin(), classes.end(), Json(std::string(Name(isolation)))) ==
        classes.end()) {
      continue;
    }
    const bool about_all = classes.size() == kClasses;
    const std::string_view verdict = result.at("result").get_string();
    held += verdict == "held" ? 1 : 0;
    leaked += verdict == "leaked" ? 1 : 0;
    untried += verdict == kUntried ? 1 : 0;
    own_held =
        own_held || (verdict == "held" && !about_all && isolation == model::IsolationClass::kGpu);
  }
  return JsonObject{{"grade", leaked > 0 ? "leaked"
                              : own_held ? "held"
                                         : kUntried},
                    {"held", held},
                    {"leaked", leaked},
                    {"untried", untried}};
}

// Results of this run over those before it, and per class what they add up to.
JsonObject Sum(const model::Node& node, JsonObject before, const std::vector<JsonObject>& results,
               Timestamp now) {
  JsonObject probes;
  if (const Json* old = before.if_contains("probes"); old != nullptr && old->is_object()) {
    probes = old->get_object();
  }
  for (const JsonObject& result : results) {
    probes[result.at("name").get_string()] = result;
  }
  JsonObject classes;
  for (const model::IsolationClass one :
       {model::IsolationClass::kGpu, model::IsolationClass::kMig, model::IsolationClass::kTime,
        model::IsolationClass::kMps}) {
    classes[std::string(Name(one))] = SumOf(one, probes);
  }
  return JsonObject{{"node", node.name},
                    {"time", FormatTime(now)},
                    {"simulated", node.simulated},
                    {"driver_version", node.driver_version},
                    {"classes", std::move(classes)},
                    {"probes", std::move(probes)}};
}

// The first probe of the document that got through walls of whole GPUs.
std::string LeakIn(const JsonObject& document) {
  for (const auto& member : document.at("probes").get_object()) {
    const JsonObject& result = member.value().get_object();
    const JsonArray& classes = result.at("classes").get_array();
    if (result.at("result") == "leaked" &&
        std::find(classes.begin(), classes.end(), Json("gpu")) != classes.end()) {
      return std::string(member.key());
    }
  }
  return {};
}

Status RecordRun(const Call& call, store::Connection& db, const model::Node& node,
                 const std::vector<JsonObject>& results) {
  audit::Entry entry = call.core.NewEntry(ActorOf(call.caller), "node.prove");
  entry.node = node.name;
  Note(call, entry);
  JsonObject verdicts;
  std::int64_t leaked = 0;
  for (const JsonObject& result : results) {
    verdicts[result.at("name").get_string()] = result.at("result");
    leaked += result.at("result") == "leaked" ? 1 : 0;
  }
  entry.result = leaked == 0 ? "ok" : "error";
  entry.detail["leaked"] = leaked;
  entry.detail["simulated"] = node.simulated;
  entry.detail["results_digest"] = Hex(crypto::Sha256(AsBytes(CanonicalJson(verdicts))));
  entry.detail["results"] = std::move(verdicts);
  return Core::Record(db, entry);
}

Result<net::Response> Take(const Call& call) {
  RINGFENCE_ASSIGN(const std::vector<Claim> claims, ReadClaims(call.request));
  JsonObject document;
  RINGFENCE_TRY(call.core.Change([&](store::Connection& db) -> Status {
    RINGFENCE_ASSIGN(const model::Node node, store::GetNode(db, call.params.find("node")->second));
    RINGFENCE_ASSIGN(JsonObject before, store::GetProofs(db, node.name));
    std::vector<JsonObject> results;
    for (const Claim& claim : claims) {
      results.push_back(Judge(call, db, node, claim));
    }
    document = Sum(node, std::move(before), results, call.core.Now());
    const std::string leak = LeakIn(document);
    const store::LeakingNode leaking{node.name, leak, call.core.Now()};
    RINGFENCE_TRY(store::PutProofs(db, node.name, document, leak.empty() ? nullptr : &leaking));
    return RecordRun(call, db, node, results);
  }));
  return net::Response::OfJson(201, document);
}

}  // namespace

void TakeProofs(const Call& call, const net::Responder& responder) {
  Answer(responder, [&] { return Take(call); });
}

void GetProofs(const Call& call, const net::Responder& responder) {
  Answer(responder, [&]() -> Result<net::Response> {
    JsonObject document;
    RINGFENCE_TRY(call.core.database().Read([&](store::Connection& db) -> Status {
      RINGFENCE_ASSIGN(const model::Node node,
                       store::GetNode(db, call.params.find("node")->second));
      RINGFENCE_ASSIGN(document, store::GetProofs(db, node.name));
      if (document.empty()) {
        document = Sum(node, {}, {}, node.joined);
      }
      return {};
    }));
    return net::Response::OfJson(200, document);
  });
}

}  // namespace ringfence::server

#include "cli/prover.h"

#include <algorithm>

#include "base/encoding.h"
#include "cli/fields.h"
#include "cli/run.h"
#include "crypto/random.h"
#include "crypto/sha256.h"
#include "isolate/proof.h"
#include "model/probe_request.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr std::int64_t kBoxTimeMs = 120'000;
constexpr auto kReadyMax = std::chrono::seconds(60);
constexpr auto kFreeMax = std::chrono::seconds(60);
constexpr auto kCloseMax = std::chrono::minutes(5);
constexpr std::size_t kLineBytesMax = 64 * 1024;

JsonArray ToArray(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

// What a box has printed, and whether there will be more.
struct Output {
  std::string text;
  bool complete = false;
  std::string reason;
  int exit_code = -1;
};

Result<Output> ReadMore(Api& api, const std::string& lease, std::string& cursor) {
  RINGFENCE_ASSIGN(const Json page, api.Get(Target("/v1/leases", lease, "/logs",
                                                   {{"cursor", cursor}, {"wait_ms", "5000"}})));
  Output output;
  for (const Json& chunk : ArrayOf(page, "chunks")) {
    RINGFENCE_ASSIGN(const Bytes data, FromBase64(TextOf(chunk, "data")));
    output.text += AsText(data);
  }
  cursor = TextOf(page, "next_cursor");
  output.complete = BoolOf(page, "complete");
  output.reason = TextOf(page, "reason");
  output.exit_code = static_cast<int>(IntOf(page, "exit_code").value_or(-1));
  return output;
}

// The lines that are JSON objects; a probe prints nothing else that matters.
std::vector<Json> Lines(const std::string& text) {
  std::vector<Json> lines;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    auto json = ParseJson(std::string_view(text).substr(at, end - at), kLineBytesMax);
    if (json.has_value() && json->is_object()) {
      lines.push_back(std::move(*json));
    }
    at = end + 1;
  }
  return lines;
}

std::string Says(const Json& line) {
  std::string text = TextOf(line, "result");
  if (const auto bytes = IntOf(line, "leaked_bytes"); bytes.value_or(0) > 0) {
    text += ", " + std::to_string(*bytes) + " bytes";
  }
  const std::string detail = TextOf(line, "detail");
  return text + (detail.empty() ? "" : ": " + detail);
}

}  // namespace

Result<Prover::Box> Prover::Start(const isolate::Probe& probe, std::string_view role,
                                  const std::vector<std::string>& walls_away,
                                  const std::vector<std::string>& facts) {
  model::ProbeRequest request;
  request.node = node_;
  request.name = probe.name;
  request.role = role;
  const Json body = JsonObject{
      {"tenant", request.Tenant()},
      {"gpus", static_cast<std::int64_t>(probe.gpus)},
      {"memory_bytes", std::int64_t{256} << 20U},
      {"timeout_ms", kBoxTimeMs},
      {"probe", JsonObject{{"node", node_},
                           {"name", probe.name},
                           {"role", role},
                           {"walls_away", ToArray(walls_away)},
                           {"facts", ToArray(facts)}}},
  };
  const std::string key = FreshIdempotencyKey();
  const auto until = std::chrono::steady_clock::now() + kFreeMax;
  for (;;) {
    auto lease = api_.Post("/v1/leases", &body, key);
    Box box;
    if (lease.has_value()) {
      box.lease = TextOf(*lease, "id");
      box.facts = {std::string(role) + "_gpu=" + JoinOf(*lease, "gpus", ",")};
      return box;
    }
    const bool busy = lease.error().code == Code::kUnavailable && !api_.unreachable();
    if (!busy) {
      return lease.error();
    }
    if (presses_.count() > 0 || std::chrono::steady_clock::now() >= until) {
      box.trouble = lease.error().message;
      return box;
    }
    presses_.Sleep(Milliseconds(200), 0);
  }
}

Status Prover::AwaitReady(Box& victim) {
  const auto until = std::chrono::steady_clock::now() + kReadyMax;
  std::string cursor;
  std::string text;
  while (std::chrono::steady_clock::now() < until && presses_.count() == 0) {
    RINGFENCE_ASSIGN(const Output more, ReadMore(api_, victim.lease, cursor));
    text += more.text;
    for (const Json& line : Lines(text)) {
      if (BoolOf(line, "ready")) {
        const Json* const facts = Field(line, "facts");
        if (facts != nullptr && facts->is_object()) {
          for (const auto& member : facts->get_object()) {
            victim.facts.push_back(std::string(member.key()) + "=" +
                                   TextOf(*facts, std::string_view(member.key())));
          }
        }
        return {};
      }
      if (!TextOf(line, "result").empty()) {
        victim.trouble = "the victim " + Says(line);
      }
    }
    if (more.complete) {
      if (victim.trouble.empty()) {
        victim.trouble =
            "the victim did not stay: " +
            (more.reason.empty() ? "exit code " + std::to_string(more.exit_code) : more.reason);
      }
      return {};
    }
  }
  victim.trouble = "the victim was not ready in time";
  return {};
}

Status Prover::AwaitVerdict(Box& attacker) {
  std::string cursor;
  std::string text;
  for (;;) {
    RINGFENCE_ASSIGN(const Output more, ReadMore(api_, attacker.lease, cursor));
    text += more.text;
    if (more.complete) {
      attacker.exit_code = more.exit_code;
      for (const Json& line : Lines(text)) {
        if (!TextOf(line, "result").empty()) {
          attacker.verdict = Says(line);
        }
      }
      if (attacker.verdict.empty()) {
        attacker.trouble = more.reason.empty() ? "the attacker said nothing" : more.reason;
      }
      return {};
    }
    if (presses_.count() > 0) {
      attacker.trouble = "interrupted";
      return {};
    }
  }
}

Status Prover::Close(const Box& box) {
  if (box.lease.empty()) {
    return {};
  }
  (void)api_.Post(Target("/v1/leases", box.lease, "/end"), nullptr);
  RINGFENCE_TRY(WaitUntilOver(api_, console_, presses_, box.lease, kCloseMax));
  return {};
}

Result<Prover::Box> Prover::Round(const isolate::Probe& probe,
                                  const std::vector<std::string>& walls_away) {
  const Bytes secret = crypto::RandomBytes(kSecretBytes);
  Box victim;
  std::vector<std::string> facts = {"digest=" + Hex(crypto::Sha256(secret))};
  // Between two leases a card is scrubbed, whatever is taken away: without that wall, the attacker
  // is its own neighbour, one process after the other.
  const bool own_neighbour = std::find(walls_away.begin(), walls_away.end(),
                                       Name(isolate::Wall::kScrub)) != walls_away.end();
  if (own_neighbour) {
    facts.push_back("secret=" + Hex(secret));
  } else if (probe.victim) {
    RINGFENCE_ASSIGN(victim, Start(probe, "victim", walls_away, {"secret=" + Hex(secret)}));
    if (victim.trouble.empty()) {
      RINGFENCE_TRY(AwaitReady(victim));
    }
    if (!victim.trouble.empty()) {
      RINGFENCE_TRY(Close(victim));
      Box none;
      none.trouble = victim.trouble;
      return none;
    }
    facts.push_back("victim_lease=" + victim.lease);
    facts.insert(facts.end(), victim.facts.begin(), victim.facts.end());
    if (!probe.victim_ends_before.empty()) {
      RINGFENCE_TRY(Close(victim));
    }
  }
  if (std::find(probe.facts.begin(), probe.facts.end(), "host_port") != probe.facts.end()) {
    // The server's own: where it runs on the node, the host listens there.
    const std::string& server = api_.connection().server;
    facts.push_back("host_port=" + server.substr(server.rfind(':') + 1));
  }
  RINGFENCE_ASSIGN(Box attacker, Start(probe, "attack", walls_away, facts));
  if (attacker.trouble.empty()) {
    RINGFENCE_TRY(AwaitVerdict(attacker));
  }
  RINGFENCE_TRY(Close(victim));
  RINGFENCE_TRY(Close(attacker));
  return attacker;
}

Result<TriedProbe> Prover::Try(const isolate::Probe& probe) {
  TriedProbe tried;
  tried.probe = &probe;
  if (probe.same_gpu && probe.victim_ends_before.empty()) {
    tried.why = "no two leases share a GPU on this node, so there is no such neighbour";
    return tried;
  }
  RINGFENCE_ASSIGN(const Box attack, Round(probe, {}));
  tried.attack = attack.lease;
  tried.why = attack.trouble.empty() ? attack.verdict : attack.trouble;
  if (attack.exit_code != isolate::kProbeHeld || presses_.count() > 0) {
    return tried;  // leaked, or not tried: a control adds nothing
  }
  if (probe.control.empty()) {
    tried.why = "it has no control here";
    return tried;
  }
  std::vector<std::string> walls;
  for (const isolate::Wall wall : probe.control) {
    walls.emplace_back(isolate::Name(wall));
  }
  RINGFENCE_ASSIGN(const Box control, Round(probe, walls));
  tried.control = control.lease;
  tried.control_says = control.trouble.empty() ? control.verdict : control.trouble;
  if (control.exit_code != isolate::kProbeLeaked) {
    tried.why = "its control: " + tried.control_says;
  }
  return tried;
}

}  // namespace ringfence::cli

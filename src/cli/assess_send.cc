// `ringfence assess send`: this node tells its server what checks find on it, once or again and
// again. It speaks with the node's own certificate, so only root or the agent's user can.

#include <thread>

#include "assure/baseline.h"
#include "base/code.h"
#include "base/encoding.h"
#include "cli/assess.h"
#include "cli/assess_fleet.h"
#include "cli/settings.h"
#include "crypto/dsse.h"
#include "gpu/simulated_root.h"
#include "net/client.h"
#include "os/file.h"
#include "os/log.h"
#include "os/signals.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kSeenBytesMax = 300;
constexpr std::size_t kDriftMax = 200;
constexpr std::chrono::seconds kRetry{15};
constexpr std::chrono::seconds kJoinRetry{1};
constexpr Milliseconds kEveryLeast = std::chrono::minutes(1);

// At a character's beginning: JSON holds UTF-8 alone.
std::string Cut(const std::string& text, std::size_t bytes_max) {
  std::size_t size = std::min(text.size(), bytes_max);
  while (size < text.size() && size > 0 &&
         (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U) {
    --size;
  }
  std::string cut = text.substr(0, size);
  if (!IsUtf8(cut)) {
    for (char& c : cut) {
      c = c >= 0x20 && c < 0x7f ? c : '?';
    }
  }
  return cut;
}

struct BaselineWord {
  std::string word = "none";
  JsonArray drift;
};

BaselineWord CompareWithBaseline(const Settings& settings, const Bench& bench) {
  const std::string folder = settings.state();
  const auto text = os::ReadText(folder + "/baseline.json", crypto::kEnvelopeBytesMax + 1);
  const auto key = os::ReadText(folder + "/baseline.pub", 256);
  if (!text.has_value() && text.error().code == Code::kNotFound) {
    return {};
  }
  const auto raw = key.has_value() ? FromBase64(assure::Trim(*key)) : Result<Bytes>(key.error());
  const auto public_key =
      raw.has_value() ? crypto::PublicKey::FromRaw(*raw) : Result<crypto::PublicKey>(raw.error());
  const auto baseline = text.has_value() && public_key.has_value()
                            ? assure::OpenBaseline(*text, *public_key)
                            : Result<assure::Baseline>(Error{Code::kCorrupt, ""});
  if (!baseline.has_value()) {
    return {"refused", {}};
  }
  const auto sight = assure::SeeBaseline(*bench.machine, bench.nvml ? &*bench.nvml : nullptr);
  BaselineWord said{"ok", {}};
  for (const assure::Drift& drift : assure::CompareBaseline(baseline->facts, sight.facts, {})) {
    said.word = "drifted";
    if (said.drift.size() < kDriftMax) {
      said.drift.push_back(JsonObject{{"fact", Cut(drift.fact, 200)},
                                      {"was", Cut(drift.was, 600)},
                                      {"is", Cut(drift.is, 600)}});
    }
  }
  return said;
}

Result<Json> Findings(Invocation& invocation) {
  Bench bench;
  RINGFENCE_TRY(SetUp(invocation, bench));
  const std::string simulated = invocation.settings.state() + "/node/driver";
  if (!bench.nvml && gpu::IsSimulatedRoot(simulated)) {
    bench.nvml = assure::AskNvml(simulated);
  }
  const assure::Assessment assessment =
      assure::Assess(bench.checks, bench.Context(), bench.exceptions);
  JsonArray checks;
  for (const assure::CheckResult& result : assessment.results) {
    checks.push_back(JsonObject{{"id", Cut(result.check->id, 64)},
                                {"title", Cut(result.check->title, 200)},
                                {"class", Cut(result.check->area, 64)},
                                {"result", std::string(Name(result.standing))},
                                {"severity", result.check->severity()},
                                {"seen", Cut(result.why, kSeenBytesMax)}});
  }
  BaselineWord baseline = CompareWithBaseline(invocation.settings, bench);
  return Json(JsonObject{{"score", assessment.score},
                         {"baseline", baseline.word},
                         {"drift", std::move(baseline.drift)},
                         {"checks", std::move(checks)}});
}

// What the node's agent speaks to the server with; only root and the agent's user can read it.
Result<net::ClientOptions> NodeIdentity(const Settings& settings) {
  constexpr std::size_t kBytesMax = 256 * 1024;
  const std::string path = settings.state() + "/node/agent/credentials.json";
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kBytesMax));
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  net::ClientOptions options;
  RINGFENCE_ASSIGN(options.address, reader.String("server", 2048));
  RINGFENCE_ASSIGN(options.ca_pem, reader.String("ca", kBytesMax));
  RINGFENCE_ASSIGN(options.certificate_chain_pem, reader.String("certificate", kBytesMax));
  RINGFENCE_ASSIGN(options.private_key_pem, reader.String("key", kBytesMax));
  if (settings.Given(Setting::kClientServer)) {
    options.address = settings.Text(Setting::kClientServer);  // it has moved since
  }
  return options;
}

Result<std::string> SendOnce(Invocation& invocation) {
  const auto identity = NodeIdentity(invocation.settings);
  if (!identity.has_value()) {
    Error error = identity.error();
    if (error.code == Code::kNotFound) {
      error.hint = "run it on a node that has joined, as root, with its --state DIR";
    }
    return error;
  }
  RINGFENCE_ASSIGN(const Json body, Findings(invocation));
  RINGFENCE_ASSIGN(const auto client, net::Client::Create(*identity));
  RINGFENCE_ASSIGN(const net::Response response, client->Send({.method = "POST",
                                                               .target = "/v1/agent/assessment",
                                                               .body = CanonicalJson(body)}));
  if (response.status >= 300) {
    return net::ErrorFromResponse(response.status, response.body);
  }
  const std::string score = std::to_string(body.at("score").as_int64());
  return "score " + score + ", baseline " + std::string(body.at("baseline").as_string());
}

// Until it is told to stop. What fails is tried again sooner.
int SendForever(Invocation& invocation, Milliseconds every) {
  os::HoldSignals();
  os::SetLogName("assess");
  for (;;) {
    const auto sent = SendOnce(invocation);
    Milliseconds pause = every;
    if (sent.has_value()) {
      os::Log(os::Level::kInfo, "assessed", {{"what", *sent}});
    } else if (sent.error().code == Code::kNotFound) {
      pause = kJoinRetry;  // it has not joined yet
    } else {
      os::Log(os::Level::kWarning, "not_assessed", {{"why", sent.error().message}});
      pause = std::min<Milliseconds>(every, kRetry);
    }
    const auto until = std::chrono::steady_clock::now() + pause;
    while (std::chrono::steady_clock::now() < until) {
      if (os::WaitForSignal(std::chrono::milliseconds(500)) == os::Signal::kStop) {
        return kExitOk;
      }
    }
  }
}

}  // namespace

Result<int> AssessSend(Invocation& invocation) {
  if (const auto text = invocation.parsed.Value("every")) {
    const auto every = ParseDuration(*text);
    if (!every.has_value()) {
      return Prefix("--every", every.error());
    }
    if (*every < kEveryLeast) {
      return Error{Code::kInvalidArgument, "--every: a minute at least", "", "every"};
    }
    return SendForever(invocation, *every);
  }
  RINGFENCE_ASSIGN(const std::string said, SendOnce(invocation));
  if (invocation.console.table()) {
    invocation.console.out() << said << '\n';
  } else {
    invocation.console.Show(JsonObject{{"sent", said}});
  }
  return kExitOk;
}

}  // namespace ringfence::cli

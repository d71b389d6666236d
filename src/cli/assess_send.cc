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
constexpr Milliseconds kWatch = std::chrono::minutes(5);

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
  const assure::Assessment assessment =
      assure::Assess(bench.checks, bench.Context(), bench.exceptions);
  JsonArray checks;
  for (const assure::CheckResult& result : assessment.results) {
    checks.push_back(JsonObject{{"id", Cut(result.check->id, 64)},
                                {"title", Cut(result.check->title, 200)},
                                {"class", Cut(result.check->area, 64)},
                                {"result", std::string(Name(result.standing))},
                                {"severity", result.check->severity()},
                                {"likelihood", result.check->likelihood},
                                {"impact", result.check->impact},
                                {"effort", result.check->effort},
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

Result<net::ClientOptions> NodeIdentityOrHint(const Settings& settings) {
  auto identity = NodeIdentity(settings);
  if (!identity.has_value() && identity.error().code == Code::kNotFound) {
    Error error = identity.error();
    error.hint = "run it on a node that has joined, as root, with its --state DIR";
    return error;
  }
  return identity;
}

Status Send(const net::ClientOptions& identity, const Json& body) {
  RINGFENCE_ASSIGN(const auto client, net::Client::Create(identity));
  RINGFENCE_ASSIGN(const net::Response response, client->Send({.method = "POST",
                                                               .target = "/v1/agent/assessment",
                                                               .body = CanonicalJson(body)}));
  if (response.status >= 300) {
    return net::ErrorFromResponse(response.status, response.body);
  }
  return {};
}

std::string Words(const Json& body) {
  return "score " + std::to_string(body.at("score").as_int64()) + ", baseline " +
         std::string(body.at("baseline").as_string());
}

// What makes it news: results and drift, not the words in which they were seen.
std::string GistOf(const Json& body) {
  std::string gist(body.at("baseline").as_string());
  for (const Json& check : body.at("checks").as_array()) {
    gist += '\n';
    gist += check.at("id").as_string();
    gist += ' ';
    gist += check.at("result").as_string();
  }
  for (const Json& drift : body.at("drift").as_array()) {
    gist += '\n' + CanonicalJson(drift);
  }
  return gist;
}

Result<std::string> SendOnce(Invocation& invocation) {
  RINGFENCE_ASSIGN(const net::ClientOptions identity, NodeIdentityOrHint(invocation.settings));
  RINGFENCE_ASSIGN(const Json body, Findings(invocation));
  RINGFENCE_TRY(Send(identity, body));
  return Words(body);
}

struct Rhythm {
  Milliseconds every{};  // sent, whatever it says
  Milliseconds watch{};  // looked at, and sent when it is news
};

class Watcher {
 public:
  Watcher(Invocation& invocation, Rhythm rhythm) : invocation_(invocation), rhythm_(rhythm) {}

  // The pause until the next look. What fails is tried again sooner.
  Milliseconds Look() {
    const auto sent = SendNews();
    if (sent.has_value()) {
      if (!sent->empty()) {
        os::Log(os::Level::kInfo, "assessed", {{"what", *sent}});
      }
      return rhythm_.watch;
    }
    if (sent.error().code == Code::kNotFound) {
      return kJoinRetry;  // it has not joined yet
    }
    os::Log(os::Level::kWarning, "not_assessed", {{"why", sent.error().message}});
    return std::min<Milliseconds>(rhythm_.watch, kRetry);
  }

 private:
  // What was sent; nothing where there is no news.
  Result<std::string> SendNews() {
    RINGFENCE_ASSIGN(const net::ClientOptions identity, NodeIdentity(invocation_.settings));
    RINGFENCE_ASSIGN(const Json body, Findings(invocation_));
    std::string gist = GistOf(body);
    const auto now = std::chrono::steady_clock::now();
    if (gist == sent_ && now - sent_at_ < rhythm_.every) {
      return std::string();
    }
    RINGFENCE_TRY(Send(identity, body));
    sent_ = std::move(gist);
    sent_at_ = now;
    return Words(body);
  }

  Invocation& invocation_;
  const Rhythm rhythm_;
  std::string sent_;
  std::chrono::steady_clock::time_point sent_at_{};
};

// Until it is told to stop.
int SendForever(Invocation& invocation, Rhythm rhythm) {
  os::HoldSignals();
  os::SetLogName("assess");
  Watcher watcher(invocation, rhythm);
  for (;;) {
    const auto until = std::chrono::steady_clock::now() + watcher.Look();
    while (std::chrono::steady_clock::now() < until) {
      if (os::WaitForSignal(std::chrono::milliseconds(500)) == os::Signal::kStop) {
        return kExitOk;
      }
    }
  }
}

Result<Milliseconds> SpanOption(const Parsed& parsed, std::string_view name, Milliseconds otherwise,
                                Milliseconds least) {
  const auto text = parsed.Value(name);
  if (!text) {
    return otherwise;
  }
  const auto span = ParseDuration(*text);
  if (!span.has_value()) {
    return Prefix("--" + std::string(name), span.error());
  }
  if (*span < least) {
    return Error{Code::kInvalidArgument,
                 "--" + std::string(name) + ": " + FormatDuration(least) + " at least", "",
                 std::string(name)};
  }
  return *span;
}

}  // namespace

Result<int> AssessSend(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  if (parsed.Has("every")) {
    Rhythm rhythm;
    RINGFENCE_ASSIGN(rhythm.every, SpanOption(parsed, "every", {}, kEveryLeast));
    RINGFENCE_ASSIGN(rhythm.watch, SpanOption(parsed, "watch", std::min(rhythm.every, kWatch),
                                              std::chrono::seconds(1)));
    return SendForever(invocation, rhythm);
  }
  if (parsed.Has("watch")) {
    return Error{Code::kInvalidArgument, "--watch is for --every", "give --every too", "watch"};
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

#include "agent/agent.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "agent/credentials.h"
#include "agent/lease_runner.h"
#include "agent/link.h"
#include "audit/note.h"
#include "base/code.h"
#include "base/encoding.h"
#include "crypto/dsse.h"
#include "crypto/random.h"
#include "isolate/agent_sandbox.h"
#include "net/address.h"
#include "os/failpoint.h"
#include "os/file.h"
#include "os/log.h"
#include "os/notify.h"
#include "os/signals.h"

namespace ringfence::agent {
namespace {

constexpr std::chrono::seconds kReportEvery{5};
constexpr std::chrono::seconds kInventoryEvery{60};
constexpr int kWorkWaitMs = 20000;
constexpr std::size_t kJoinBytesMax = 4096;
constexpr std::size_t kInventoryBytesMax = std::size_t{1} << 20U;

// Which orders are in force, and the thread that fetches them.
struct Node {
  std::string name;
  std::string credentials_path;
  isolate::JailerClient& jailer;
  CredentialHolder& holder;
  LeaseRunner& runner;
  audit::Witness& witness;  // the work thread's, but for seen()
  std::atomic<std::uint64_t> witnessed{0};
  std::atomic<bool> report_now{false};
  bool reported = false;  // the reporting thread's alone
};

Result<crypto::SigningKey> OpenWitnessKey(const std::string& path) {
  const auto text = os::ReadText(path, 256);
  if (text.has_value()) {
    RINGFENCE_ASSIGN(Bytes seed, FromBase64(*text));
    return crypto::SigningKey::FromSeed(SecretBytes(std::move(seed)));
  }
  if (text.error().code != Code::kNotFound) {
    return text.error();
  }
  SecretBytes seed = crypto::RandomSecret(32);
  RINGFENCE_TRY(os::CreateFileDurable(path, AsBytes(Base64(seed.Reveal())), 0600));
  return crypto::SigningKey::FromSeed(std::move(seed));
}

std::string WitnessName(const std::string& node) { return "ringfence.dev/node/" + node; }

Result<Credentials> JoinOrLoad(const AgentOptions& options, isolate::JailerClient& jailer,
                               const std::optional<isolate::AgentJoin>& join,
                               const crypto::SigningKey& witness_key) {
  const std::string path = options.state_folder + "/credentials.json";
  if (join.has_value()) {
    RINGFENCE_ASSIGN(const isolate::JailerHello hello, jailer.Hello());
    RINGFENCE_ASSIGN(const Credentials made, Join(*join, hello,
                                                  audit::VerifierKey(WitnessName(options.node), 4,
                                                                     witness_key.public_key()),
                                                  options.node));
    RINGFENCE_TRY(SaveCredentials(path, made));
    os::Log(os::Level::kInfo, "joined", {{"server", made.server}, {"node", options.node}});
    return made;
  }
  auto loaded = LoadCredentials(path);
  if (!loaded.has_value() && loaded.error().code == Code::kNotFound) {
    return Error{Code::kFailedPrecondition, "this node has not joined a server yet",
                 "on the server: `ringfence node token create " + options.node +
                     "`; here: `ringfence agent --join FILE`"};
  }
  return loaded;
}

std::vector<std::uint16_t> PortsOf(const std::string& servers) {
  std::vector<std::uint16_t> ports;
  const auto addresses = net::ParseAddresses(servers);
  if (addresses.has_value()) {
    for (const net::Address& address : *addresses) {
      ports.push_back(address.port);
    }
  }
  return ports;
}

Status Report(Node& node, Link& link, bool with_inventory) {
  RINGFENCE_ASSIGN(const isolate::JailerHello hello, node.jailer.Hello());
  JsonArray missing;
  for (const std::string& what : hello.missing) {
    missing.emplace_back(what);
  }
  JsonObject body{{"version", RINGFENCE_VERSION},
                  {"starting", !node.reported},
                  {"witnessed", static_cast<std::int64_t>(node.witnessed.load())}};
  if (with_inventory) {
    const auto text = node.jailer.Inventory();
    auto inventory =
        text.has_value() ? ParseJson(*text, kInventoryBytesMax) : Result<Json>(text.error());
    if (inventory.has_value() && inventory->is_object() &&
        inventory->get_object().contains("gpus")) {
      body["inventory"] = std::move(inventory).value();
    } else {
      missing.emplace_back("its GPUs could not be read: " +
                           (text.has_value() ? *text : text.error().message).substr(0, 300));
    }
  }
  body["missing"] = std::move(missing);
  JsonArray boxes;  // after Hello and Inventory: nothing that was started meanwhile is left out
  for (const std::string& lease : node.runner.InHand()) {
    boxes.emplace_back(lease);
  }
  body["boxes"] = std::move(boxes);
  RINGFENCE_TRY(link.Send("POST", "/v1/agent/report", body));
  node.reported = true;
  RINGFENCE_FAILPOINT("agent.reported");
  RINGFENCE_ASSIGN(const auto incidents, node.jailer.Incidents());
  if (!incidents.empty()) {
    JsonArray list;
    for (const std::string& incident : incidents) {
      list.emplace_back(incident);
    }
    RINGFENCE_TRY(link.Send("POST", "/v1/agent/incidents", JsonObject{{"incidents", list}}));
    RINGFENCE_TRY(node.jailer.AckIncidents(static_cast<std::uint32_t>(incidents.size())));
  }
  return {};
}

// Cosigns what is consistent with what was seen before, and says so when it is not.
void Cosign(Node& node, Link& link, JsonReader& order) {
  const auto note = order.String("note", 64 * 1024);
  const auto size = order.Int("size", 0, INT64_MAX);
  const auto from = order.Int("from", 0, INT64_MAX);
  const auto texts = order.Strings("proof", 128, 64);
  if (!note.has_value() || !size.has_value() || !from.has_value() || !texts.has_value()) {
    return;
  }
  if (static_cast<std::uint64_t>(*from) != node.witness.seen().size) {
    node.report_now = true;  // the server does not know yet what we have seen
    return;
  }
  std::vector<Digest> proof;
  for (const std::string& text : *texts) {
    const auto bytes = FromBase64(text);
    Digest digest{};
    if (!bytes.has_value() || bytes->size() != digest.size()) {
      return;
    }
    std::copy(bytes->begin(), bytes->end(), digest.begin());
    proof.push_back(digest);
  }
  const auto line = node.witness.Check(*note, proof, SystemClock().Now());
  node.witnessed = node.witness.seen().size;
  if (!line.has_value() && line.error().code == Code::kUnavailable) {
    // Our own disk: no word against the log. The order comes again.
    os::Log(os::Level::kWarning, "not_cosigned", {{"why", line.error().message}});
    return;
  }
  JsonObject body{{"size", *size}};
  if (line.has_value()) {
    body["line"] = *line;
  } else {
    body["refusal"] = line.error().message.substr(0, 1000);
    os::Log(os::Level::kError, "audit_log_refused", {{"why", line.error().message}});
  }
  const auto sent = link.Send("POST", "/v1/agent/cosignatures", body);
  if (!sent.has_value()) {
    node.report_now = true;
  }
}

void Obey(Node& node, Link& link, const Json& json) {
  auto order = JsonReader::Open(json, "order");
  if (!order.has_value()) {
    return;
  }
  const auto what = order->String("do", 16);
  if (!what.has_value()) {
    return;
  }
  if (*what == "cosign") {
    Cosign(node, link, *order);
    return;
  }
  const auto lease = order->StringOr("lease", "", 64);
  const auto gpus = order->Strings("gpus", 64, 80);
  if (!lease.has_value() || !gpus.has_value()) {
    return;
  }
  if (*what == "start") {
    const auto grant = order->String("grant", crypto::kEnvelopeBytesMax);
    if (grant.has_value()) {
      node.runner.Start(*lease, *grant, *gpus);
    }
  } else if (*what == "end") {
    node.runner.End(*lease, *gpus);
  } else if (*what == "scrub" && !lease->empty()) {
    node.runner.Scrub(*lease, *gpus);
  } else if (*what == "scrub" && !gpus->empty()) {
    const auto since = order->String("since", 32);
    if (since.has_value()) {
      node.runner.ScrubUnleased(*gpus, *since);
    }
  }
}

void Work(Node& node, const std::stop_token& stop) {
  Link link(node.holder);
  std::string version;
  while (!stop.stop_requested()) {
    const auto answer =
        link.Send("GET",
                  "/v1/agent/work?wait_ms=" + std::to_string(version.empty() ? 0 : kWorkWaitMs) +
                      "&version=" + version,
                  {});
    if (!answer.has_value()) {
      os::Log(os::Level::kWarning, "no_orders", {{"why", answer.error().message}});
      Pause(stop, std::chrono::seconds(1));
      version.clear();
      continue;
    }
    auto reader = JsonReader::Open(*answer);
    const auto orders = reader->Array("orders");
    const auto next = reader->String("version", 64);
    if (!orders.has_value() || !next.has_value()) {
      Pause(stop, std::chrono::seconds(1));
      continue;
    }
    for (const Json* order : *orders) {
      Obey(node, link, *order);
    }
    version = *next;
  }
}

void Renewal(Node& node) {
  const Credentials now = node.holder.Get();
  const auto needed = NeedsRenewal(now, SystemClock().Now());
  if (!needed.has_value() || !*needed) {
    return;
  }
  const auto renewed = Renew(now, node.name);
  const Status saved = renewed.has_value() ? SaveCredentials(node.credentials_path, *renewed)
                                           : Status(renewed.error());
  if (!saved.has_value()) {
    os::Log(os::Level::kWarning, "certificate_not_renewed", {{"why", saved.error().message}});
    return;
  }
  node.holder.Set(*renewed);
  os::Log(os::Level::kInfo, "certificate_renewed");
}

[[noreturn]] void End(const Status& ended) {
  os::NotifyManager("STOPPING=1");
  os::Log(os::Level::kInfo, "stopping",
          {{"why", ended.has_value() ? "told to" : ended.error().message}});
  // The other threads wait for boxes that the jailer ends after us, or for a server that may be
  // gone. Nothing of theirs needs an orderly end: whatever they were at, the next agent takes up
  // from the jailer's and the server's records, as it would after a crash.
  std::quick_exit(ended.has_value() ? kExitOk : Facts(ended.error().code).exit_status);
}

// Reports until told to stop, or until the jailer is gone; then ends the process.
[[noreturn]] void Tend(Node& node) {
  os::NotifyManager("READY=1");  // a server that is away for now is no reason to start us again
  Link link(node.holder);
  std::optional<std::jthread> work;  // once the server knows that this node has started
  auto next_inventory = std::chrono::steady_clock::now();
  auto next_report = next_inventory;
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_report || node.report_now.exchange(false)) {
      const bool with_inventory = now >= next_inventory;
      const Status reported = Report(node, link, with_inventory);
      if (reported.has_value() && with_inventory) {
        next_inventory = now + kInventoryEvery;
      }
      if (reported.has_value() && !work.has_value()) {
        os::NotifyManager("STATUS=reports to " + node.holder.Get().server);
        work.emplace([&node](const std::stop_token& stop) { Work(node, stop); });
      }
      if (!reported.has_value()) {
        if (!node.jailer.Hello().has_value()) {
          End(Error{Code::kUnavailable, "the jailer ended the pair"});
        }
        os::Log(os::Level::kWarning, "not_reported", {{"why", reported.error().message}});
      }
      next_report = now + (reported.has_value() ? kReportEvery : std::chrono::seconds(1));
      Renewal(node);
    }
    if (os::WaitForSignal(std::chrono::milliseconds(200)) == os::Signal::kStop) {
      End({});
    }
  }
}

}  // namespace

Status Run(const AgentOptions& options) {
  os::SetLogName("agent");
  os::HoldSignals();
  std::optional<isolate::AgentJoin> join;
  if (options.join_fd >= 0) {
    const os::UniqueFd fd(options.join_fd);
    Bytes text(kJoinBytesMax);
    RINGFENCE_ASSIGN(const std::size_t got, os::ReadSome(fd.get(), text));
    RINGFENCE_ASSIGN(join, isolate::ParseAgentJoin(AsText(ByteView(text).first(got))));
  }
  const std::string credentials_path = options.state_folder + "/credentials.json";
  std::string server = options.server.empty() && join.has_value() ? join->server : options.server;
  if (server.empty()) {
    const auto loaded = LoadCredentials(credentials_path);
    server = loaded.has_value() ? loaded->server : "";
  }
  RINGFENCE_TRY(isolate::EnterAgentSandbox({options.state_folder, {}, PortsOf(server)}));

  // At once: whoever waits for the jailer would take its end for a scrub or a start that failed,
  // and tell the server so. The next pair knows better.
  const auto jailer = isolate::JailerClient::Attach(os::UniqueFd(options.jailer_fd), [] {
    End(Error{Code::kUnavailable, "the jailer ended the pair"});
  });
  RINGFENCE_ASSIGN(crypto::SigningKey witness_key,
                   OpenWitnessKey(options.state_folder + "/witness.key"));
  RINGFENCE_ASSIGN(Credentials credentials, JoinOrLoad(options, *jailer, join, witness_key));
  credentials.server = server;
  RINGFENCE_ASSIGN(const audit::NamedKey log_key, audit::ParseVerifierKey(credentials.log_vkey));
  RINGFENCE_ASSIGN(
      audit::Witness witness,
      audit::Witness::Open(options.state_folder + "/witness.state", WitnessName(options.node),
                           std::move(witness_key), log_key));
  CredentialHolder holder(credentials);
  RINGFENCE_TRY(jailer->Hello());
  LeaseRunner runner(*jailer, holder);
  RINGFENCE_TRY(runner.Recover());
  Node node{options.node, credentials_path, *jailer, holder, runner, witness, {}, {}, false};
  node.witnessed = witness.seen().size;
  Tend(node);
}

}  // namespace ringfence::agent

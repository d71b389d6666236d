#include "agent/agent.h"

#include <atomic>

#include "agent/credentials.h"
#include "agent/lease_runner.h"
#include "agent/link.h"
#include "agent/telemetry.h"
#include "audit/note.h"
#include "base/encoding.h"
#include "crypto/dsse.h"
#include "os/failpoint.h"
#include "os/log.h"
#include "os/notify.h"

namespace ringfence::agent {
namespace {

constexpr std::chrono::seconds kReportEvery{5};
constexpr std::chrono::seconds kInventoryEvery{60};
constexpr int kWorkWaitMs = 20000;
constexpr std::size_t kInventoryBytesMax = std::size_t{1} << 20U;

// Which orders are in force, and the thread that fetches them.
struct Node {
  std::string name;
  std::string credentials_path;
  isolate::JailerClient& jailer;
  CredentialHolder& holder;
  Surroundings& surroundings;
  LeaseRunner& runner;
  Telemetry* telemetry;     // null: there is none
  audit::Witness& witness;  // the work thread's, but for seen()
  std::atomic<std::uint64_t> witnessed{0};
  std::atomic<bool> report_now{false};
  // The reporting thread's alone:
  bool reported = false;
  std::string unreadable = {};  // why the last inventory failed; empty: it did not
};

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
      node.unreadable.clear();
    } else {
      node.unreadable = "its GPUs could not be read: " +
                        (text.has_value() ? *text : text.error().message).substr(0, 300);
    }
  }
  if (!node.unreadable.empty()) {
    missing.emplace_back(node.unreadable);
  }
  body["missing"] = std::move(missing);
  JsonArray boxes;  // after Hello and Inventory: nothing that was started meanwhile is left out
  for (const std::string& lease : node.runner.InHand()) {
    boxes.emplace_back(lease);
  }
  body["boxes"] = std::move(boxes);
  if (const auto images = node.jailer.Images(); images.has_value()) {
    JsonArray list;
    for (const isolate::NodeImage& image : *images) {
      JsonArray names;
      for (const std::string& name : image.names) {
        names.emplace_back(name);
      }
      list.push_back(JsonObject{{"digest", image.digest}, {"names", std::move(names)}});
    }
    body["images"] = std::move(list);
  }
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
  const auto line = node.witness.Check(*note, proof, node.surroundings.Now());
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
  } else if (*what == "mig" && gpus->size() == 1) {
    const auto signed_order = order->String("order", crypto::kEnvelopeBytesMax);
    if (signed_order.has_value()) {
      node.runner.Mig(gpus->front(), *signed_order);
    }
  } else if (*what == "end") {
    node.runner.End(*lease, *gpus);
  } else if (*what == "scrub" && !lease->empty()) {
    node.runner.Scrub(*lease, *gpus);
  } else if (*what == "scrub" && !gpus->empty()) {
    node.runner.ScrubUnleased(*gpus);
  }
}

void Work(Node& node, const std::stop_token& stop) {
  Link link(node.surroundings);
  std::string version;
  while (!stop.stop_requested()) {
    node.runner.BeginOrders();
    const auto answer =
        link.Send("GET",
                  "/v1/agent/work?wait_ms=" + std::to_string(version.empty() ? 0 : kWorkWaitMs) +
                      "&version=" + version,
                  {});
    if (!answer.has_value()) {
      os::Log(os::Level::kWarning, "no_orders", {{"why", answer.error().message}});
      node.surroundings.Pause(stop, std::chrono::seconds(1));
      version.clear();
      continue;
    }
    auto reader = JsonReader::Open(*answer);
    const auto orders = reader->Array("orders");
    const auto next = reader->String("version", 64);
    if (!orders.has_value() || !next.has_value()) {
      node.surroundings.Pause(stop, std::chrono::seconds(1));
      continue;
    }
    for (const Json* order : *orders) {
      Obey(node, link, *order);
    }
    version = node.runner.overtaken() ? "" : *next;
  }
}

void Renewal(Node& node, Link& link) {
  const Credentials now = node.holder.Get();
  const auto needed = NeedsRenewal(now, node.surroundings.Now());
  if (!needed.has_value() || !*needed) {
    return;
  }
  const auto renewed = Renew(now, node.name, link.line());
  const Status saved = renewed.has_value() ? SaveCredentials(node.credentials_path, *renewed)
                                           : Status(renewed.error());
  if (!saved.has_value()) {
    os::Log(os::Level::kWarning, "certificate_not_renewed", {{"why", saved.error().message}});
    return;
  }
  node.holder.Set(*renewed);
  os::Log(os::Level::kInfo, "certificate_renewed");
}

// Reports until told to stop, or until the jailer is gone; then ends the process.
[[noreturn]] void Loop(Node& node) {
  os::NotifyManager("READY=1");  // a server that is away for now is no reason to start us again
  Surroundings& around = node.surroundings;
  Link link(around);
  std::unique_ptr<Thread> work;  // once the server knows that this node has started
  auto next_inventory = around.Steady();
  auto next_report = next_inventory;
  std::uint64_t inventories = 0;  // those asked for that were reported
  for (;;) {
    const auto now = around.Steady();
    const std::uint64_t wanted = node.runner.inventories_wanted();
    const bool asked_for = wanted > inventories;
    if (now >= next_report || asked_for || node.report_now.exchange(false)) {
      const bool with_inventory = asked_for || now >= next_inventory;
      const Status reported = Report(node, link, with_inventory);
      if (reported.has_value() && with_inventory && node.unreadable.empty()) {
        inventories = wanted;
        node.runner.InventoryReported(wanted);
      }
      if (reported.has_value() && with_inventory && node.unreadable.empty()) {
        next_inventory = now + kInventoryEvery;
      }
      if (reported.has_value() && work == nullptr) {
        os::NotifyManager("STATUS=reports to " + node.holder.Get().server);
        work = around.Launch([&node](const std::stop_token& stop) { Work(node, stop); });
        if (node.telemetry != nullptr) {
          node.telemetry->Start();
        }
      }
      if (!reported.has_value()) {
        if (!node.jailer.Hello().has_value()) {
          around.Exit(Error{Code::kUnavailable, "the jailer ended the pair"});
        }
        os::Log(os::Level::kWarning, "not_reported", {{"why", reported.error().message}});
      }
      next_report = now + (reported.has_value() ? kReportEvery : std::chrono::seconds(1));
      Renewal(node, link);
    }
    if (around.WaitForStop(std::chrono::milliseconds(200))) {
      around.Exit({});
    }
  }
}

}  // namespace

Status Tend(const NodeParts& parts) {
  LeaseRunner runner(parts.jailer, parts.surroundings);
  RINGFENCE_TRY(runner.Recover());
  std::unique_ptr<Telemetry> telemetry;
  if (!parts.telemetry_folder.empty()) {
    RINGFENCE_ASSIGN(telemetry,
                     Telemetry::Open(parts.telemetry_folder, parts.jailer, parts.surroundings));
  }
  Node node{parts.name, parts.credentials_path, parts.jailer, parts.holder, parts.surroundings,
            runner,     telemetry.get(),        parts.witness};
  node.witnessed = parts.witness.seen().size;
  Loop(node);
}

}  // namespace ringfence::agent

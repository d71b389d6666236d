// `ringfence gpu ...`

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/gpu_map.h"
#include "cli/human.h"
#include "cli/settings.h"

namespace ringfence::cli {
namespace {

std::string ModelText(const Json& gpu) {
  return TextOf(gpu, "model") + (BoolOf(gpu, "simulated") ? " (simulated)" : "") +
         (BoolOf(gpu, "never_run_on_hardware") ? " (never run on hardware)" : "");
}

// "acme/a 16 GiB, acme/b 8 GiB of 141 GiB".
std::string SharesOf(const Json& gpu) {
  std::string text;
  for (const Json& share : ArrayOf(gpu, "shares")) {
    text += (text.empty() ? "" : ", ") + TextOf(share, "tenant") + " " +
            FormatSize(static_cast<std::uint64_t>(IntOf(share, "memory_bytes").value_or(0)));
  }
  if (const auto hidden = IntOf(gpu, "shares_hidden").value_or(0); hidden > 0) {
    text += (text.empty() ? "" : ", ") + std::to_string(hidden) + " that you may not see";
  }
  return text;
}

Result<int> List(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::size_t limit, LimitOf(invocation.parsed, kListMax));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const JsonArray gpus, api->List("/v1/gpus", {}, limit));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(gpus);
    return 0;
  }
  if (gpus.empty()) {
    console.Note("no GPUs: no node has reported any; `ringfence node list` says how they are");
    return 0;
  }
  Table table({"GPU", "NODE", "MODEL", "MEMORY", "STATE", "TENANT", "LEASE", "REASON"});
  for (const Json& gpu : WithSlices(gpus)) {
    const auto memory = IntOf(gpu, "memory_bytes");
    const bool is_slice = !TextOf(gpu, "parent").empty();
    table.Add({(is_slice ? "  " : "") + TextOf(gpu, "uuid"), TextOf(gpu, "node"), ModelText(gpu),
               memory ? FormatSize(static_cast<std::uint64_t>(*memory)) : "", TextOf(gpu, "state"),
               TextOf(gpu, "state") == "shared" ? SharesOf(gpu) : TextOf(gpu, "tenant"),
               TextOf(gpu, "lease"), TextOf(gpu, "reason")});
  }
  table.Print(console);
  return 0;
}

Result<int> Map(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const JsonArray nodes, api->List("/v1/nodes", {}, kListMax));
  RINGFENCE_ASSIGN(const JsonArray gpus, api->List("/v1/gpus", {}, kListMax));
  const JsonObject map = MapOf(nodes, gpus);
  if (!invocation.console.table()) {
    invocation.console.Show(map);
  } else if (nodes.empty()) {
    invocation.console.Note("no node has joined yet");
  } else {
    DrawMap(invocation.console, map, invocation.clock.Now());
  }
  return 0;
}

// "87 %", "312 W of 700 W"; nothing where the card does not say.
void AddReadings(const Json& reading, FactList& facts) {
  const auto number = [&](const char* name) { return IntOf(reading, name); };
  const auto add = [&](const char* label, const char* name, const std::string& unit,
                       std::int64_t divisor = 1) {
    if (const auto value = number(name)) {
      facts.Add(label, std::to_string(*value / divisor) + " " + unit);
    }
  };
  add("Busy", "busy_percent", "%");
  add("SM active", "sm_active_percent", "%");
  add("Tensor active", "tensor_active_percent", "%");
  add("DRAM active", "dram_active_percent", "%");
  if (const auto used = number("memory_used_bytes")) {
    facts.Add("Memory used", FormatSize(static_cast<std::uint64_t>(*used)));
  }
  if (const auto power = number("power_mw")) {
    const auto limit = number("power_limit_mw");
    facts.Add("Power", std::to_string(*power / 1000) + " W" +
                           (limit ? " of " + std::to_string(*limit / 1000) + " W" : ""));
  }
  add("Temperature", "temperature_c", "°C");
  add("SM clock", "sm_clock_mhz", "MHz");
  add("Memory clock", "memory_clock_mhz", "MHz");
  add("PCIe sent", "pcie_tx_kbps", "MB/s", 1000);
  add("PCIe received", "pcie_rx_kbps", "MB/s", 1000);
  add("NVLink sent", "nvlink_tx_kib", "MiB", 1024);
  add("NVLink received", "nvlink_rx_kib", "MiB", 1024);
  if (const auto corrected = number("ecc_corrected")) {
    facts.Add("ECC errors", std::to_string(*corrected) + " corrected, " +
                                TextOf(reading, "ecc_uncorrected") + " not");
  }
  if (const auto remapped = number("remapped_corrected")) {
    facts.Add("Remapped rows",
              std::to_string(*remapped + number("remapped_uncorrected").value_or(0)) +
                  (number("remap_failed").value_or(0) != 0 ? ", one could not be" : ""));
  }
  for (const Json& process : ArrayOf(reading, "processes")) {
    const std::string lease = TextOf(process, "lease");
    facts.Add("Process", TextOf(process, "pid") + " " + TextOf(process, "name") + ", " +
                             (lease.empty() ? "of no lease" : "lease " + lease));
  }
}

Result<int> Show(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json gpu, api->Get(Target("/v1/gpus", invocation.parsed.Argument(0), "")));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(gpu);
    return 0;
  }
  FactList facts;
  facts.Add("GPU", TextOf(gpu, "uuid"));
  facts.Add("Node", TextOf(gpu, "node"));
  facts.Add("Model", ModelText(gpu));
  if (const std::string parent = TextOf(gpu, "parent"); !parent.empty()) {
    facts.Add("Slice of", parent);
    facts.Add("Profile", TextOf(gpu, "profile"));
    facts.Add("Instance", TextOf(gpu, "gpu_instance") + "/" + TextOf(gpu, "compute_instance"));
  }
  facts.Add("State", TextOf(gpu, "state"));
  for (const auto& [label, name] :
       {std::pair("Fault", "fault"), std::pair("Reason", "reason"), std::pair("Tenant", "tenant"),
        std::pair("Lease", "lease"), std::pair("No readings", "blind"),
        std::pair("Compute partition", "compute_partition"),
        std::pair("Memory partition", "memory_partition")}) {
    if (const std::string text = TextOf(gpu, name); !text.empty()) {
      facts.Add(label, text);
    }
  }
  for (const Json& share : ArrayOf(gpu, "shares")) {
    facts.Add("Share",
              TextOf(share, "tenant") + ", lease " + TextOf(share, "lease") + ", " +
                  TextOf(share, "class") + ", at most " +
                  FormatSize(static_cast<std::uint64_t>(IntOf(share, "memory_bytes").value_or(0))));
  }
  if (const Json* const reading = Field(gpu, "reading")) {
    facts.Add("Read", RelativeTime(TextOf(gpu, "read"), invocation.clock.Now()));
    AddReadings(*reading, facts);
  }
  facts.Print(console);
  if (!TextOf(gpu, "fault").empty()) {
    console.Note("it is not leased until somebody has looked at it and says `ringfence gpu scrub " +
                 TextOf(gpu, "uuid") + "`");
  }
  return 0;
}

Result<int> Scrub(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json gpu,
                   api->Post(Target("/v1/gpus", invocation.parsed.Argument(0), "/scrub"), nullptr,
                             FreshIdempotencyKey()));
  if (!invocation.console.table()) {
    invocation.console.Show(gpu);
    return 0;
  }
  invocation.console.Note("scrub of " + TextOf(gpu, "uuid") + " ordered; it is " +
                          TextOf(gpu, "state") + " until there is a receipt");
  return 0;
}

}  // namespace

CommandTable GpuCommands() {
  OptionSpec limit = LimitOption();
  limit.help = "show at most N";
  return {
      {.path = "gpu list",
       .group = Group::kCluster,
       .summary = "List the GPUs: their state, and whose they are.",
       .options = {limit},
       .examples = {{"ringfence gpu list", "what is free"},
                    {"ringfence gpu list -o json", "with firmware, ECC, MIG and more"}},
       .handler = List},
      {.path = "gpu map",
       .group = Group::kCluster,
       .summary = "Draw the fleet: each node's GPUs, whose they are, and what is wrong with them.",
       .details = "A letter, and on a terminal a colour, for each tenant. Nodes that `ringfence "
                  "prove` never found good are marked unproven.",
       .examples = {{"ringfence gpu map", "the fleet at a glance"},
                    {"ringfence gpu map -o json", "for a program that draws it itself"}},
       .handler = Map},
      {.path = "gpu show",
       .group = Group::kCluster,
       .summary = "Show one GPU: its state, its fault, and what it measured last.",
       .arguments = {{.name = "GPU",
                      .help = "a GPU's UUID; `ringfence gpu list` shows them",
                      .completes = Completes::kGpu}},
       .examples = {{"ringfence gpu show GPU-5e1d3b0c-0000-0000-0000-000000000001",
                     "power, temperature, errors, and whose processes are on it"}},
       .handler = Show},
      {.path = "gpu scrub",
       .group = Group::kCluster,
       .summary = "Let a quarantined GPU back, or try again to scrub a dirty one.",
       .arguments = {{.name = "GPU",
                      .help = "a GPU's UUID; `ringfence gpu list` shows them",
                      .completes = Completes::kGpu}},
       .examples = {{"ringfence gpu scrub GPU-5e1d3b0c-0000-0000-0000-000000000001",
                     "after its fault was mended"}},
       .handler = Scrub},
  };
}

}  // namespace ringfence::cli

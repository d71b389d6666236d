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
  for (const Json& gpu : gpus) {
    const auto memory = IntOf(gpu, "memory_bytes");
    table.Add({TextOf(gpu, "uuid"), TextOf(gpu, "node"),
               TextOf(gpu, "model") + (BoolOf(gpu, "simulated") ? " (simulated)" : ""),
               memory ? FormatSize(static_cast<std::uint64_t>(*memory)) : "", TextOf(gpu, "state"),
               TextOf(gpu, "tenant"), TextOf(gpu, "lease"), TextOf(gpu, "reason")});
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
      {.path = "gpu scrub",
       .group = Group::kCluster,
       .summary = "Try again to scrub a GPU that is quarantined or dirty.",
       .arguments = {{.name = "GPU",
                      .help = "a GPU's UUID; `ringfence gpu list` shows them",
                      .completes = Completes::kGpu}},
       .examples = {{"ringfence gpu scrub GPU-5e1d3b0c-0000-0000-0000-000000000001",
                     "after its fault was mended"}},
       .handler = Scrub},
  };
}

}  // namespace ringfence::cli

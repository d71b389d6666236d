// `ringfence node ...`

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/settings.h"

namespace ringfence::cli {
namespace {

Result<int> List(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::size_t limit, LimitOf(invocation.parsed, kListMax));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const JsonArray nodes, api->List("/v1/nodes", {}, limit));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(nodes);
    return 0;
  }
  if (nodes.empty()) {
    console.Note("no nodes yet; `ringfence node token create NAME` lets one join");
    return 0;
  }
  const Timestamp now = invocation.clock.Now();
  Table table({"NODE", "STATE", "GPUS", "DRIVER", "LAST SEEN", "MISSING"});
  for (const Json& node : nodes) {
    table.Add({TextOf(node, "name"), TextOf(node, "state"),
               TextOf(node, "gpus") + (BoolOf(node, "simulated") ? " (simulated)" : ""),
               TextOf(node, "driver_version"), RelativeTime(TextOf(node, "last_seen"), now),
               JoinOf(node, "missing", "; ")});
  }
  table.Print(console);
  return 0;
}

// "gpu held 2 hours ago", or that nobody has tried.
std::string ProvedText(const Json& proofs, Timestamp now) {
  const Json* const classes = Field(proofs, "classes");
  const Json* const whole = classes == nullptr ? nullptr : Field(*classes, "gpu");
  if (whole == nullptr) {
    return "never: `ringfence prove` does it";
  }
  return "class gpu " + TextOf(*whole, "grade") + ", " + RelativeTime(TextOf(proofs, "time"), now) +
         " (" + TextOf(*whole, "held") + " held, " + TextOf(*whole, "leaked") + " leaked, " +
         TextOf(*whole, "untried") + " could not be tried)";
}

Result<int> Show(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const Json node,
                   api->Get(Target("/v1/nodes", invocation.parsed.Argument(0), "")));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(node);
    return 0;
  }
  const Timestamp now = invocation.clock.Now();
  FactList facts;
  facts.Add("Node", TextOf(node, "name"));
  facts.Add("State", TextOf(node, "state"));
  for (const Json& missing : ArrayOf(node, "missing")) {
    facts.Add("Missing", missing.is_string() ? std::string(missing.get_string()) : "");
  }
  facts.Add("GPUs", TextOf(node, "gpus") + (BoolOf(node, "simulated") ? " (simulated)" : ""));
  facts.Add("Driver", TextOf(node, "driver_version"));
  facts.Add("Kernel driver", TextOf(node, "kernel_driver"));
  facts.Add("Library", TextOf(node, "library_digest"));
  facts.Add("Version", TextOf(node, "version"));
  facts.Add("Joined", RelativeTime(TextOf(node, "joined"), now));
  facts.Add("Last seen", RelativeTime(TextOf(node, "last_seen"), now));
  facts.Add("Certificate ends", RelativeTime(TextOf(node, "certificate_expires"), now));
  facts.Add("Receipt key", TextOf(node, "receipt_key"));
  facts.Add("Witness", TextOf(node, "witness"));
  const auto proofs = api->Get(Target("/v1/nodes", TextOf(node, "name"), "/proofs"));
  if (proofs.has_value()) {
    facts.Add("Proved", ProvedText(*proofs, now));
  }
  facts.Add("Witnessed", TextOf(node, "witnessed_size"));
  facts.Print(console);
  return 0;
}

Result<int> CreateToken(Invocation& invocation) {
  JsonObject request{{"node", invocation.parsed.Argument(0)}};
  if (const auto text = invocation.parsed.Value("ttl")) {
    const auto time = ParseDuration(*text);
    if (!time.has_value()) {
      return Prefix("--ttl", time.error());
    }
    request["ttl_ms"] = static_cast<std::int64_t>(time->count());
  }
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  const Json body(std::move(request));
  RINGFENCE_ASSIGN(const Json token, api->Post("/v1/node-tokens", &body, FreshIdempotencyKey()));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(token);
    return 0;
  }
  console.Note("for node " + TextOf(token, "node") + ", good once, until " +
               TextOf(token, "expires") + "; it is not shown again:");
  console.out() << TextOf(token, "token") << '\n';
  return 0;
}

}  // namespace

CommandTable NodeCommands() {
  OptionSpec limit = LimitOption();
  limit.help = "show at most N";
  return {
      {.path = "node list",
       .group = Group::kCluster,
       .summary = "List the nodes, and whether they can run boxes.",
       .options = {limit},
       .examples = {{"ringfence node list", "which nodes are ready"}},
       .handler = List},
      {.path = "node show",
       .group = Group::kCluster,
       .summary = "Show a node: state, driver, keys, what it lacks.",
       .arguments = {{.name = "NODE",
                      .help = "a node's name; `ringfence node list` shows them",
                      .completes = Completes::kNode}},
       .examples = {{"ringfence node show n1", "why a node is not ready"}},
       .handler = Show},
      {.path = "node token create",
       .group = Group::kCluster,
       .summary = "Make a one-time token with which a node joins.",
       .options = {{.name = "ttl", .value = "TIME", .help = "good for so long, as 1h"}},
       .arguments = {{.name = "NODE", .help = "the only name that it may join as"}},
       .examples = {{"(umask 077; ringfence node token create n2 --ttl 1h > join-token)",
                     "let n2 join within the hour"}},
       .handler = CreateToken},
  };
}

}  // namespace ringfence::cli

// `ringfence lease ...`

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/follow.h"
#include "cli/human.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "model/share_request.h"
#include "os/interrupts.h"

namespace ringfence::cli {
namespace {

std::string Simulated(const Json& value) { return BoolOf(value, "simulated") ? "(simulated)" : ""; }

std::string GpuCount(const Json& lease) {
  const Json* request = Field(lease, "request");
  std::string count = request == nullptr ? "" : TextOf(*request, "gpus");
  if (const Json* slice = Field(lease, "slice"); slice != nullptr) {
    count = TextOf(*slice, "profile");
  }
  return count + (BoolOf(lease, "simulated") ? " (simulated)" : "");
}

std::string Outcome(const Json& lease) {
  std::string text = TextOf(lease, "outcome");
  if (const auto code = IntOf(lease, "exit_code"); code && !text.empty()) {
    text += " " + std::to_string(*code);
  }
  return text;
}

Result<int> List(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  RINGFENCE_ASSIGN(const std::size_t limit, LimitOf(parsed));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  const std::string fallback = parsed.Has("all") ? "" : "open";
  RINGFENCE_ASSIGN(const JsonArray leases,
                   api->List("/v1/leases",
                             {{"tenant", parsed.Value("tenant").value_or("")},
                              {"state", parsed.Value("lease-state").value_or(fallback)}},
                             limit));
  Console& console = invocation.console;
  if (!console.table()) {
    console.Show(leases);
    return 0;
  }
  if (leases.empty()) {
    console.Note(
        fallback.empty() || parsed.Has("lease-state")
            ? "no such leases; `ringfence run` makes one"
            : "no open leases; --all shows those that are over, `ringfence run` makes one");
    return 0;
  }
  Table table({"LEASE", "STATE", "TENANT", "PRINCIPAL", "GPUS", "NODE", "OUTCOME", "CREATED"});
  const Timestamp now = invocation.clock.Now();
  for (const Json& lease : leases) {
    const Json* request = Field(lease, "request");
    const std::string place = TextOf(lease, "queue_position");
    table.Add({TextOf(lease, "id"), TextOf(lease, "state") + (place.empty() ? "" : " #" + place),
               request == nullptr ? "" : TextOf(*request, "tenant"), TextOf(lease, "principal"),
               GpuCount(lease), TextOf(lease, "node"), Outcome(lease),
               RelativeTime(TextOf(lease, "created"), now)});
  }
  table.Print(console);
  return 0;
}

std::string CommandLine(const Json& request) { return JoinOf(request, "command", " "); }

void ShowSteps(Console& console, const Json& lease, Timestamp now) {
  console.out() << console.Bold("Steps:") << '\n';
  Table table({"  STATE", "TIME", "", "REASON"});
  for (const Json& step : ArrayOf(lease, "steps")) {
    const std::string time = TextOf(step, "time");
    table.Add(
        {"  " + TextOf(step, "state"), time, RelativeTime(time, now), TextOf(step, "reason")});
  }
  table.Print(console);
}

void ShowDenied(Console& console, const Json& lease) {
  const Json* denied = Field(lease, "denied");
  if (denied == nullptr) {
    return;
  }
  FactList facts;
  facts.Add("Denied", TextOf(*denied, "packets") + " packets, by the firewall");
  facts.Print(console);
  Table table({"  TO", "PORT", "PACKETS"});
  for (const Json& flow : ArrayOf(*denied, "flows")) {
    table.Add({"  " + TextOf(flow, "to"), TextOf(flow, "protocol") + "/" + TextOf(flow, "port"),
               TextOf(flow, "packets")});
  }
  if (!table.empty()) {
    table.Print(console);
  }
}

void ShowReceipts(Console& console, const Json& receipts) {
  for (const Json& item : ArrayOf(receipts, "items")) {
    const Json* receipt = Field(item, "receipt");
    if (receipt == nullptr) {
      continue;
    }
    if (const Json* const share = Field(*receipt, "share")) {
      const auto neighbours = IntOf(*share, "neighbours").value_or(0);
      FactList line;
      line.Add(
          "Shared",
          TextOf(*share, "gpu") + " with " + Count(ArrayOf(*share, "leases").size(), "lease") +
              " since it was last scrubbed" +
              (neighbours == 0 ? ""
                               : "; not scrubbed: " +
                                     Count(static_cast<std::uint64_t>(neighbours), "neighbour") +
                                     " still on the card"));
      line.Print(console);
    }
    for (const Json& gpu : ArrayOf(*receipt, "gpus")) {
      const auto bytes = [&](std::string_view name) {
        return FormatSize(
            static_cast<std::uint64_t>(std::max<std::int64_t>(0, IntOf(gpu, name).value_or(0))));
      };
      FactList line;
      const std::string profile = TextOf(gpu, "profile");
      std::string text =
          TextOf(gpu, "uuid") +
          (profile.empty() ? "" : " (" + profile + " of " + TextOf(gpu, "parent") + ")") +
          ": scrubbed " + bytes("reached_bytes") + " of " + bytes("memory_bytes") + ", residue " +
          bytes("residue_bytes");
      if (const Json* chip = Field(gpu, "on_chip"); chip != nullptr) {
        text += ", on-chip memory of " +
                std::to_string(IntOf(*chip, "multiprocessors_reached").value_or(0)) + " of " +
                std::to_string(IntOf(*chip, "multiprocessors").value_or(0)) + " multiprocessors";
      }
      if (IntOf(gpu, "mismatch_bytes").value_or(0) != 0) {
        text += ", NOT CLEAN: " + bytes("mismatch_bytes") + " read back wrong";
      }
      text += ", receipt " + TextOf(item, "id");
      line.Add("Scrub", text + (BoolOf(*receipt, "simulated") ? " (simulated)" : ""));
      line.Print(console);
    }
  }
}

Result<int> Show(Invocation& invocation) {
  const std::string id = invocation.parsed.Argument(0);
  Console& console = invocation.console;
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  Presses presses;
  RINGFENCE_ASSIGN(const Json lease,
                   invocation.parsed.Has("wait")
                       ? WaitUntilOver(*api, console, presses, id, std::chrono::hours(24))
                       : api->Get(Target("/v1/leases", id, "")));
  if (!console.table()) {
    console.Show(lease);
    return 0;
  }
  const Timestamp now = invocation.clock.Now();
  const Json* request = Field(lease, "request");
  const auto when = [&](std::string_view name) {
    const std::string time = TextOf(lease, name);
    return time.empty() ? "" : RelativeTime(time, now) + " (" + time + ")";
  };
  FactList facts;
  facts.Add("Lease", TextOf(lease, "id"));
  facts.Add("State",
            TextOf(lease, "state") + (BoolOf(lease, "end_requested") ? " (end requested)" : ""));
  facts.Add("In the queue", TextOf(lease, "queue_position"));
  facts.Add("Outcome", Outcome(lease));
  facts.Add("Reason", TextOf(lease, "reason"));
  facts.Add("Principal", TextOf(lease, "principal"));
  if (request != nullptr) {
    facts.Add("Tenant", TextOf(*request, "tenant"));
    facts.Add("Runtime", TextOf(*request, "runtime"));
    facts.Add("Command", CommandLine(*request));
    const auto memory = IntOf(*request, "memory_bytes");
    const auto timeout = IntOf(*request, "timeout_ms");
    const auto cpus = IntOf(*request, "cpu_millis");
    facts.Add("Memory", memory ? FormatSize(static_cast<std::uint64_t>(*memory)) : "");
    facts.Add("CPUs",
              cpus ? std::to_string(*cpus / 1000) + "." + std::to_string(*cpus % 1000 / 100) : "");
    facts.Add("Timeout", timeout ? FormatDuration(Milliseconds(*timeout)) : "");
  }
  if (const Json* const share = request == nullptr ? nullptr : Field(*request, "share")) {
    const auto isolation = model::ParseIsolationClass(TextOf(*share, "class"));
    facts.Add(
        "Share",
        TextOf(*share, "class") + ", " +
            FormatSize(static_cast<std::uint64_t>(IntOf(*share, "memory_bytes").value_or(0))) +
            " of the GPU's memory");
    if (isolation.has_value()) {
      facts.Add("Memory cap", std::string(model::CapEnforcedBy(*isolation)));
    }
  }
  facts.Add("Node", TextOf(lease, "node"));
  const std::string gpus = JoinOf(lease, "gpus");
  facts.Add("GPUs", gpus.empty() ? "" : gpus + " " + Simulated(lease));
  if (const Json* slice = Field(lease, "slice"); slice != nullptr) {
    facts.Add("Slice", TextOf(*slice, "profile") + " of " + TextOf(*slice, "parent"));
  }
  facts.Add("Image", TextOf(lease, "image"));
  facts.Add("Created", when("created"));
  facts.Add("Started", when("started"));
  facts.Add("Ended", when("ended"));
  facts.Print(console);
  ShowSteps(console, lease, now);
  ShowDenied(console, lease);
  if (!ArrayOf(lease, "receipts").empty()) {
    RINGFENCE_ASSIGN(const Json receipts, api->Get(Target("/v1/leases", id, "/receipts")));
    ShowReceipts(console, receipts);
  }
  return 0;
}

Result<int> End(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  JsonArray ended;
  Status first;  // what went wrong; the others are ended all the same
  for (const std::string& id : invocation.parsed.arguments) {
    auto lease = api->Post(Target("/v1/leases", id, "/end"), nullptr);
    if (!lease.has_value()) {
      if (!first.has_value()) {
        invocation.console.Failure(lease.error());
      } else {
        first = lease.error();
      }
      continue;
    }
    if (invocation.console.table()) {
      invocation.console.Note("lease " + id + " is " + TextOf(*lease, "state"));
    }
    ended.push_back(std::move(lease).value());
  }
  if (!invocation.console.table()) {
    invocation.console.Show(ended);
  }
  RINGFENCE_TRY(first);
  return 0;
}

Result<int> Logs(Invocation& invocation) {
  RINGFENCE_ASSIGN(Connection connection, Connect(invocation.settings));
  Presses presses;
  RINGFENCE_ASSIGN(const auto interrupts, os::Interrupts::Catch(1, [&](int) { presses.Press(); }));
  RINGFENCE_ASSIGN(const auto api, Api::Create(std::move(connection)));
  presses.OnPress([&api] { api->Cancel(); });
  FollowOptions options;
  options.wait = invocation.parsed.Has("follow");
  const auto end =
      Follow(*api, invocation.console, presses, invocation.parsed.Argument(0), options);
  presses.OnPress(nullptr);
  if (!end.has_value()) {
    return end.error();
  }
  return end->left ? kExitInterrupted : end->output_lost ? kExitBrokenPipe : 0;
}

ArgumentSpec LeaseArgument() {
  return {.name = "LEASE",
          .help = "a lease's id; `ringfence lease list` shows them",
          .completes = Completes::kLease};
}

}  // namespace

CommandTable LeaseCommands() {
  ArgumentSpec several = LeaseArgument();
  several.repeated = true;
  return {
      {.path = "lease list",
       .group = Group::kJobs,
       .summary = "List leases, newest first.",
       .options = {{.name = "tenant",
                    .letter = 't',
                    .value = "TENANT",
                    .help = "only of this tenant and below",
                    .completes = Completes::kTenant},
                   {.name = "lease-state",
                    .value = "STATE",
                    .help = "only in this state",
                    .completes = Completes::kWords,
                    .words = "open requested admitted queued placed preparing active ending "
                             "scrubbing closed quarantined"},
                   {.name = "all", .letter = 'a', .help = "also those that are over"},
                   LimitOption()},
       .examples = {{"ringfence lease list", "what runs now"},
                    {"ringfence lease list --all -t acme/research -o json",
                     "everything of a team, for a program"}},
       .handler = List},
      {.path = "lease show",
       .group = Group::kJobs,
       .summary = "Show a lease: who, where, each step, how it ended, what the scrub found.",
       .options = {{.name = "wait", .help = "wait until the lease is over"}},
       .arguments = {LeaseArgument()},
       .examples = {{"ringfence lease show lease-7k3m9q2x4abc", "its whole story"}},
       .handler = Show},
      {.path = "lease end",
       .group = Group::kJobs,
       .summary = "End a lease: stop its job, and scrub its GPUs.",
       .arguments = {several},
       .examples = {{"ringfence lease end lease-7k3m9q2x4abc", "stop one job"}},
       .handler = End},
      {.path = "lease logs",
       .group = Group::kJobs,
       .summary = "Print a job's output.",
       .options = {{.name = "follow", .letter = 'f', .help = "go on until the job has ended"}},
       .arguments = {LeaseArgument()},
       .examples = {{"ringfence lease logs -f lease-7k3m9q2x4abc", "follow a detached job"}},
       .handler = Logs},
  };
}

}  // namespace ringfence::cli

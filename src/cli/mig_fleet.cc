// `ringfence mig apply|show`: MIG of the fleet's GPUs.

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/mig.h"
#include "cli/settings.h"
#include "gpu/mig_reshape.h"
#include "os/file.h"
#include "place/mig_parted.h"
#include "wire/yaml.h"

namespace ringfence::cli {
namespace {

constexpr std::chrono::milliseconds kLookAgain{250};

bool IsOpen(const Json& view) {
  const Json* const order = Field(view, "order");
  return order != nullptr &&
         (TextOf(*order, "state") == "ordered" || TextOf(*order, "state") == "applying");
}

// "multi-tenant" of the board, a layout, a file's layout for this GPU, or off.
Result<std::string> AimOf(const Parsed& parsed, const Json& gpu) {
  if (parsed.Has("off")) {
    return std::string("off");
  }
  const std::string board_name = TextOf(gpu, "board");
  if (board_name.empty()) {
    return Error{Code::kFailedPrecondition,
                 TextOf(gpu, "uuid") + " (" + TextOf(gpu, "model") +
                     ") is no board that Ringfence can cut, or its driver has no MIG",
                 "`ringfence mig boards` lists those that can be"};
  }
  RINGFENCE_ASSIGN(const gpu::MigBoard* board, gpu::FindMigBoard(board_name));
  const auto index = static_cast<std::uint32_t>(IntOf(gpu, "index").value_or(0));
  const auto wishes = MigWishes(parsed, *board, index);
  if (!wishes.has_value() && parsed.Has("file") &&
      wishes.error().code == Code::kFailedPrecondition) {
    return std::string("off");  // what the file says of this board
  }
  if (!wishes.has_value()) {
    return wishes.error();
  }
  return gpu::FormatMigAim({true, *wishes});
}

Result<JsonArray> Chosen(Api& api, const Parsed& parsed) {
  RINGFENCE_ASSIGN(const JsonArray all, api.List("/v1/mig", {}, kListMax));
  const std::string wanted = parsed.Argument(0);
  const std::string node = parsed.Value("node").value_or("");
  if (wanted.empty() != parsed.Has("all") || (parsed.Has("all") && node.empty())) {
    return Error{Code::kInvalidArgument, "name one GPU, or --node NODE --all",
                 "`ringfence mig show` lists the GPUs"};
  }
  JsonArray chosen;
  for (const Json& gpu : all) {
    const bool there = node.empty() || TextOf(gpu, "node") == node;
    if (there &&
        (wanted.empty() || TextOf(gpu, "uuid") == wanted || TextOf(gpu, "index") == wanted)) {
      chosen.push_back(gpu);
    }
  }
  if (chosen.empty()) {
    return Error{Code::kNotFound,
                 wanted.empty() ? "node " + node + " has no GPU" : "no GPU " + wanted,
                 "`ringfence mig show` lists the GPUs, with node and index"};
  }
  if (!wanted.empty() && chosen.size() > 1) {
    return Error{Code::kInvalidArgument,
                 "several nodes have a GPU " + wanted + ", among them " +
                     TextOf(chosen[0], "node") + " and " + TextOf(chosen[1], "node"),
                 "name the node: --node " + TextOf(chosen[0], "node"), "node"};
  }
  return chosen;
}

void AddRows(const Json& gpu, Table& table) {
  const Json* const order = Field(gpu, "order");
  const std::string pending =
      !IsOpen(gpu) ? "" : TextOf(*order, "state") + ": " + TextOf(*order, "aim");
  const std::string last = order == nullptr || TextOf(*order, "state") != "failed"
                               ? pending
                               : "failed: " + TextOf(*order, "reason");
  table.Add({TextOf(gpu, "node"), TextOf(gpu, "index"), TextOf(gpu, "uuid"), TextOf(gpu, "board"),
             TextOf(gpu, "mode"), "", TextOf(gpu, "state"), "", last});
  for (const Json& slice : ArrayOf(gpu, "slices")) {
    table.Add({"", "", "  " + TextOf(slice, "uuid"), TextOf(slice, "profile"), "",
               TextOf(slice, "start"), TextOf(slice, "state"), TextOf(slice, "lease"), ""});
  }
}

int ShowAll(Console& console, const JsonArray& gpus) {
  if (!console.table()) {
    console.Show(gpus);
    return 0;
  }
  Table table(
      {"NODE", "INDEX", "GPU", "BOARD/PROFILE", "MODE", "PLACE", "STATE", "LEASE", "ORDER"});
  for (const Json& gpu : gpus) {
    AddRows(gpu, table);
  }
  table.Print(console);
  return 0;
}

Result<int> Show(Invocation& invocation) {
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(JsonArray gpus, api->List("/v1/mig", {}, kListMax));
  const std::string wanted = invocation.parsed.Argument(0);
  JsonArray shown;
  for (const Json& gpu : gpus) {
    if (wanted.empty() || TextOf(gpu, "uuid") == wanted || TextOf(gpu, "index") == wanted) {
      shown.push_back(gpu);
    }
  }
  if (!wanted.empty() && shown.empty()) {
    return Error{Code::kNotFound, "no GPU " + wanted, "`ringfence mig show` lists them"};
  }
  return ShowAll(invocation.console, shown);
}

Result<Json> WaitFor(Api& api, Json view) {
  while (IsOpen(view)) {
    std::this_thread::sleep_for(kLookAgain);
    RINGFENCE_ASSIGN(view, api.Get(Target("/v1/gpus", TextOf(view, "uuid"), "/mig")));
  }
  return view;
}

std::string Said(const Json& view, bool dry_run) {
  const std::string gpu = TextOf(view, "uuid");
  const Json* const plan = Field(view, "plan");
  if (plan != nullptr && !BoolOf(*plan, "changes") && !IsOpen(view)) {
    return gpu + " is that already: " + TextOf(*plan, "target");
  }
  if (dry_run) {
    return gpu + " would become \"" + TextOf(*plan, "target") + "\"; " +
           Count(ArrayOf(*plan, "removed").size(), "slice") + " would go; nothing was changed";
  }
  const Json* const order = Field(view, "order");
  return gpu + ": " + TextOf(*order, "state") + ", " + TextOf(*order, "aim") +
         (IsOpen(view) ? "; `ringfence mig show` says how it goes" : "");
}

Result<int> Apply(Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  int given = 0;
  for (const char* name : {"strategy", "layout", "file", "off"}) {
    given += parsed.Has(name) ? 1 : 0;
  }
  if (given != 1) {
    return Error{Code::kInvalidArgument, "one of --strategy, --layout, --file and --off is needed",
                 "for instance --strategy multi-tenant, or --layout \"1g.18gb x3, 4g.71gb\""};
  }
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(const JsonArray gpus, Chosen(*api, parsed));
  std::vector<std::pair<std::string, std::string>> aims;  // all of them, before any is ordered
  for (const Json& gpu : gpus) {
    RINGFENCE_ASSIGN(std::string aim, AimOf(parsed, gpu));
    aims.emplace_back(TextOf(gpu, "uuid"), std::move(aim));
  }
  const bool dry_run = parsed.Has("dry-run");
  JsonArray views;
  for (const auto& [uuid, aim] : aims) {
    const Json body = JsonObject{{"aim", aim}, {"dry_run", dry_run}};
    RINGFENCE_ASSIGN(Json view,
                     api->Post(Target("/v1/gpus", uuid, "/mig"), &body, FreshIdempotencyKey()));
    views.push_back(std::move(view));
  }
  bool failed = false;
  for (Json& view : views) {
    const bool ordered = IsOpen(view);
    if (parsed.Has("wait")) {
      RINGFENCE_ASSIGN(view, WaitFor(*api, std::move(view)));
    }
    const Json* const order = Field(view, "order");
    if (ordered && order != nullptr && TextOf(*order, "state") == "failed") {
      failed = true;
      invocation.console.Note(TextOf(view, "uuid") + ": failed: " + TextOf(*order, "reason"));
    } else if (invocation.console.table()) {
      invocation.console.Note(Said(view, dry_run));
    }
  }
  if (!invocation.console.table()) {
    invocation.console.Show(views);
  }
  return failed ? 1 : 0;
}

}  // namespace

CommandTable MigFleetCommands() {
  return {
      {.path = "mig show",
       .group = Group::kCluster,
       .summary = "Show what GPUs are cut into, who holds which slice, and what is ordered.",
       .arguments = {{.name = "GPU",
                      .help = "only this one, by UUID or index",
                      .required = false,
                      .completes = Completes::kGpu}},
       .examples = {{"ringfence mig show", "the fleet"},
                    {"ringfence mig show 0 -o json", "GPU 0, with its last order"}},
       .handler = Show},
      {.path = "mig apply",
       .group = Group::kCluster,
       .summary = "Have a GPU cut into slices, or made whole again.",
       .details =
           "The order is kept by the server and carried out by the GPU's node; until then the GPU\n"
           "is not leased. Slices that the layout has a use for stay as they are. Those that go\n"
           "must be free and scrubbed; turning MIG on or off needs a GPU that nobody uses. New\n"
           "slices are scrubbed before they are leased. Where the driver fails half-way, what was\n"
           "there is put back and the order says why. Saying the same again changes nothing.",
       .options = {{.name = "strategy",
                    .value = "NAME",
                    .help = "development, inference or multi-tenant",
                    .completes = Completes::kWords,
                    .words = "development inference multi-tenant"},
                   {.name = "layout", .value = "LAYOUT", .help = "profiles, as in `mig plan`"},
                   {.name = "file",
                    .value = "FILE",
                    .help = "a file of mig-parted",
                    .completes = Completes::kFile},
                   {.name = "selected-config", .value = "NAME", .help = "the layout in --file"},
                   {.name = "off", .help = "turn MIG off"},
                   {.name = "node", .value = "NODE", .help = "the node of the GPU, or of all"},
                   {.name = "all", .help = "every GPU of --node"},
                   {.name = "dry-run", .help = "say what would be done, and do nothing"},
                   {.name = "wait", .help = "until it is done"}},
       .arguments = {{.name = "GPU",
                      .help = "a GPU by UUID or index; none with --all",
                      .required = false,
                      .completes = Completes::kGpu}},
       .examples = {{"ringfence mig apply 0 --strategy multi-tenant --dry-run",
                     "what would happen"},
                    {"ringfence mig apply 0 --layout \"1g.18gb x3, 4g.71gb\" --wait", "cut it"},
                    {"ringfence mig apply --node gpu-7 --all --off", "whole GPUs again"}},
       .exit_codes = "0 ordered (with --wait: done), 1 it failed",
       .handler = Apply},
  };
}

}  // namespace ringfence::cli

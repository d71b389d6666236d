// `ringfence lease hold` and `ringfence cdi ...`: GPUs for the containers of other runtimes.

#include <algorithm>

#include "base/code.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/node_process.h"
#include "cli/presses.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "isolate/cdi_folder.h"
#include "isolate/cdi_spec.h"
#include "isolate/held.h"
#include "os/identity.h"
#include "os/interrupts.h"

namespace ringfence::cli {
namespace {

constexpr Milliseconds kWatchPause{2000};
constexpr std::string_view kHookVersion = "1.0.0";  // of podman's hooks.d

// --- lease hold

Result<Json> HoldRequest(const Invocation& invocation) {
  const Parsed& parsed = invocation.parsed;
  const std::string tenant =
      parsed.Value("tenant").value_or(invocation.settings.Text(Setting::kClientTenant));
  if (tenant.empty()) {
    return Error{Code::kInvalidArgument, "no tenant to hold GPUs for",
                 "name one with -t or RINGFENCE_TENANT; `ringfence tenant list` shows them",
                 "tenant"};
  }
  JsonObject request{{"tenant", tenant}, {"runtime", "cdi"}};
  if (const auto text = parsed.Value("gpus")) {
    const auto count = ParseCount(*text, 1, 64);
    if (!count.has_value()) {
      return Prefix("--gpus", count.error());
    }
    request["gpus"] = *count;
  }
  RINGFENCE_TRY(AddSlice(parsed, request));
  if (const auto text = parsed.Value("timeout")) {
    const auto time = ParseDuration(*text);
    if (!time.has_value()) {
      return Prefix("--timeout", time.error());
    }
    request["timeout_ms"] = static_cast<std::int64_t>(time->count());
  }
  RINGFENCE_ASSIGN(const auto wait, WaitOf(parsed));
  if (wait.has_value()) {
    request["wait_ms"] = wait->count();
  }
  return Json(std::move(request));
}

Result<int> Hold(Invocation& invocation) {
  RINGFENCE_ASSIGN(const Json request, HoldRequest(invocation));
  RINGFENCE_ASSIGN(const auto api, Api::Open(invocation.settings));
  RINGFENCE_ASSIGN(Json lease, api->Post("/v1/leases", &request, FreshIdempotencyKey()));
  const std::string id = TextOf(lease, "id");
  std::string state = TextOf(lease, "state");
  if (state == "queued") {
    invocation.console.Note("lease " + id + " waits: " + TextOf(lease, "reason") +
                            "; `ringfence lease end " + id + "` calls it off");
  } else {
    invocation.console.Progress("lease " + id + " placed on node " + TextOf(lease, "node"));
  }
  while (state == "queued" || state == "placed" || state == "preparing") {
    RINGFENCE_ASSIGN(
        lease, api->Get(Target("/v1/leases", id, "", {{"state", state}, {"wait_ms", "20000"}})));
    state = TextOf(lease, "state");
  }
  if (state != "active") {
    return Error{Code::kFailedPrecondition,
                 "lease " + id + " is not held: " + TextOf(lease, "reason"),
                 "`ringfence lease show " + id + "` has its story"};
  }
  if (!invocation.console.table()) {
    JsonObject shown = lease.as_object();
    shown["device"] = isolate::CdiDeviceName(id);
    invocation.console.Show(shown);
    return kExitOk;
  }
  invocation.console.out() << id << '\n';
  invocation.console.Note("held on node " + TextOf(lease, "node") +
                          "; there: podman run --device " + isolate::CdiDeviceName(id) +
                          " IMAGE; `ringfence lease end " + id + "` gives the GPUs back");
  return kExitOk;
}

// --- cdi sync

std::string HeldPath(const Settings& settings) { return settings.state() + "/node/jailer/cdi"; }

Result<std::string> FolderOf(const Invocation& invocation) {
  const std::string folder =
      invocation.parsed.Value("dir").value_or(invocation.settings.Text(Setting::kNodeCdiDir));
  if (!folder.empty()) {
    return folder;
  }
  return Error{Code::kInvalidArgument, "no folder to keep in step",
               "name it with --dir, such as --dir /etc/cdi, or in the setting node.cdi_dir", "dir"};
}

Result<std::vector<isolate::CdiFile>> SyncOnce(const Invocation& invocation,
                                               const std::string& folder) {
  const std::string path = HeldPath(invocation.settings);
  const auto held = isolate::HeldFolder::Open(path);
  if (!held.has_value()) {
    return held.error().code != Code::kNotFound
               ? held.error()
               : Error{Code::kFailedPrecondition, "no node here holds leases for other runtimes",
                       "start it with the setting node.cdi_dir (--cdi-dir); " + path +
                           " is not there yet"};
  }
  isolate::CdiSync sync;
  sync.folder = folder;
  sync.repair = !invocation.parsed.Has("check");
  sync.still_held = [&held](const std::string& lease) { return held->Find(lease).has_value(); };
  RINGFENCE_ASSIGN(const auto names, held->Names());
  for (const std::string& lease : names) {
    if (!sync.still_held(lease)) {
      continue;
    }
    RINGFENCE_ASSIGN(std::string document, held->Spec(lease));
    sync.wanted.emplace(lease, std::move(document));
  }
  return isolate::SyncCdiFolder(sync);
}

Json ToJson(const std::string& folder, const std::vector<isolate::CdiFile>& files) {
  JsonArray items;
  for (const isolate::CdiFile& file : files) {
    items.push_back(JsonObject{{"name", file.name},
                               {"finding", std::string(Name(file.finding))},
                               {"drift", isolate::IsDrift(file.finding)},
                               {"detail", file.detail}});
  }
  return JsonObject{{"folder", folder}, {"files", std::move(items)}};
}

void Print(Console& console, const std::string& folder,
           const std::vector<isolate::CdiFile>& files) {
  if (files.empty()) {
    console.Note(folder + " holds no documents, and no lease is held here");
    return;
  }
  Table table({"FILE", "FOUND", "DETAIL"});
  for (const isolate::CdiFile& file : files) {
    table.Add({file.name, std::string(Name(file.finding)), file.detail});
  }
  table.Print(console);
}

bool AnyDrift(const std::vector<isolate::CdiFile>& files) {
  return std::any_of(files.begin(), files.end(),
                     [](const isolate::CdiFile& file) { return isolate::IsDrift(file.finding); });
}

Result<int> Watch(Invocation& invocation, const std::string& folder) {
  Presses presses;
  RINGFENCE_ASSIGN(const auto interrupts, os::Interrupts::Catch(1, [&](int) { presses.Press(); }));
  std::string said;  // an error is told once, not every two seconds
  while (presses.count() == 0) {
    const auto files = SyncOnce(invocation, folder);
    if (!files.has_value()) {
      if (said != files.error().message) {
        invocation.console.Failure(files.error());
        said = files.error().message;
      }
    } else {
      said.clear();
      if (AnyDrift(*files)) {
        if (invocation.console.table()) {
          Print(invocation.console, folder, *files);
        } else {
          invocation.console.Show(ToJson(folder, *files));
        }
        invocation.console.out().flush();
      }
    }
    presses.Sleep(kWatchPause, 0);
  }
  return kExitOk;
}

Result<int> Sync(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::string folder, FolderOf(invocation));
  if (!os::IsRoot()) {
    return Error{Code::kPermissionDenied, "only root may look at a node's leases and its folder",
                 "sudo ringfence cdi sync"};
  }
  if (invocation.parsed.Has("watch")) {
    return Watch(invocation, folder);
  }
  RINGFENCE_ASSIGN(const auto files, SyncOnce(invocation, folder));
  if (invocation.console.table()) {
    Print(invocation.console, folder, files);
  } else {
    invocation.console.Show(ToJson(folder, files));
  }
  return invocation.parsed.Has("check") && AnyDrift(files) ? kExitFindings : kExitOk;
}

// --- cdi hook

Result<int> Hook(Invocation& invocation) {
  RINGFENCE_ASSIGN(const std::string hook, OwnPart("ringfence-hook"));
  const JsonObject json{
      {"version", kHookVersion},
      {"hook",
       JsonObject{{"path", hook},
                  {"args", JsonArray{"ringfence-hook", "--held", HeldPath(invocation.settings)}}}},
      {"when", JsonObject{{"always", true}}},
      {"stages", JsonArray{"createRuntime"}}};
  invocation.console.out() << PrettyJson(json) << '\n';
  return kExitOk;
}

}  // namespace

CommandTable CdiCommands() {
  OptionSpec tenant = SettingOption(Setting::kClientTenant, 't');
  tenant.value = "TENANT";
  tenant.help = "tenant to hold them for (default: RINGFENCE_TENANT)";
  tenant.completes = Completes::kTenant;
  return {
      {.path = "lease hold",
       .group = Group::kJobs,
       .summary = "Hold GPUs for containers of podman, Docker or containerd, until `lease end`.",
       .details =
           "The lease has no box: a CDI device of its name appears on its node, and containers\n"
           "that root's runtime starts there with it get the lease's GPUs and no others. When the\n"
           "lease ends, or its time is over, the device goes, those containers are ended, and the\n"
           "GPUs are scrubbed. The node must have the setting node.cdi_dir. Needs lease.hold.",
       .options = {tenant,
                   {.name = "gpus", .letter = 'g', .value = "N", .help = "GPUs (default 1)"},
                   SliceOptions()[0],
                   SliceOptions()[1],
                   {.name = "timeout", .value = "TIME", .help = "end it after 90s, 15m, 2h, ..."},
                   WaitOption()},
       .examples =
           {{"ringfence lease hold -t acme/research/vision --gpus 2 --timeout 8h",
             "two GPUs for a working day; prints the lease's id"},
            {"ringfence lease hold -t acme/web --profile 1g.18gb", "a MIG slice of that profile"},
            {"podman run --device ringfence.dev/lease=$(ringfence lease hold -t acme/web) IMAGE",
             "as root on its node: a container with a lease of its own"}},
       .handler = Hold},
      {.path = "cdi sync",
       .group = Group::kOperate,
       .summary = "Bring a folder of CDI documents in step with this node's leases (root).",
       .details =
           "The jailer keeps the folder of node.cdi_dir in step by itself; this shows what it\n"
           "sees, and does the same for another folder. Documents of held leases are written,\n"
           "those of others removed, and files of somebody else that claim to be leases of ours\n"
           "set aside. Other files are left alone. A folder that others than root can change is\n"
           "refused.",
       .options = {{.name = "dir",
                    .value = "DIR",
                    .help = "the folder (default: the setting node.cdi_dir)",
                    .completes = Completes::kFolder},
                   {.name = "check", .help = "change nothing, only say what is out of step"},
                   {.name = "watch", .help = "go on until Ctrl-C, and tell what was put right"}},
       .examples = {{"ringfence cdi sync --check", "is anything out of step?"},
                    {"ringfence cdi sync --dir /etc/cdi --watch",
                     "a second folder, for a runtime that reads only that one"}},
       .exit_codes = "with --check, 1 when something is out of step",
       .handler = Sync},
      {.path = "cdi hook",
       .group = Group::kOperate,
       .summary = "Print the hook configuration that keeps podman's containers off GPUs.",
       .details = "With it, a container that asks for GPU devices without a lease is refused.",
       .examples = {{"ringfence cdi hook > /etc/containers/oci/hooks.d/ringfence.json",
                     "as root, on a node"}},
       .handler = Hook},
  };
}

}  // namespace ringfence::cli

#include "cli/run.h"

#include <chrono>

#include "cli/commands.h"
#include "cli/fields.h"
#include "cli/human.h"
#include "cli/image_place.h"
#include "cli/retry.h"
#include "cli/settings.h"
#include "model/lease.h"
#include "os/file.h"
#include "os/interrupts.h"

namespace ringfence::cli {
namespace {

constexpr int kPressesHandled = 2;

Error InOption(std::string_view option, Error error) {
  error.field = option;
  return Prefix("--" + std::string(option), std::move(error));
}

Status AddNumbers(const Parsed& parsed, JsonObject& request) {
  if (const auto text = parsed.Value("gpus")) {
    const auto count = ParseCount(*text, 0, 64);
    if (!count.has_value()) {
      return InOption("gpus", count.error());
    }
    request["gpus"] = *count;
  }
  if (const auto text = parsed.Value("memory")) {
    const auto bytes = ParseSize(*text);
    if (!bytes.has_value()) {
      return InOption("memory", bytes.error());
    }
    constexpr std::uint64_t kMost = std::uint64_t{1} << 53U;
    request["memory_bytes"] = static_cast<std::int64_t>(std::min(*bytes, kMost));
  }
  if (const auto text = parsed.Value("cpus")) {
    const auto thousandths = ParseCpus(*text);
    if (!thousandths.has_value()) {
      return InOption("cpus", thousandths.error());
    }
    request["cpu_millis"] = static_cast<std::int64_t>(*thousandths);
  }
  if (const auto text = parsed.Value("pids")) {
    const auto count = ParseCount(*text, model::kPidsMin, model::kPidsMax);
    if (!count.has_value()) {
      return InOption("pids", count.error());
    }
    request["pids"] = *count;
  }
  if (const auto text = parsed.Value("timeout")) {
    const auto time = ParseDuration(*text);
    if (!time.has_value()) {
      return InOption("timeout", time.error());
    }
    request["timeout_ms"] = static_cast<std::int64_t>(time->count());
  }
  RINGFENCE_ASSIGN(const auto wait, WaitOf(parsed));
  if (wait.has_value()) {
    request["wait_ms"] = wait->count();
    request["attended"] = !parsed.Has("detach");
  }
  return {};
}

Status AddSizes(const Parsed& parsed, JsonObject& request) {
  for (const auto& [option, field] :
       {std::pair("shm", "shm_bytes"), {"tmp", "tmp_bytes"}, {"hugepages", "huge_bytes"}}) {
    if (const auto text = parsed.Value(option)) {
      const auto bytes = ParseSize(*text);
      if (!bytes.has_value()) {
        return InOption(option, bytes.error());
      }
      constexpr std::uint64_t kMost = std::uint64_t{1} << 53U;
      request[field] = static_cast<std::int64_t>(std::min(*bytes, kMost));
    }
  }
  return {};
}

// --share CLASS --gpu-memory SIZE
Status AddShare(const Parsed& parsed, JsonObject& request) {
  const auto isolation = parsed.Value("share");
  if (!isolation) {
    return AddSlice(parsed, request);
  }
  const auto memory = parsed.Value("gpu-memory");
  if (!memory) {
    return Error{Code::kInvalidArgument, "--share needs --gpu-memory: how much of the GPU's memory",
                 "such as --share " + *isolation + " --gpu-memory 16GiB", "gpu-memory"};
  }
  const auto bytes = ParseSize(*memory);
  if (!bytes.has_value()) {
    return InOption("gpu-memory", bytes.error());
  }
  constexpr std::uint64_t kMost = std::uint64_t{1} << 53U;
  if (const auto profile = parsed.Value("profile")) {
    request["profile"] = *profile;  // refused with the share, by the server's words
  }
  JsonObject share{{"class", *isolation},
                   {"memory_bytes", static_cast<std::int64_t>(std::min(*bytes, kMost))}};
  request["share"] = std::move(share);
  return {};
}

// NAME:/path[:rw]
Status AddMounts(const Parsed& parsed, JsonObject& request) {
  JsonArray mounts;
  for (const std::string& text : parsed.Values("mount")) {
    const std::size_t colon = text.find(':');
    std::string path = colon == std::string::npos ? "" : text.substr(colon + 1);
    const bool writable = path.ends_with(":rw");
    if (writable) {
      path.resize(path.size() - 3);
    }
    if (colon == 0 || !path.starts_with('/')) {
      return Error{Code::kInvalidArgument, "--mount: \"" + text + "\" is not NAME:/path",
                   "write it as --mount data:/data, with :rw behind it to write there", "mount"};
    }
    mounts.push_back(
        JsonObject{{"name", text.substr(0, colon)}, {"path", path}, {"writable", writable}});
  }
  if (!mounts.empty()) {
    request["mounts"] = std::move(mounts);
  }
  return {};
}

// A folder or tar of this machine is named by its digest from here on; any other is the server's
// to find.
Status ResolveImage(const Settings& settings, Json& request) {
  const std::string text = TextOf(request, "image");
  if (text.empty()) {
    return {};
  }
  const auto source = image::ParseSource(text, os::IsDirectory(text));
  if (!source.has_value()) {
    return source.error().code == Code::kNotFound ? Status() : Status(source.error());
  }
  RINGFENCE_ASSIGN(const isolate::ImagePlace place, ImagePlaceOf(settings));
  RINGFENCE_ASSIGN(const std::string digest, isolate::ResolveImage(place, *source));
  request.get_object()["image"] = digest;
  return {};
}

// The server was reached once, so a failure from now on is a restart to sit out; the key makes
// sure that no second lease comes of it.
Result<Json> AskForLease(Api& api, Console& console, Presses& presses, const Json& request,
                         const FollowOptions& options) {
  const std::string key = FreshIdempotencyKey();
  RINGFENCE_TRY(api.Raw("/healthz"));
  Retry retry(console, options.give_up, options.first_pause);
  bool restarted = false;
  for (;;) {
    auto lease = api.Post("/v1/leases", &request, key);
    restarted = restarted || api.unreachable();
    // A server that has just started must hear of its nodes before it can place anything.
    const bool passing = api.unreachable() || (restarted && !lease.has_value() &&
                                               lease.error().code == Code::kUnavailable);
    if (lease.has_value() || !passing || presses.count() > 0 ||
        !retry.Again(lease.error(), presses, 0)) {
      return lease;
    }
  }
}

// While it is in the queue. Comes back once it is not, or when there is a press or an error: what
// follows the job deals with those.
void WaitInQueue(Api& api, Console& console, const Presses& presses, Json& lease) {
  const std::string id = TextOf(lease, "id");
  std::string told;
  while (TextOf(lease, "state") == "queued" && presses.count() == 0) {
    const std::string text = "lease " + id + " waits, number " + TextOf(lease, "queue_position") +
                             " in the queue: " + TextOf(lease, "reason");
    if (text != told) {
      console.Note(text);
      told = text;
    }
    auto next = api.Get(Target("/v1/leases", id, "", {{"state", "queued"}, {"wait_ms", "20000"}}));
    if (!next.has_value()) {
      return;
    }
    lease = std::move(next).value();
  }
}

void TellPlace(Console& console, const Json& lease) {
  std::string text = "lease " + TextOf(lease, "id");
  if (const std::string node = TextOf(lease, "node"); !node.empty()) {
    text += " placed on node " + node;
  }
  if (const std::string gpus = JoinOf(lease, "gpus"); !gpus.empty()) {
    text += ", " + gpus;
  }
  console.Progress(text + (BoolOf(lease, "simulated") ? " (simulated)" : ""));
}

// What the user should know about an end that is not simply the job's own.
void TellEnd(Console& console, const JobEnd& end, const std::string& id) {
  const std::string reason = end.reason.empty() ? "" : ": " + end.reason;
  if (end.outcome == "timeout") {
    console.Warn("the job ran past its --timeout and was ended" + reason);
  } else if (end.outcome == "oom") {
    console.Warn("the job was ended for want of memory" + reason + " (--memory gives it more)");
  } else if (end.outcome != "exited" && end.outcome != "signalled") {
    console.Warn("the job was not carried through" + reason + " (`ringfence lease show " + id +
                 "` has its story)");
  } else {
    console.Progress("lease " + id + " " + end.outcome + " with code " +
                     std::to_string(end.exit_code.value_or(0)));
  }
}

Result<int> RunHandler(Invocation& invocation) {
  RINGFENCE_ASSIGN(Json request, LeaseRequestOf(invocation.parsed,
                                                invocation.settings.Text(Setting::kClientTenant)));
  RINGFENCE_TRY(ResolveImage(invocation.settings, request));
  RINGFENCE_ASSIGN(Connection connection, Connect(invocation.settings));
  Presses presses;
  // Before the client, so that no thread of its own is there yet to take the signal.
  RINGFENCE_ASSIGN(const auto interrupts,
                   os::Interrupts::Catch(kPressesHandled, [&](int) { presses.Press(); }));
  RINGFENCE_ASSIGN(const auto api, Api::Create(std::move(connection)));
  RunOptions options;
  options.detach = invocation.parsed.Has("detach");
  return RunJob(*api, invocation.console, presses, request, options);
}

}  // namespace

Result<std::optional<Milliseconds>> WaitOf(const Parsed& parsed) {
  const auto text = parsed.Value("wait");
  if (!text) {
    return std::optional<Milliseconds>();
  }
  if (text->empty()) {
    return std::optional<Milliseconds>(model::kWaitMax);
  }
  const auto time = ParseDuration(*text);
  if (!time.has_value()) {
    return InOption("wait", time.error());
  }
  return std::optional<Milliseconds>(*time);
}

Status AddSlice(const Parsed& parsed, JsonObject& request) {
  if (const auto profile = parsed.Value("profile")) {
    request["profile"] = *profile;
  }
  if (const auto text = parsed.Value("gpu-memory")) {
    const auto bytes = ParseSize(*text);
    if (!bytes.has_value()) {
      return InOption("gpu-memory", bytes.error());
    }
    constexpr std::uint64_t kMost = std::uint64_t{1} << 53U;
    request["gpu_memory_bytes"] = static_cast<std::int64_t>(std::min(*bytes, kMost));
  }
  return {};
}

std::vector<OptionSpec> SliceOptions() {
  return {{.name = "profile", .value = "NAME", .help = "a MIG slice of this profile: 1g.18gb, ..."},
          {.name = "gpu-memory",
           .value = "SIZE",
           .help = "the smallest slice with so much GPU memory, else a whole GPU"}};
}

OptionSpec WaitOption() {
  return {.name = "wait",
          .value = "TIME",
          .help = "if there is no room now, wait for it, in the order of asking (at most 7d)",
          .may_be_bare = true};
}

Result<Json> LeaseRequestOf(const Parsed& parsed, const std::string& default_tenant) {
  JsonObject request;
  const std::string tenant = parsed.Value("tenant").value_or(default_tenant);
  if (tenant.empty()) {
    return Error{Code::kInvalidArgument, "no tenant to run for",
                 "name one with -t or RINGFENCE_TENANT; `ringfence tenant list` shows them", "run"};
  }
  request["tenant"] = tenant;
  RINGFENCE_TRY(AddNumbers(parsed, request));
  RINGFENCE_TRY(AddSizes(parsed, request));
  RINGFENCE_TRY(AddMounts(parsed, request));
  RINGFENCE_TRY(AddShare(parsed, request));
  if (const auto devices = parsed.Values("device"); !devices.empty()) {
    JsonArray& wanted = request["devices"].emplace_array();
    for (const std::string& device : devices) {
      wanted.emplace_back(device);
    }
  }
  if (const auto image = parsed.Value("image")) {
    request["image"] = *image;
  }
  if (const auto exception = parsed.Value("exception")) {
    request["exception"] = *exception;
  }
  JsonObject environment;
  for (const std::string& pair : parsed.Values("env")) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{Code::kInvalidArgument, "--env: \"" + pair + "\" is not NAME=VALUE",
                   "write it as --env EPOCHS=3", "env"};
    }
    environment[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  if (!environment.empty()) {
    request["env"] = std::move(environment);
  }
  JsonArray command;
  for (const std::string& word : parsed.trailing) {
    command.emplace_back(word);
  }
  request["command"] = std::move(command);
  return Json(std::move(request));
}

Result<Json> WaitUntilOver(Api& api, Console& console, Presses& presses, const std::string& lease,
                           Milliseconds longest) {
  const auto until = std::chrono::steady_clock::now() + longest;
  Retry retry(console, std::chrono::seconds(60), Milliseconds(250));
  std::string state;
  for (;;) {
    auto answer =
        api.Get(Target("/v1/leases", lease, "",
                       {{"state", state}, {"wait_ms", state.empty() ? std::string() : "20000"}}));
    if (!answer.has_value()) {
      if (presses.count() == 0 && Retry::Helps(answer.error()) &&
          retry.Again(answer.error(), presses, 0)) {
        continue;
      }
      return answer;
    }
    retry.Worked();
    state = TextOf(*answer, "state");
    if (state == "closed" || state == "quarantined" || std::chrono::steady_clock::now() >= until) {
      return answer;
    }
  }
}

Result<int> RunJob(Api& api, Console& console, Presses& presses, const Json& request,
                   const RunOptions& options) {
  const auto run = [&]() -> Result<int> {
    // Not cut short by a press: an answer that nobody waits for would be a job that nobody ends.
    RINGFENCE_ASSIGN(Json lease, AskForLease(api, console, presses, request, options.follow));
    const std::string id = TextOf(lease, "id");
    presses.OnPress([&api] { api.Cancel(); });
    if (!options.detach) {
      WaitInQueue(api, console, presses, lease);
    }
    TellPlace(console, lease);
    if (options.detach) {
      if (console.table()) {
        console.out() << id << '\n';
      } else {
        console.Show(lease);
      }
      return 0;
    }
    FollowOptions follow = options.follow;
    follow.all_to_stderr = !console.table();
    RINGFENCE_ASSIGN(JobEnd end, Follow(api, console, presses, id, follow));
    if (end.left || end.output_lost) {
      console.Warn("lease " + id + " is left to itself; `ringfence lease show " + id +
                   "` tells how it goes");
      return end.left ? kExitInterrupted : kExitBrokenPipe;
    }
    if (!console.table()) {
      RINGFENCE_ASSIGN(const Json final,
                       WaitUntilOver(api, console, presses, id, options.close_wait));
      console.Show(final);
    }
    TellEnd(console, end, id);
    if (presses.count() > 0 && !end.exit_code) {
      return kExitInterrupted;
    }
    return JobExitStatus(end.outcome, end.exit_code);
  };
  auto status = run();
  presses.OnPress(nullptr);
  if (!status.has_value() && presses.count() > 0) {
    console.Failure(status.error());
    return kExitInterrupted;
  }
  return status;
}

CommandTable RunCommands() {
  OptionSpec tenant = SettingOption(Setting::kClientTenant, 't');
  tenant.value = "TENANT";
  tenant.help = "tenant to run for (default: RINGFENCE_TENANT)";
  tenant.completes = Completes::kTenant;
  return {{
      .path = "run",
      .group = Group::kJobs,
      .summary = "Run a job on GPUs of a tenant, and follow it to its end.",
      .details =
          "Asks for a lease, starts COMMAND in a box that sees exactly the leased GPUs, and shows\n"
          "its output as it comes. Ctrl-C ends the lease; a second one leaves it to itself. The\n"
          "server may be restarted meanwhile. With -o json the job's output goes to standard\n"
          "error, and the final lease to standard output once its GPUs are scrubbed.",
      .options =
          {tenant,
           {.name = "gpus", .letter = 'g', .value = "N", .help = "GPUs (default 1)"},
           SliceOptions()[0],
           SliceOptions()[1],
           {.name = "share",
            .value = "CLASS",
            .help = "share a GPU: time, taking turns with whom policy lets be there; with "
                    "--gpu-memory, above which a job is ended",
            .completes = Completes::kWords,
            .words = "time"},
           {.name = "timeout", .value = "TIME", .help = "end it after 90s, 15m, 2h, ..."},
           WaitOption(),
           {.name = "memory", .letter = 'm', .value = "SIZE", .help = "512M, 4G, ..."},
           {.name = "cpus", .value = "N", .help = "cores, as 2 or 1.5"},
           {.name = "pids", .value = "N", .help = "most processes and threads"},
           {.name = "env",
            .letter = 'e',
            .value = "NAME=VALUE",
            .help = "variable for the job; may be given again",
            .repeated = true},
           {.name = "image",
            .value = "REF",
            .help = "make the box of this image: a name, a digest, or a local folder or tar",
            .completes = Completes::kFile},
           {.name = "mount",
            .value = "NAME:/path",
            .help = "folder of the node by its name there; :rw to write; may be given again",
            .repeated = true},
           {.name = "shm", .value = "SIZE", .help = "most in /dev/shm (default: half --memory)"},
           {.name = "tmp", .value = "SIZE", .help = "most in /tmp and in the home folder each"},
           {.name = "hugepages", .value = "SIZE", .help = "huge pages (default: none)"},
           {.name = "device",
            .value = "KIND",
            .help = "rdma or imex, where policy lets them in; may be given again",
            .repeated = true},
           {.name = "exception",
            .value = "NAME",
            .help = "use an Exception of the policy: host_network, host_pid; each use is audited"},
           {.name = "detach",
            .letter = 'd',
            .help = "print the lease's id and return, leaving the job running"}},
      .takes_command = true,
      .examples =
          {{"ringfence run -t acme/research/vision -- nvidia-smi -L", "which GPUs the job sees"},
           {"ringfence run -t acme/research/vision --gpus 2 --timeout 2h --memory 16G -e "
            "EPOCHS=3 --wait=1h -- python3 train.py",
            "two GPUs for two hours; if they are not free, in the queue for at most one"},
           {"ringfence run -t acme/research/vision --profile 1g.18gb -- python3 infer.py",
            "a MIG slice of a GPU that is cut; `gpu list` shows which there are"},
           {"ringfence run -t acme/research/vision --image acme/train:7 --mount data:/data -- "
            "python3 train.py",
            "in an image of the node, with a folder of it"},
           {"ringfence run -t acme/research/vision --profile 1g.18gb --detach -- python3 infer.py",
            "a MIG slice (`gpu list` shows which there are), left running; `lease logs -f` follows "
            "it"}},
      .exit_codes =
          "the job's own (128+N when signal N ended it); 124 when it ran past --timeout,\n"
          "125 when it could not be run or its node failed, 130 when you left it",
      .handler = RunHandler,
  }};
}

}  // namespace ringfence::cli

// `up`: a server and a node on this machine, kept running until told to stop.

#include <iostream>
#include <optional>

#include "base/code.h"
#include "cli/api.h"
#include "cli/context.h"
#include "cli/daemons.h"
#include "cli/node_process.h"
#include "cli/up_state.h"
#include "model/node.h"
#include "os/file.h"
#include "os/file_owner.h"
#include "os/identity.h"
#include "os/mount.h"
#include "os/privileges.h"
#include "os/process.h"
#include "os/signals.h"

namespace ringfence::cli {
namespace {

constexpr int kSigTerm = 15;
constexpr int kSigKill = 9;
constexpr std::chrono::seconds kStopWithin{20};
constexpr std::chrono::seconds kServerWithin{30};
constexpr std::uint64_t kFreeBytesLeast = 16U << 20U;
constexpr std::chrono::milliseconds kRestartFirst{500};
constexpr std::chrono::milliseconds kRestartLast{30000};
// Where the state folder is mounted for a daemon whose user could not get at it otherwise.
constexpr const char* kSeenState = "/run/ringfence-state";

using SteadyTime = std::chrono::steady_clock::time_point;

int Fail(const Error& error) {
  std::cerr << "ringfence: " << error.message << "\n";
  if (!error.hint.empty()) {
    std::cerr << "  " << error.hint << "\n";
  }
  return Facts(error.code).exit_status;
}

// One daemon, started again when it ends by itself.
struct Daemon {
  std::string name;
  int pid = 0;
  SteadyTime start_at{};
  std::chrono::milliseconds pause = kRestartFirst;
};

class Supervisor {
 public:
  explicit Supervisor(const Settings& settings) : settings_(settings), users_(UsersFor(settings)) {}

  Status Prepare();
  Status StartAll();
  // Until a stop is asked for.
  void Tend();
  void StopAll();

 private:
  Status StartServer();
  Status StartNode();
  Status StartAssess();
  Status WaitForServer();
  void Started(Daemon& daemon, int pid);
  void Ended(const os::Ended& ended);
  void Stop(Daemon& daemon);
  bool NodeMustJoin() const;
  std::string StateFile(const std::string& name) const { return settings_.state() + "/" + name; }

  const Settings& settings_;
  const DaemonUsers users_;
  std::string seen_state_;
  std::string local_file_;
  std::string join_token_;
  bool stop_ = false;  // asked for while waiting for something else
  Daemon server_{"server", 0, {}, kRestartFirst};
  Daemon node_{"node", 0, {}, kRestartFirst};
  Daemon assess_{"assess", 0, {}, kRestartFirst};
};

// Whether `uid` can walk down to `path`, by the permission bits of its folders.
bool CanReach(const std::string& path, unsigned uid, unsigned gid) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const auto owner = os::OwnerOf(path.substr(0, slash));
    if (!owner.has_value()) {
      return false;
    }
    const unsigned bit = owner->uid == uid ? 0100U : owner->gid == gid ? 0010U : 0001U;
    if ((owner->mode & bit) == 0) {
      return false;
    }
  }
  return true;
}

Status Supervisor::Prepare() {
  RINGFENCE_TRY(os::MakeDirs(settings_.state(), 0755));
  RINGFENCE_TRY(TrustState(settings_));
  // Its folders have modes of their own; the daemons must get at theirs.
  RINGFENCE_TRY(os::ChangeMode(settings_.state(), 0755));
  for (const char* folder : {"logs", "cli"}) {
    RINGFENCE_TRY(os::MakeDirs(StateFile(folder), 0700));
  }
  RINGFENCE_TRY(os::MakeDirs(StateFile("server"), 0700));
  RINGFENCE_TRY(os::ChangeOwner(StateFile("server"), users_.server_uid, users_.server_gid));
  RINGFENCE_TRY(ProvidePolicy(settings_));
  local_file_ = StateFile("server/local.json");
  seen_state_ = settings_.state();
  if (os::IsRoot() && (!CanReach(StateFile("server/x"), users_.server_uid, users_.server_gid) ||
                       !CanReach(StateFile("x"), users_.agent_uid, users_.agent_gid))) {
    RINGFENCE_TRY(os::MakeDirs(kSeenState, 0755));
    seen_state_ = kSeenState;
  }
  return {};
}

// The environment of a daemon: every setting that was given, and nothing else of ours.
std::vector<std::string> EnvironmentFor(const Settings& settings, const std::string& seen_state) {
  std::vector<std::string> environment{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  for (const SettingSpec& spec : SettingTable()) {
    if (spec.kind != ValueKind::kSecret && spec.setting != Setting::kState &&
        settings.Given(spec.setting)) {
      environment.push_back(std::string(spec.environment) + "=" + settings.Text(spec.setting));
    }
  }
  environment.push_back("RINGFENCE_STATE=" + seen_state);
  return environment;
}

Status Supervisor::StartServer() {
  RINGFENCE_TRY(os::RemoveFile(local_file_));
  RINGFENCE_ASSIGN(const std::string own, os::OwnPath());
  RINGFENCE_ASSIGN(const os::UniqueFd program, os::OpenRead(own));
  RINGFENCE_ASSIGN(const os::UniqueFd log, os::OpenAppend(StateFile("logs/server.log")));
  os::SpawnOptions spawn;
  spawn.exec_fd = program.get();
  spawn.arguments = {"ringfence", "server"};
  spawn.environment = EnvironmentFor(settings_, seen_state_);
  spawn.environment.push_back(std::string(kLocalFileVariable) + "=" + seen_state_ +
                              "/server/local.json");
  if (const auto before = ReadContext(ContextPath(settings_));
      before.has_value() && settings_.Text(Setting::kServerListen).ends_with(":0") &&
      server_.start_at != SteadyTime{}) {
    // Restarted: the port that was picked is the one that everybody knows.
    const std::string name = std::string(Spec(Setting::kServerListen).environment) + "=";
    std::erase_if(spawn.environment, [&](const std::string& one) { return one.starts_with(name); });
    spawn.environment.push_back(name + before->server);
  }
  if (NodeMustJoin()) {
    spawn.environment.push_back(std::string(kLocalNodeVariable) + "=" +
                                settings_.Text(Setting::kNodeName));
  }
  spawn.fds = {{log.get(), 1}, {log.get(), 2}};
  spawn.new_session = true;
  spawn.parent_death_signal = kSigTerm;
  if (os::IsRoot()) {
    spawn.before_exec = [this]() -> Status {
      if (seen_state_ != settings_.state()) {
        RINGFENCE_TRY(os::EnterNewNamespaces({.mount = true}));
        RINGFENCE_TRY(os::BindMount(settings_.state(), seen_state_, {}));
      }
      return os::BecomeUser(users_.server_uid, users_.server_gid);
    };
  }
  RINGFENCE_ASSIGN(const int pid, os::Spawn(spawn));
  Started(server_, pid);
  return {};
}

bool Supervisor::NodeMustJoin() const {
  return NeedsJoin(StateFile("node/agent/credentials.json"), SystemClock().Now());
}

Status Supervisor::StartNode() {
  std::string token_file;
  if (!join_token_.empty()) {
    token_file = StateFile("node/join-token");
    RINGFENCE_TRY(os::MakeDirs(StateFile("node"), 0755));
    RINGFENCE_TRY(os::WriteFileDurable(token_file, AsBytes(join_token_), 0600));
    join_token_.clear();
  }
  RINGFENCE_ASSIGN(const Connection local, ReadContext(ContextPath(settings_)));
  RINGFENCE_ASSIGN(os::SpawnOptions spawn,
                   MakeNodeProcess(settings_, {seen_state_, token_file, local.server, ""}));
  RINGFENCE_ASSIGN(const os::UniqueFd log, os::OpenAppend(StateFile("logs/node.log")));
  spawn.fds = {{log.get(), 1}, {log.get(), 2}};
  spawn.new_session = true;
  spawn.parent_death_signal = kSigTerm;
  if (seen_state_ != settings_.state()) {
    spawn.before_exec = [this]() -> Status {
      RINGFENCE_TRY(os::EnterNewNamespaces({.mount = true}));
      return os::BindMount(settings_.state(), seen_state_, {});
    };
  }
  RINGFENCE_ASSIGN(const int pid, os::Spawn(spawn));
  Started(node_, pid);
  return {};
}

// The server leaves what we need to sign in once it serves.
Status Supervisor::WaitForServer() {
  const SteadyTime until = std::chrono::steady_clock::now() + kServerWithin;
  while (!os::Exists(local_file_)) {
    if (os::WaitForSignal(std::chrono::milliseconds(20)) == os::Signal::kStop) {
      stop_ = true;
      return Error{Code::kUnavailable, "stopped"};
    }
    for (const os::Ended& ended : os::ReapChildren()) {
      Ended(ended);
    }
    if (server_.pid == 0 || std::chrono::steady_clock::now() > until) {
      return Error{Code::kUnavailable,
                   "the server did not start: " + LastLineOf(StateFile("logs/server.log")),
                   "its log is " + StateFile("logs/server.log")};
    }
  }
  RINGFENCE_ASSIGN(join_token_, TakeLocalFile(settings_, local_file_));
  return {};
}

Status Supervisor::StartAll() {
  RINGFENCE_TRY(StartServer());
  RINGFENCE_TRY(WaitForServer());
  RINGFENCE_TRY(StartNode());
  return StartAssess();
}

// What the node is like is for its server to know. It never keeps the node from working.
Status Supervisor::StartAssess() {
  const std::string every = settings_.Text(Setting::kNodeAssessEvery);
  if (every == "off") {
    return {};
  }
  if (const auto duration = ParseDuration(every);
      !duration.has_value() || *duration < std::chrono::minutes(1)) {
    return Error{Code::kInvalidArgument,
                 "node.assess_every: \"" + every + "\" is no time of a minute at least",
                 "write it as 6h, or off", "node.assess_every"};
  }
  RINGFENCE_ASSIGN(const std::string own, os::OwnPath());
  RINGFENCE_ASSIGN(const os::UniqueFd program, os::OpenRead(own));
  RINGFENCE_ASSIGN(const os::UniqueFd log, os::OpenAppend(StateFile("logs/assess.log")));
  os::SpawnOptions spawn;
  spawn.exec_fd = program.get();
  RINGFENCE_ASSIGN(const Connection local, ReadContext(ContextPath(settings_)));
  spawn.arguments = {"ringfence", "assess", "send", "--every", every, "--server", local.server};
  spawn.environment = EnvironmentFor(settings_, settings_.state());
  spawn.fds = {{log.get(), 1}, {log.get(), 2}};
  spawn.new_session = true;
  spawn.parent_death_signal = kSigTerm;
  RINGFENCE_ASSIGN(const int pid, os::Spawn(spawn));
  Started(assess_, pid);
  return {};
}

void Supervisor::Started(Daemon& daemon, int pid) {
  daemon.pid = pid;
  daemon.start_at = std::chrono::steady_clock::now();
}

void Supervisor::Ended(const os::Ended& ended) {
  for (Daemon* daemon : {&server_, &node_, &assess_}) {
    if (daemon->pid != ended.pid) {
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - daemon->start_at > std::chrono::seconds(30)) {
      daemon->pause = kRestartFirst;
    }
    daemon->pid = 0;
    daemon->start_at = now + daemon->pause;
    std::cerr << "ringfence: the " << daemon->name << " ended ("
              << (ended.signalled ? "signal " : "status ") << ended.code
              << "); starting it again: " << LastLineOf(StateFile("logs/" + daemon->name + ".log"))
              << std::endl;
    daemon->pause = std::min(daemon->pause * 2, kRestartLast);
  }
}

void Supervisor::Tend() {
  for (;;) {
    if (os::WaitForSignal(std::chrono::milliseconds(500)) == os::Signal::kStop) {
      return;
    }
    for (const os::Ended& ended : os::ReapChildren()) {
      Ended(ended);
    }
    const auto now = std::chrono::steady_clock::now();
    Status started;
    if (server_.pid == 0 && now >= server_.start_at) {
      started = StartServer();
      if (started.has_value()) {
        started = WaitForServer();
      }
    }
    if (node_.pid == 0 && server_.pid != 0 && now >= node_.start_at) {
      started = StartNode();
    }
    if (assess_.pid == 0 && assess_.start_at != SteadyTime{} && now >= assess_.start_at) {
      started = StartAssess();
    }
    if (stop_) {
      return;
    }
    if (!started.has_value()) {
      std::cerr << "ringfence: " << started.error().message << std::endl;
    }
  }
}

void Supervisor::Stop(Daemon& daemon) {
  if (daemon.pid == 0) {
    return;
  }
  const auto pidfd = os::OpenProcess(daemon.pid);
  if (!pidfd.has_value()) {
    daemon.pid = 0;
    return;
  }
  (void)os::SendSignal(pidfd->get(), kSigTerm);
  std::vector<os::PollItem> items{{pidfd->get()}};
  (void)os::Poll(items, kStopWithin);
  if (!items[0].ready) {
    std::cerr << "ringfence: the " << daemon.name << " does not stop; killing it" << std::endl;
    (void)os::SendSignal(pidfd->get(), kSigKill);
  }
  (void)os::WaitFor(daemon.pid);
  daemon.pid = 0;
}

// The node first: what it has to say of its last moments, the server still hears.
void Supervisor::StopAll() {
  Stop(assess_);
  Stop(node_);
  Stop(server_);
}

// A start that dies of a full disk cannot even say so in its log.
Status MakeState(const Settings& settings) {
  RINGFENCE_TRY(os::MakeDirs(settings.state(), 0755));
  RINGFENCE_ASSIGN(const std::uint64_t free, os::FreeBytes(settings.state()));
  if (free < kFreeBytesLeast) {
    return Error{Code::kExhausted,
                 "the disk of " + settings.state() + " is full: " + std::to_string(free >> 20U) +
                     " MiB are free, " + std::to_string(kFreeBytesLeast >> 20U) + " are needed",
                 "make room, or name another folder with --state DIR"};
  }
  return {};
}

int RunForeground(const Settings& settings, const UpOptions& options) {
  os::HoldSignals();
  if (const Status made = MakeState(settings); !made.has_value()) {
    return Fail(made.error());
  }
  const auto lock = os::LockFile(settings.state() + "/up.lock");
  if (!lock.has_value()) {
    return Fail({Code::kConflict, "a Ringfence is already running in " + settings.state(),
                 "look at it with `ringfence status`, stop it with `ringfence down`"});
  }
  Supervisor supervisor(settings);
  Status status = supervisor.Prepare();
  if (status.has_value()) {
    status = WriteUpFile(settings);
  }
  if (status.has_value()) {
    status = supervisor.StartAll();
  }
  if (!status.has_value()) {
    supervisor.StopAll();
    (void)os::RemoveFile(UpFile(settings));
    return Fail(status.error());
  }
  if (!options.quiet) {
    (void)WaitUntilHealthy(settings, options.wait, std::cout);
    std::cout << "\nRunning until Ctrl-C." << std::endl;
  }
  supervisor.Tend();
  if (!options.quiet) {
    std::cout << "stopping" << std::endl;
  }
  supervisor.StopAll();
  (void)os::RemoveFile(UpFile(settings));
  return kExitOk;
}

// Starts `up` again as a process of its own and waits until it is healthy.
int RunDetached(const Settings& settings, const UpOptions& options) {
  if (IsUp(settings)) {
    std::cout << "A Ringfence is already running in " << settings.state() << ".\n";
    return WaitUntilHealthy(settings, options.wait, std::cout);
  }
  const auto start = [&]() -> Result<int> {
    RINGFENCE_TRY(MakeState(settings));
    RINGFENCE_TRY(os::MakeDirs(settings.state() + "/logs", 0700));
    RINGFENCE_ASSIGN(const std::string own, os::OwnPath());
    RINGFENCE_ASSIGN(const os::UniqueFd log, os::OpenAppend(settings.state() + "/logs/up.log"));
    os::SpawnOptions spawn;
    spawn.path = own;
    spawn.arguments = {"ringfence", "up", "--quiet"};
    spawn.environment = EnvironmentFor(settings, settings.state());
    for (const char* name : {"SUDO_UID", "SUDO_GID"}) {
      if (const auto value = os::Environment(name); value.has_value()) {
        spawn.environment.push_back(std::string(name) + "=" + *value);
      }
    }
    spawn.fds = {{log.get(), 1}, {log.get(), 2}};
    spawn.new_session = true;
    return os::Spawn(spawn);
  };
  const auto pid = start();
  if (!pid.has_value()) {
    return Fail(pid.error());
  }
  const SteadyTime until = std::chrono::steady_clock::now() + kServerWithin;
  while (!IsUp(settings) || !os::Exists(ContextPath(settings))) {
    if (!os::ReapChildren().empty() || std::chrono::steady_clock::now() > until) {
      return Fail({Code::kUnavailable,
                   "it did not start: " + LastLineOf(settings.state() + "/logs/up.log"),
                   "its logs are in " + settings.state() + "/logs"});
    }
    std::vector<os::PollItem> none;
    (void)os::Poll(none, std::chrono::milliseconds(20));
  }
  return WaitUntilHealthy(settings, options.wait, std::cout);
}

}  // namespace

int RunUp(const Settings& settings, const UpOptions& options) {
  if (const Status named = model::CheckNodeName(settings.Text(Setting::kNodeName));
      !named.has_value()) {
    return Fail(Prefix("--node-name", named.error()));
  }
  return options.detach ? RunDetached(settings, options) : RunForeground(settings, options);
}

int RunDown(const Settings& settings) {
  if (!IsUp(settings)) {
    std::cout << "Nothing is running in " << settings.state() << ".\n";
    return kExitOk;
  }
  const auto pid = ReadUpFile(settings);
  if (!pid.has_value()) {
    return Fail(pid.error());
  }
  const auto pidfd = os::OpenProcess(*pid);
  if (!pidfd.has_value()) {
    return Fail(pidfd.error());
  }
  if (const Status sent = os::SendSignal(pidfd->get(), kSigTerm); !sent.has_value()) {
    return Fail({sent.error().code, sent.error().message, "it was started by root: use sudo"});
  }
  std::vector<os::PollItem> items{{pidfd->get()}};
  (void)os::Poll(items, kStopWithin * 3);
  if (!items[0].ready) {
    return Fail({Code::kUnavailable, "it does not stop (process " + std::to_string(*pid) + ")"});
  }
  std::cout << "Stopped. Its state stays in " << settings.state()
            << "; `ringfence up` goes on from it.\n";
  return kExitOk;
}

}  // namespace ringfence::cli

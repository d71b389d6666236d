// ringfence-jailer: the root side of a node. Starts the agent (or waits for the one that a service
// manager started), answers its closed table of requests, and nothing else. docs/formats/jailer.md.

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "isolate/capabilities.h"
#include "isolate/image_worker.h"
#include "isolate/runtime.h"
#include "jailer/agent_process.h"
#include "jailer/options.h"
#include "jailer/service.h"
#include "os/cgroup.h"
#include "os/file.h"
#include "os/identity.h"
#include "os/kernel_log.h"
#include "os/log.h"
#include "os/log_format.h"
#include "os/mount.h"
#include "os/privileges.h"
#include "os/socket_pair.h"

namespace ringfence::jailer {
namespace {

constexpr const char* kRunFolder = "/run/ringfence";
constexpr std::uint64_t kRunBytesMax = std::uint64_t{256} << 20U;
constexpr int kLockAttemptsMax = 250;
constexpr auto kLockPause = std::chrono::milliseconds(20);
constexpr int kSigInt = 2;
constexpr int kSigTerm = 15;
constexpr int kSigChild = 17;
constexpr int kSigPipe = 13;

// What building boxes and workers needs. Not: modules, raw I/O, reboot, time, kernel log, audit,
// raw sockets, and the rest.
const std::vector<std::string>& NeededCapabilities() {
  static const std::vector<std::string> names = {
      "CAP_CHOWN",      "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH",
      "CAP_FOWNER",     "CAP_FSETID",       "CAP_KILL",
      "CAP_SETGID",     "CAP_SETUID",       "CAP_SETPCAP",
      "CAP_SETFCAP",    "CAP_NET_ADMIN",    "CAP_SYS_CHROOT",
      "CAP_SYS_PTRACE", "CAP_SYS_ADMIN",    "CAP_SYS_RESOURCE",
      "CAP_MKNOD",      "CAP_BPF",          "CAP_NET_BIND_SERVICE"};
  return names;
}

Status Harden() {
  os::SetFileModeMask(077);
  RINGFENCE_TRY(os::SetLimit(os::Limit::kCoreBytes, 0));
  RINGFENCE_TRY(os::SetDumpable(false));
  if (os::IsRoot()) {
    RINGFENCE_TRY(os::KeepCapabilities(NeededCapabilities()));
  }
  return {};
}

// Mounts, bundles and nodes live in a place that vanishes with this process.
Status EnterPrivatePlace() {
  RINGFENCE_TRY(os::MakeDirs(kRunFolder, 0755));
  RINGFENCE_TRY(os::EnterNewNamespaces({.mount = true}));
  return os::MountTmpfs(kRunFolder, {kRunBytesMax, 0711, true, true});
}

// Children of a jailer that was killed hold its lock for a moment longer than itself.
Result<os::UniqueFd> TakeLock(const std::string& path) {
  for (int attempt = 0;; ++attempt) {
    auto lock = os::LockFile(path);
    if (lock.has_value() || lock.error().code != Code::kConflict || attempt >= kLockAttemptsMax) {
      return lock;
    }
    std::this_thread::sleep_for(kLockPause);
  }
}

// Beside the other worker.
std::string BesideWorker(const Options& options, const char* name) {
  return options.worker.substr(0, options.worker.rfind('/') + 1) + name;
}

struct Agent {
  os::UniqueFd socket;  // our end
  int pid = 0;          // 0: not our child
};
Result<Agent> FindAgent(const Options& options, int signals, const Identity& identity) {
  const isolate::AgentJoin* const join =
      identity.agent_join.has_value() ? &*identity.agent_join : nullptr;
  if (!options.agent_socket.empty()) {
    RINGFENCE_ASSIGN(os::UniqueFd socket, WaitForAgent(options, signals, join));
    return Agent{std::move(socket), 0};
  }
  RINGFENCE_ASSIGN(os::SocketPair pair, os::MakeSocketPair(isolate::kFrameBytesMax));
  RINGFENCE_ASSIGN(const int pid, StartAgent(options, pair.second.get(), join));
  return Agent{std::move(pair.first), pid};
}

Result<int> Serve(Options options) {
  // While we still may. The sensor gets it, and goes without where the kernel says no.
  const auto kernel_log = os::OpenKernelLog();
  RINGFENCE_TRY(Harden());
  RINGFENCE_TRY(os::MakeDirs(options.state, 0700));
  RINGFENCE_TRY(os::ChangeMode(options.state, 0700));
  RINGFENCE_ASSIGN(const os::UniqueFd lock, TakeLock(options.state + "/lock"));
  RINGFENCE_ASSIGN(Identity identity, LoadIdentity(options.state, options.join_token_file));
  if (os::Exists(options.driver_root)) {
    RINGFENCE_ASSIGN(options.driver_root, os::AbsolutePath(options.driver_root));
  }
  RINGFENCE_ASSIGN(const std::string boot_id, os::BootId());
  const SystemClock clock;
  RINGFENCE_ASSIGN(Records records, Records::Open(options.state, boot_id, clock.Now()));

  std::vector<std::string> missing = isolate::MissingForBoxes({options.init, options.worker});
  isolate::WorkerPlace workers{options.worker, options.driver_root, kRunFolder,
                               options.uid_base - 1, isolate::WorkerWalls::kSameUser};
  workers.kernel_log = kernel_log.has_value() ? kernel_log->get() : -1;
  isolate::BoxPlace place;
  place.init = options.init;
  place.probe = BesideWorker(options, "ringfence-probe");
  place.run_folder = kRunFolder;
  place.host_root = options.box_root;
  place.node = options.node;
  place.uid_base = options.uid_base;
  if (os::IsRoot()) {
    workers.walls = isolate::WorkerWalls::kUserOnly;
  }
  isolate::ImagePlace images{options.state + "/images",
                             {BesideWorker(options, "ringfence-unpack"), "/", kRunFolder,
                              isolate::ImageUid(options.uid_base), workers.walls},
                             options.image_verifier};
  if (missing.empty()) {
    images.worker.walls = isolate::WorkerWalls::kAll;
    RINGFENCE_ASSIGN(const isolate::Runtime runtime, isolate::FindRuntime());
    place.runtime = runtime.path;
    workers.walls = isolate::WorkerWalls::kAll;
    RINGFENCE_TRY(EnterPrivatePlace());
    RINGFENCE_TRY(isolate::PrepareBoxPlace(place));
    os::Log(os::Level::kInfo, "jailer_ready",
            {{"node", options.node}, {"runtime", runtime.name + " " + runtime.version}});
  }
  for (const std::string& reason : missing) {
    os::Log(os::Level::kWarning, "boxes_not_possible", {{"reason", reason}});
  }
  RINGFENCE_TRY(os::AdoptOrphans());
  RINGFENCE_ASSIGN(os::UniqueFd signals, os::OpenSignals({kSigChild, kSigTerm, kSigInt, kSigPipe}));
  Boxes boxes(place, {options.node, options.uplink},
              {BesideWorker(options, "ringfence-resolve"), isolate::ResolverUid(options.uid_base),
               options.resolvers},
              records, clock);
  HeldLeases held({options.cdi_dir, options.hook, options.state + "/cdi", options.driver_root},
                  records, clock);
  RINGFENCE_ASSIGN(const std::set<std::string> still_held, held.Recover());
  RINGFENCE_TRY(boxes.Recover(options.driver_root, still_held));

  RINGFENCE_ASSIGN(Agent agent, FindAgent(options, signals.get(), identity));
  if (!agent.socket.valid()) {
    return 0;  // told to stop before there was one
  }
  RINGFENCE_TRY(os::SetNonBlocking(agent.socket.get(), true));
  identity.agent_join.reset();
  Service service(ServiceParts{options.node, std::move(identity), std::move(missing),
                               std::move(workers), std::move(agent.socket), std::move(signals),
                               agent.pid, std::move(images), options.mounts},
                  records, boxes, held, clock);
  const int status = service.Run();
  os::RemoveCgroupIfUnused("/ringfence/" + options.node);
  return status;
}

int Main(const std::vector<std::string>& words) {
  if (words.size() == 1 && (words[0] == "--help" || words[0] == "--version")) {
    (void)std::fputs(words[0] == "--help" ? kUsage : "ringfence-jailer " RINGFENCE_VERSION "\n",
                     stdout);
    return 0;
  }
  os::SetLogName("jailer");
  auto options = ParseOptions(words);
  if (!options.has_value()) {
    (void)std::fprintf(stderr, "ringfence-jailer: %s\n%s", options.error().message.c_str(), kUsage);
    return 2;
  }
  os::SetLogFormat(options->log_json ? os::LogFormat::kJson : os::LogFormat::kText);
  const auto status = Serve(std::move(*options));
  if (!status.has_value()) {
    (void)std::fprintf(stderr, "ringfence-jailer: %s\n%s%s", status.error().message.c_str(),
                       status.error().hint.c_str(), status.error().hint.empty() ? "" : "\n");
    return 1;
  }
  return *status;
}

}  // namespace
}  // namespace ringfence::jailer

int main(int argc, char** argv) {
  return ringfence::jailer::Main(std::vector<std::string>(argv + 1, argv + argc));
}

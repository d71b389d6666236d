#include "isolate/worker.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include "gpu/amd_sysfs.h"
#include "gpu/scenario.h"
#include "gpu/simulated_root.h"
#include "os/file.h"
#include "os/landlock.h"
#include "os/memory_file.h"
#include "os/mount.h"
#include "os/privileges.h"
#include "os/process.h"
#include "os/seccomp.h"
#include "os/socket_pair.h"

namespace ringfence::isolate {
namespace {

constexpr int kSigKill = 9;
constexpr std::uint64_t kDevBytesMax = 1024 * 1024;
constexpr std::uint64_t kOpenFilesMax = 4096;
constexpr std::uint64_t kLockedBytesMax = std::uint64_t{1} << 30U;
constexpr std::size_t kMinorsMax = 64;

struct WorkerTask {
  std::vector<std::string> arguments;
  std::vector<gpu::DeviceNode> nodes;  // for a real driver
  std::vector<std::string> stand_ins;  // file names for a simulated one
  std::vector<std::string> give;       // host paths of simulated memory
  std::string mig_folder;              // what a simulated driver keeps MIG in, for changing it
  bool changes_mig = false;            // drivers let nobody but root
  int kernel_log = -1;
  std::string slices;  // that CUDA is to show
};

unsigned UserOf(const WorkerPlace& place, const WorkerTask& task) {
  return task.changes_mig ? 0 : place.uid;
}

std::string DriverRootInside(const WorkerPlace& place) {
  return place.walls == WorkerWalls::kAll && place.driver_root != "/" ? place.run_folder + "/driver"
                                                                      : place.driver_root;
}

// Cards that have a node (or stand-in) beneath the driver's root.
std::vector<std::uint32_t> MinorsBeneath(const std::string& driver_root) {
  const auto names = os::ListDir(driver_root == "/" ? "/dev" : driver_root + "/dev");
  std::vector<std::uint32_t> minors;
  for (const std::string& name : names.has_value() ? *names : std::vector<std::string>()) {
    constexpr std::string_view kPrefix = "nvidia";
    std::uint32_t minor = 0;
    if (!name.starts_with(kPrefix) || minors.size() >= kMinorsMax) {
      continue;
    }
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, minor);
    if (parsed.ec == std::errc() && parsed.ptr == end) {
      minors.push_back(minor);
    }
  }
  const std::vector<std::uint32_t> amd = gpu::AmdMinors(driver_root);
  minors.insert(minors.end(), amd.begin(), amd.end());
  return minors;
}

Status MakeCapsFolder(const std::string& path) {
  RINGFENCE_TRY(os::MakeDirs(path));
  return os::ChangeMode(path, 0755);  // whatever the umask
}

Status MakeDev(const WorkerTask& task, unsigned uid) {
  RINGFENCE_TRY(os::MountTmpfs("/dev", {kDevBytesMax, 0755, true, false}));
  struct Standard {
    const char* path;
    std::uint32_t minor;
  };
  for (const Standard& one : {Standard{"/dev/null", 3}, {"/dev/zero", 5}, {"/dev/urandom", 9}}) {
    os::NodeOptions node;
    node.major = 1;
    node.minor = one.minor;
    node.mode = 0666;
    RINGFENCE_TRY(os::MakeNode(one.path, node));
  }
  RINGFENCE_TRY(MakeCapsFolder("/dev/nvidia-caps"));
  RINGFENCE_TRY(MakeCapsFolder("/dev/dri"));
  for (const gpu::DeviceNode& one : task.nodes) {
    os::NodeOptions node;
    node.major = one.major;
    node.minor = one.minor;
    node.uid = uid;
    node.gid = uid;
    RINGFENCE_TRY(os::MakeNode(one.path, node));
  }
  return {};
}

// The driver's root where the worker's user can reach it, with a dev folder of its own.
Status MakeDriverRoot(const WorkerPlace& place, const WorkerTask& task) {
  if (place.driver_root == "/") {
    return {};
  }
  const std::string inside = DriverRootInside(place);
  RINGFENCE_TRY(os::MakeDirs(inside, 0711));
  RINGFENCE_TRY(os::BindMount(place.driver_root, inside, {}));
  if (!os::IsDirectory(inside + "/dev")) {
    return {};
  }
  RINGFENCE_TRY(os::MountTmpfs(inside + "/dev", {kDevBytesMax, 0755, false, false}));
  RINGFENCE_TRY(MakeCapsFolder(inside + "/dev/nvidia-caps"));
  RINGFENCE_TRY(MakeCapsFolder(inside + "/dev/dri"));
  for (const std::string& name : task.stand_ins) {
    const std::string path = inside + "/dev/" + name;
    RINGFENCE_TRY(os::WriteFile(path, {}, 0600));
    RINGFENCE_TRY(os::ChangeOwner(path, UserOf(place, task), UserOf(place, task)));
  }
  return {};
}

os::LandlockRules Rules(const WorkerPlace& place, const WorkerTask& task) {
  os::LandlockRules rules;
  const auto add = [&rules](const std::string& path, os::PathUse use) {
    rules.paths.push_back({path, use, false});
  };
  for (const char* path :
       {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
        "/etc/alternatives", "/etc/localtime", "/proc", "/sys", "/dev", "/opt/rocm"}) {
    add(path, os::PathUse::kRead);
  }
  // Executing is allowed for the worker itself and the loader it needs, for nothing else.
  add(place.program, os::PathUse::kReadExec);
  add("/lib64/ld-linux-x86-64.so.2", os::PathUse::kReadExec);
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/urandom"}) {
    add(path, os::PathUse::kDevice);
  }
  for (const gpu::DeviceNode& node : task.nodes) {
    add(node.path, os::PathUse::kDevice);
  }
  // CUDA gives its threads names, by writing to /proc/self/task/N/comm, and does not start if it
  // cannot. We are the worker's process already: this is its own folder, and no other's.
  add("/proc/self", os::PathUse::kDevice);
  const std::string inside = DriverRootInside(place);
  if (inside != "/") {
    add(inside, os::PathUse::kRead);
    for (const std::string& name : task.stand_ins) {
      add(inside + "/dev/" + name, os::PathUse::kDevice);
    }
    for (const std::string& path : task.give) {
      add(inside + path.substr(place.driver_root.size()), os::PathUse::kDevice);
    }
    if (!task.mig_folder.empty()) {
      add(inside + task.mig_folder.substr(place.driver_root.size()), os::PathUse::kReadWrite);
    }
  }
  return rules;
}

// CUDA does not start without a local socket of packets. Those of a stream or of datagrams, by
// which services of the machine are spoken to, it can do without.
std::vector<os::SeccompRule> DenySocketsButCudas() {
  constexpr int kLocal = 1;       // AF_UNIX
  constexpr int kNotFamily = 97;  // EAFNOSUPPORT
  std::vector<os::SeccompRule> rules = os::DenySocketsExcept({kLocal});
  for (const std::uint64_t type : {1U, 2U}) {  // SOCK_STREAM, SOCK_DGRAM
    rules.push_back({"socket", kNotFamily, {{0, 0xffffffffU, kLocal}, {1, 0xfU, type}}});
  }
  return rules;
}

Status EnterSeccomp() {
  std::vector<os::SeccompRule> rules = os::DenySystemAdministration();
  for (const auto& more : {os::DenyNewProcesses(), DenySocketsButCudas()}) {
    rules.insert(rules.end(), more.begin(), more.end());
  }
  return os::EnterSeccompDenyList(rules);
}

// A simulated driver asks for no capability; a real one's kernel module asks for this one before it
// changes a GPU's mode.
Status GiveUpPrivileges(const WorkerPlace& place, const WorkerTask& task) {
  if (place.walls == WorkerWalls::kSameUser) {
    return os::DropAllPrivileges();
  }
  if (task.changes_mig && task.mig_folder.empty()) {
    return os::KeepCapabilities({"CAP_SYS_ADMIN"});
  }
  return os::BecomeUser(UserOf(place, task), UserOf(place, task));
}

// Everything between fork and the worker's first instruction, in order.
Status Confine(const WorkerPlace& place, const WorkerTask& task) {
  if (place.walls == WorkerWalls::kAll) {
    RINGFENCE_TRY(
        os::EnterNewNamespaces({.mount = true, .network = true, .ipc = true, .uts = true}));
    RINGFENCE_TRY(MakeDev(task, UserOf(place, task)));
    RINGFENCE_TRY(MakeDriverRoot(place, task));
    RINGFENCE_TRY(os::EnterLandlock(Rules(place, task)));
  }
  RINGFENCE_TRY(os::SetLimit(os::Limit::kCoreBytes, 0));
  RINGFENCE_TRY(os::SetLimit(os::Limit::kOpenFiles, kOpenFilesMax));
  RINGFENCE_TRY(os::SetLimit(os::Limit::kLockedBytes, kLockedBytesMax));
  if (task.changes_mig) {
    os::SetFileModeMask(022);  // a simulated driver's files are for every process to read
  }
  RINGFENCE_TRY(GiveUpPrivileges(place, task));
  return EnterSeccomp();
}

Result<StartedWorker> Start(const WorkerPlace& place, const WorkerTask& task) {
  RINGFENCE_ASSIGN(const os::UniqueFd program, os::OpenRead(place.program));
  RINGFENCE_ASSIGN(os::Pipe out, os::MakePipe());
  os::SpawnOptions spawn;
  spawn.exec_fd = program.get();
  spawn.arguments = task.arguments;
  spawn.environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", "CUDA_CACHE_DISABLE=1",
                       "CUDA_DEVICE_ORDER=PCI_BUS_ID"};
  if (!task.slices.empty()) {
    spawn.environment.push_back("CUDA_VISIBLE_DEVICES=" + task.slices);
  }
  spawn.fds = {{out.write.get(), 1}};
  if (task.kernel_log >= 0) {
    spawn.fds.emplace_back(task.kernel_log, 3);
  }
  spawn.new_session = true;
  spawn.parent_death_signal = kSigKill;
  spawn.before_exec = [&place, &task] { return Confine(place, task); };
  const auto pid = os::Spawn(spawn);
  if (!pid.has_value()) {
    return Prefix("start worker", pid.error());
  }
  RINGFENCE_TRY(os::SetNonBlocking(out.read.get(), true));
  return StartedWorker{*pid, std::move(out.read)};
}

// Beneath /dev.
std::vector<std::string> StandIns(const std::vector<gpu::DeviceNode>& nodes) {
  std::vector<std::string> names;
  for (const gpu::DeviceNode& node : nodes) {
    names.push_back(node.path.substr(std::string_view("/dev/").size()));
  }
  return names;
}

void SetNodes(WorkerTask& task, const WorkerPlace& place, std::vector<gpu::DeviceNode> nodes) {
  if (gpu::IsSimulatedRoot(place.driver_root)) {
    task.stand_ins = StandIns(nodes);
  } else {
    task.nodes = std::move(nodes);
  }
}

Status ChangeOwners(const std::vector<std::string>& paths, unsigned uid) {
  for (const std::string& path : paths) {
    RINGFENCE_TRY(os::ChangeOwner(path, uid, uid));
  }
  return {};
}

std::vector<std::string> GivenPaths(const gpu::DriverFiles& files) {
  std::vector<std::string> paths;
  for (const gpu::DriverMount& mount : files.mounts) {
    if (mount.give_to_box) {
      paths.push_back(mount.host_path);
    }
  }
  return paths;
}

Result<StartedWorker> StartOnAll(const WorkerPlace& place, const char* command) {
  WorkerTask task;
  task.arguments = {"ringfence-worker", command, "--driver-root", DriverRootInside(place)};
  if (std::string_view(command) == "sense" && place.kernel_log >= 0) {
    task.kernel_log = place.kernel_log;
    task.arguments.insert(task.arguments.end(), {"--kernel-log", "3"});
  }
  // Without a driver there are no nodes to make, and the worker says so better than we could.
  if (auto nodes = gpu::NodesOf(place.driver_root, MinorsBeneath(place.driver_root))) {
    // Whoever may not open it is shown no slices.
    if (auto monitor = gpu::CapNode(place.driver_root, "monitor")) {
      nodes->push_back(std::move(*monitor));
    }
    SetNodes(task, place, std::move(*nodes));
  }
  return Start(place, task);
}

}  // namespace

Result<StartedWorker> StartInventory(const WorkerPlace& place) {
  return StartOnAll(place, "inventory");
}

Result<StartedWorker> StartSense(const WorkerPlace& place) { return StartOnAll(place, "sense"); }

Result<StartedWorker> StartScrub(const WorkerPlace& place,
                                 const std::vector<gpu::WantedGpu>& gpus) {
  RINGFENCE_ASSIGN(const gpu::DriverFiles files, gpu::FilesFor(place.driver_root, gpus));
  WorkerTask task;
  task.arguments = {"ringfence-worker", "scrub", "--driver-root", DriverRootInside(place)};
  for (const gpu::WantedGpu& gpu : gpus) {
    task.arguments.insert(task.arguments.end(), {"--gpu", gpu.uuid});
    if (gpu.slice.has_value()) {
      task.slices = gpu.uuid;  // the only one: FilesFor lets no other in beside it
    }
  }
  SetNodes(task, place, files.nodes);
  task.give = GivenPaths(files);
  RINGFENCE_TRY(ChangeOwners(task.give, place.uid));
  for (const std::string& path : task.give) {  // whatever its last owner made of it
    RINGFENCE_TRY(os::ChangeMode(path, 0600));
  }
  auto started = Start(place, task);
  if (!started.has_value()) {
    (void)ChangeOwners(task.give, 0);
  }
  return started;
}

Status FinishScrub(const WorkerPlace& place, const std::vector<gpu::WantedGpu>& gpus) {
  RINGFENCE_ASSIGN(const gpu::DriverFiles files, gpu::FilesFor(place.driver_root, gpus));
  return ChangeOwners(GivenPaths(files), 0);
}

Result<StartedWorker> StartMig(const WorkerPlace& place, const gpu::WantedGpu& gpu,
                               const std::optional<MigChange>& change) {
  RINGFENCE_ASSIGN(std::vector<gpu::DeviceNode> nodes,
                   gpu::NodesOf(place.driver_root, {gpu.minor}));
  for (const char* capability : {"config", "monitor"}) {
    RINGFENCE_ASSIGN(gpu::DeviceNode node, gpu::CapNode(place.driver_root, capability));
    nodes.push_back(std::move(node));
  }
  WorkerTask task;
  task.arguments = {"ringfence-worker",      "mig",   "--driver-root",
                    DriverRootInside(place), "--gpu", gpu.uuid};
  task.changes_mig = true;
  if (change.has_value()) {
    task.arguments.insert(task.arguments.end(),
                          {"--target", change->target, "--before", change->before});
  }
  SetNodes(task, place, std::move(nodes));
  if (gpu::IsSimulatedRoot(place.driver_root)) {
    task.mig_folder = gpu::MigFolder(place.driver_root, gpu.uuid);
    RINGFENCE_TRY(os::MakeDirs(task.mig_folder, 0755));
    for (const std::string& folder : {place.driver_root + "/mig", task.mig_folder}) {
      RINGFENCE_TRY(os::ChangeMode(folder, 0755));  // whatever our own mask
    }
  }
  return Start(place, task);
}

}  // namespace ringfence::isolate

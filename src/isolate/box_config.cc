#include "isolate/box_config.h"

#include <algorithm>

#include "isolate/box_seccomp.h"
#include "os/privileges.h"

namespace ringfence::isolate {
namespace {

constexpr std::int64_t kOomScore = 500;  // a box goes before the services of its host
constexpr std::int64_t kCpuPeriodUs = 100'000;
constexpr const char* kBoxMpsFolder = "/run/ringfence/mps";  // without Wall::kGpuContext
constexpr const char* kBoxHostRoot = "/run/ringfence/host";  // without Wall::kHostRoot
constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// What a probe without Wall::kCapabilities holds: enough for every attack.
const std::vector<std::string> kProbeCapabilities = {
    "CAP_CHOWN",      "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER",    "CAP_KILL",
    "CAP_SETGID",     "CAP_SETUID",       "CAP_NET_ADMIN",       "CAP_NET_RAW",   "CAP_SYS_MODULE",
    "CAP_MKNOD",      "CAP_SYS_RAWIO",    "CAP_SYS_PTRACE",      "CAP_SYS_ADMIN", "CAP_SYS_BOOT",
    "CAP_SYS_CHROOT", "CAP_BPF",          "CAP_PERFMON"};

JsonArray Texts(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

JsonObject Mount(const std::string& type, const std::string& source, const std::string& to,
                 const std::vector<std::string>& options) {
  return JsonObject{
      {"destination", to}, {"type", type}, {"source", source}, {"options", Texts(options)}};
}

JsonObject Bind(const std::string& from, const std::string& to, bool writable) {
  return Mount("bind", from, to, {"bind", writable ? "rw" : "ro", "nosuid", "nodev"});
}

// With what a machine has mounted beneath (a driver's own file system in /usr/local): the kernel
// lets a user namespace bind all of a tree or nothing.
JsonObject BindSystem(const std::string& from, const std::string& to) {
  return Mount("bind", from, to, {"rbind", "ro", "nosuid", "nodev", "rro", "rnosuid", "rnodev"});
}

bool IsProbe(const BoxSpec& spec) {
  return !spec.grant.command.empty() && spec.grant.command[0] == kBoxProbePath;
}

// The job's user as the box's processes know it.
unsigned UserOf(const BoxSpec& spec) {
  if (Without(spec, Wall::kCapabilities)) {
    return 0;
  }
  return Without(spec, Wall::kUserNamespace) ? spec.first_uid + kJobUid : kJobUid;
}

// Of these two file systems the kernel makes a new one only for who owns the namespace they show.
JsonObject ProcMount(const BoxSpec& spec) {
  return Without(spec, Wall::kPidNamespace) || SharesPids(spec)
             ? Mount("bind", "/proc", "/proc", {"rbind", "nosuid", "noexec", "nodev"})
             : Mount("proc", "proc", "/proc", {"nosuid", "noexec", "nodev"});
}
JsonObject SysMount(const BoxSpec& spec) {
  return Without(spec, Wall::kNetworkNamespace) || SharesNetwork(spec)
             ? Mount("bind", "/sys", "/sys", {"rbind", "nosuid", "noexec", "nodev", "ro"})
             : Mount("sysfs", "sysfs", "/sys", {"nosuid", "noexec", "nodev", "ro"});
}

// What a probe's box has besides, each for a wall that it stands without.
void AddProbeMounts(const BoxSpec& spec, JsonArray& mounts) {
  if (!IsProbe(spec)) {
    return;
  }
  mounts.push_back(Bind(spec.probe_host_path, kBoxProbePath, false));
  for (const BoxNode& node : spec.foreign_nodes) {
    mounts.push_back(
        Mount("bind", node.host_path, node.node.path, {"bind", "rw", "nosuid", "noexec"}));
  }
  if (Without(spec, Wall::kHostRoot)) {
    mounts.push_back(Mount("bind", "/", kBoxHostRoot, {"rbind", "ro", "nosuid", "nodev"}));
  }
  if (Without(spec, Wall::kGpuContext)) {
    mounts.push_back(Bind(spec.mps_folder, kBoxMpsFolder, true));
  }
  if (Without(spec, Wall::kOwnFiles)) {
    mounts.push_back(Bind(spec.shared_folder + "/tmp", "/tmp", true));
    mounts.push_back(Bind(spec.shared_folder + "/shm", "/dev/shm", true));
  }
}

JsonArray Mounts(const BoxSpec& spec) {
  // All of it counts against the box's memory; these only keep one from eating it all.
  const auto size = [&spec](std::uint64_t wanted) {
    const std::uint64_t half = spec.grant.memory_bytes_max / 2;
    return "size=" + std::to_string(wanted == 0 ? half : wanted);
  };
  const std::string tmp = size(spec.grant.box.tmp_bytes_max);
  const std::string job = std::to_string(UserOf(spec));
  const auto system = [&spec](const std::string& from, const std::string& to) {
    return Without(spec, Wall::kMountFlags) ? Mount("bind", from, to, {"rbind", "rw"})
                                            : BindSystem(from, to);
  };
  JsonArray mounts;
  mounts.push_back(ProcMount(spec));
  mounts.push_back(
      Mount("tmpfs", "tmpfs", "/dev", {"nosuid", "noexec", "strictatime", "mode=755", "size=64k"}));
  mounts.push_back(Mount("devpts", "devpts", "/dev/pts",
                         {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}));
  mounts.push_back(
      Mount("tmpfs", "shm", "/dev/shm",
            {"nosuid", "noexec", "nodev", "mode=1777", size(spec.grant.box.shm_bytes_max)}));
  mounts.push_back(SysMount(spec));
  for (const BoxFile& file : spec.system_files) {
    mounts.push_back(system(file.host_path, file.box_path));
  }
  mounts.push_back(Mount("tmpfs", "tmpfs", "/tmp", {"nosuid", "nodev", "mode=1777", tmp}));
  mounts.push_back(Mount("tmpfs", "tmpfs", "/home/job",
                         {"nosuid", "nodev", "mode=0700", "uid=" + job, "gid=" + job, tmp}));
  mounts.push_back(system(spec.init_host_path, kBoxInitPath));
  for (const gpu::DriverMount& mount : spec.driver_mounts) {
    mounts.push_back(Bind(mount.host_path, mount.box_path, mount.writable));
  }
  for (const NamedMount& mount : spec.named_mounts) {
    mounts.push_back(Bind(mount.host_path, mount.box_path, mount.writable));
  }
  for (const BoxNode& node : spec.nodes) {
    mounts.push_back(
        Mount("bind", node.host_path, node.node.path, {"bind", "rw", "nosuid", "noexec"}));
  }
  AddProbeMounts(spec, mounts);
  return mounts;
}

// Later ones win: the grant may set its own PATH, but not what says whose box this is.
std::vector<std::string> Environment(const BoxSpec& spec) {
  std::vector<std::pair<std::string, std::string>> wanted = {
      {"PATH", kPath}, {"HOME", "/home/job"}, {"USER", "job"}, {"LANG", "C.UTF-8"}};
  std::string libraries;
  std::string own_libraries;
  for (const auto& [name, value] : spec.image_environment) {
    if (name == "LD_LIBRARY_PATH") {
      own_libraries = value;
    } else {
      wanted.emplace_back(name, value);
    }
  }
  for (const std::string& folder : spec.library_folders) {
    libraries += (libraries.empty() ? "" : ":") + folder;
  }
  if (!own_libraries.empty()) {  // the driver's before the image's
    libraries += (libraries.empty() ? "" : ":") + own_libraries;
  }
  if (!libraries.empty()) {
    wanted.emplace_back("LD_LIBRARY_PATH", libraries);
  }
  wanted.insert(wanted.end(), spec.grant.environment.begin(), spec.grant.environment.end());
  if (Without(spec, Wall::kGpuContext)) {
    wanted.emplace_back("CUDA_MPS_PIPE_DIRECTORY", kBoxMpsFolder);
  }
  if (Without(spec, Wall::kEnvironment)) {
    for (const std::string& name : spec.host_variables) {
      wanted.emplace_back(name, "");
    }
  }
  // CUDA would find its only slice by itself; said all the same, for programs that ask.
  if (const std::string slices = SlicesOf(spec.grant.gpus); !slices.empty()) {
    wanted.emplace_back("CUDA_VISIBLE_DEVICES", slices);
  }
  wanted.emplace_back("RINGFENCE_LEASE", spec.grant.lease);
  wanted.emplace_back("RINGFENCE_TENANT", spec.grant.tenant);
  std::vector<std::string> environment;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool again =
        std::any_of(wanted.begin() + static_cast<std::ptrdiff_t>(i) + 1, wanted.end(),
                    [&](const auto& later) { return later.first == wanted[i].first; });
    if (!again) {
      environment.push_back(wanted[i].first + "=" + wanted[i].second);
    }
  }
  return environment;
}

// The longest file a job may write. In its tmpfs folders memory is the limit; a simulated GPU's
// memory is a file on the host's disk, which must not grow without end.
std::int64_t FileBytesMax(const BoxSpec& spec) {
  constexpr std::int64_t kOnDisk = std::int64_t{256} << 20U;
  const bool on_disk = std::any_of(spec.driver_mounts.begin(), spec.driver_mounts.end(),
                                   [](const gpu::DriverMount& mount) { return mount.give_to_box; });
  const auto memory = static_cast<std::int64_t>(spec.grant.memory_bytes_max);
  return on_disk ? std::min(kOnDisk, memory) : memory;
}

JsonObject Capabilities(const BoxSpec& spec) {
  JsonArray held;
  if (Without(spec, Wall::kCapabilities)) {
    for (const std::string& name : kProbeCapabilities) {
      if (os::MayHoldCapability(name)) {  // what the jailer has given up nobody can be given
        held.emplace_back(name);
      }
    }
  }
  return JsonObject{{"bounding", held},
                    {"effective", held},
                    {"inheritable", JsonArray()},
                    {"permitted", held},
                    {"ambient", JsonArray()}};
}

// Verbs keep what they move in memory; it counts against the box's all the same.
bool LocksMemory(const BoxSpec& spec) {
  const std::vector<std::string>& devices = spec.grant.box.devices;
  return std::find(devices.begin(), devices.end(), "rdma") != devices.end();
}

JsonObject Process(const BoxSpec& spec) {
  std::vector<std::string> arguments = {kBoxInitPath};
  const std::vector<std::string> landlock = LandlockOptions(spec);
  arguments.insert(arguments.end(), landlock.begin(), landlock.end());
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), spec.grant.command.begin(), spec.grant.command.end());
  const auto limit = [](const char* type, std::int64_t value) {
    return JsonObject{{"type", type}, {"hard", value}, {"soft", value}};
  };
  JsonArray limits{limit("RLIMIT_CORE", 0), limit("RLIMIT_FSIZE", FileBytesMax(spec)),
                   limit("RLIMIT_NOFILE", static_cast<std::int64_t>(spec.open_files_max))};
  if (LocksMemory(spec)) {
    // Nobody here may give more than the jailer has itself (LimitMEMLOCK= of its service).
    const std::uint64_t most =
        std::min(spec.grant.memory_bytes_max, os::HardLimit(os::Limit::kLockedBytes));
    limits.push_back(limit("RLIMIT_MEMLOCK", static_cast<std::int64_t>(most)));
  }
  return JsonObject{
      {"terminal", false},
      {"user", JsonObject{{"uid", UserOf(spec)}, {"gid", UserOf(spec)}}},
      {"args", Texts(arguments)},
      {"env", Texts(Environment(spec))},
      {"cwd", spec.working_folder},
      {"capabilities", Capabilities(spec)},
      {"rlimits", std::move(limits)},
      {"noNewPrivileges", !Without(spec, Wall::kNoNewPrivileges)},
      {"oomScoreAdj", kOomScore},
  };
}

JsonObject Resources(const BoxSpec& spec) {
  JsonArray devices;
  devices.push_back(JsonObject{{"allow", Without(spec, Wall::kDeviceRules)}, {"access", "rwm"}});
  for (const BoxNode& node : spec.nodes) {
    devices.push_back(JsonObject{{"allow", true},
                                 {"type", "c"},
                                 {"major", static_cast<std::int64_t>(node.node.major)},
                                 {"minor", static_cast<std::int64_t>(node.node.minor)},
                                 {"access", "rw"}});
  }
  JsonArray huge;
  for (const std::string& size : spec.huge_page_sizes) {
    huge.push_back(JsonObject{{"pageSize", size},
                              {"limit", static_cast<std::int64_t>(spec.grant.box.huge_bytes_max)}});
  }
  const auto memory = static_cast<std::int64_t>(spec.grant.memory_bytes_max);
  return JsonObject{
      {"hugepageLimits", std::move(huge)},
      {"devices", std::move(devices)},
      {"memory", JsonObject{{"limit", memory}, {"swap", memory}}},
      {"cpu", JsonObject{{"period", kCpuPeriodUs},
                         {"quota", std::int64_t{spec.grant.cpu_millis_max} * kCpuPeriodUs / 1000}}},
      {"pids", JsonObject{{"limit", static_cast<std::int64_t>(spec.grant.pids_max)}}},
  };
}

JsonArray Namespaces(const BoxSpec& spec) {
  JsonArray namespaces{JsonObject{{"type", "mount"}}};
  const std::pair<Wall, const char*> types[] = {
      {Wall::kUserNamespace, "user"},       {Wall::kPidNamespace, "pid"},
      {Wall::kNetworkNamespace, "network"}, {Wall::kIpcNamespace, "ipc"},
      {Wall::kUtsNamespace, "uts"},         {Wall::kCgroupNamespace, "cgroup"},
  };
  for (const auto& [wall, type] : types) {
    const bool shared = (wall == Wall::kNetworkNamespace && SharesNetwork(spec)) ||
                        (wall == Wall::kPidNamespace && SharesPids(spec));
    if (!Without(spec, wall) && !shared) {
      namespaces.push_back(JsonObject{{"type", type}});
    }
  }
  return namespaces;
}

JsonObject Linux(const BoxSpec& spec) {
  const JsonArray mapping{JsonObject{{"containerID", 0},
                                     {"hostID", static_cast<std::int64_t>(spec.first_uid)},
                                     {"size", static_cast<std::int64_t>(kBoxUidCount)}}};
  JsonObject linux{
      {"namespaces", Namespaces(spec)},
      {"uidMappings", mapping},
      {"gidMappings", mapping},
      {"cgroupsPath", spec.cgroup},
      {"rootfsPropagation", "private"},
      {"resources", Resources(spec)},
      {"seccomp", BoxSeccomp(spec.grant.box.huge_bytes_max > 0)},
      {"maskedPaths", Texts({"/proc/acpi",
                             "/proc/asound",
                             "/proc/config.gz",
                             "/proc/interrupts",
                             "/proc/kcore",
                             "/proc/keys",
                             "/proc/kallsyms",
                             "/proc/key-users",
                             "/proc/kpagecount",
                             "/proc/kpageflags",
                             "/proc/latency_stats",
                             "/proc/sched_debug",
                             "/proc/scsi",
                             "/proc/slabinfo",
                             "/proc/timer_list",
                             "/proc/timer_stats",
                             "/proc/vmallocinfo",
                             "/sys/firmware",
                             "/sys/fs",
                             "/sys/hypervisor",
                             "/sys/kernel/btf",
                             "/sys/kernel/debug",
                             "/sys/kernel/security",
                             "/sys/kernel/slab",
                             "/sys/kernel/tracing",
                             "/sys/devices/virtual/powercap"})},
      {"readonlyPaths",
       Texts({"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"})},
  };
  const std::pair<Wall, std::vector<const char*>> parts[] = {
      {Wall::kUserNamespace, {"uidMappings", "gidMappings"}},
      {Wall::kSeccomp, {"seccomp"}},
      {Wall::kMaskedPaths, {"maskedPaths", "readonlyPaths"}},
  };
  for (const auto& [wall, names] : parts) {
    for (const char* name : names) {
      if (Without(spec, wall)) {
        linux.erase(name);
      }
    }
  }
  return linux;
}

}  // namespace

bool Without(const BoxSpec& spec, Wall wall) {
  return spec.walls_away.has_value() && IsProbe(spec) && spec.walls_away->Has(wall);
}

bool SharesNetwork(const BoxSpec& spec) {
  return spec.access.has_value() && spec.access->lease() == spec.grant.lease &&
         spec.access->network();
}

bool SharesPids(const BoxSpec& spec) {
  return spec.access.has_value() && spec.access->lease() == spec.grant.lease && spec.access->pids();
}

std::vector<std::string> LandlockOptions(const BoxSpec& spec) {
  if (Without(spec, Wall::kLandlock)) {
    return {"--unconfined", "probe"};
  }
  std::vector<std::string> options;
  const auto add = [&options](const char* option, const std::string& path) {
    options.emplace_back(option);
    options.push_back(path);
  };
  if (spec.grant.network.has_value() || SharesNetwork(spec)) {
    add("--network", "wait");
  }
  add(spec.has_image ? "--rx" : "--ls", "/");
  for (const BoxFile& file : spec.system_files) {
    if (!file.box_path.starts_with("/etc")) {
      add("--rx", file.box_path);  // /usr, and /bin, /lib where they are not part of it
    }
  }
  for (const char* path : {"/etc", "/proc", "/sys", "/dev", kBoxInitPath}) {
    add("--ro", path);
  }
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                           "/dev/tty", "/dev/ptmx", "/dev/pts"}) {
    add("--dev", path);
  }
  // Of the box's own processes alone, with the kernel's knobs masked or read-only. CUDA names its
  // threads there and does not start if it cannot.
  add("--dev", "/proc");
  for (const char* path : {"/tmp", "/home/job", "/dev/shm"}) {
    add("--rw", path);
  }
  for (const gpu::DriverMount& mount : spec.driver_mounts) {
    add(mount.writable ? "--rw" : "--rx", mount.box_path);
  }
  for (const NamedMount& mount : spec.named_mounts) {
    add(mount.writable ? "--rw" : "--rx", mount.box_path);
  }
  for (const BoxNode& node : spec.nodes) {
    add("--dev", node.node.path);
  }
  for (const BoxNode& node : spec.foreign_nodes) {
    add("--dev", node.node.path);
  }
  if (IsProbe(spec)) {
    add("--rx", kBoxProbePath);
  }
  if (Without(spec, Wall::kGpuContext)) {
    add("--rw", kBoxMpsFolder);
  }
  return options;
}

Json BoxConfig(const BoxSpec& spec) {
  JsonObject config{
      {"ociVersion", "1.0.2"},
      {"root",
       JsonObject{{"path", spec.root_folder}, {"readonly", !Without(spec, Wall::kReadOnlyRoot)}}},
      {"process", Process(spec)},
      {"mounts", Mounts(spec)},
      {"linux", Linux(spec)},
  };
  if (!Without(spec, Wall::kUtsNamespace)) {
    config["hostname"] = "box";
  }
  return config;
}

}  // namespace ringfence::isolate

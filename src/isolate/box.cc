#include "isolate/box.h"

#include <algorithm>
#include <charconv>

#include "isolate/box_root.h"
#include "isolate/network_rules.h"
#include "os/cgroup.h"
#include "os/failpoint.h"
#include "os/file.h"
#include "os/file_owner.h"
#include "os/log.h"
#include "os/memory_file.h"
#include "os/mount.h"
#include "os/privileges.h"
#include "os/process.h"
#include "os/self.h"
#include "os/socket_pair.h"

namespace ringfence::isolate {
namespace {

constexpr int kSigKill = 9;
constexpr std::uint64_t kOpenFilesMax = 65536;
constexpr std::size_t kStatusBytesMax = 4096;
constexpr std::size_t kComplaintBytesMax = 64 * 1024;
constexpr std::size_t kComplaintShownMax = 600;

std::string NodesFolder(const BoxPlace& place, const std::string& lease) {
  return place.run_folder + "/nodes/" + lease;
}

bool StandsWithout(const BoxPlan& plan, Wall wall) {
  return plan.walls_away.has_value() && plan.walls_away->Has(wall) &&
         plan.grant.command.front() == kBoxProbePath;
}

std::string RuntimeState(const BoxPlace& place) { return place.run_folder + "/runtime"; }

// Nobody but root and the box's own (mapped) root looks in here: it holds the job's environment.
Status MakeClosedFolder(const std::string& path, unsigned uid) {
  RINGFENCE_TRY(os::MakeDirs(path, 0700));
  RINGFENCE_TRY(os::ChangeMode(path, 0700));
  return os::ChangeOwner(path, uid, uid);
}

Result<std::vector<BoxNode>> MakeNodes(const BoxPlace& place, const BoxPlan& plan,
                                       const std::vector<gpu::DeviceNode>& wanted,
                                       const std::string& prefix = "") {
  const std::string folder = NodesFolder(place, plan.grant.lease);
  const unsigned first = FirstUid(place, plan);
  RINGFENCE_TRY(MakeClosedFolder(folder, first));
  std::vector<BoxNode> nodes;
  for (const gpu::DeviceNode& node : wanted) {
    const std::string path = folder + "/" + prefix + std::to_string(nodes.size());
    os::NodeOptions options;
    options.major = node.major;
    options.minor = node.minor;
    options.uid = first + kJobUid;
    options.gid = first + kJobUid;
    RINGFENCE_TRY(os::MakeNode(path, options));
    nodes.push_back(BoxNode{path, node});
  }
  return nodes;
}

Status GiveFiles(const gpu::DriverFiles& files, unsigned uid) {
  for (const gpu::DriverMount& mount : files.mounts) {
    if (mount.give_to_box && mount.shared) {
      RINGFENCE_TRY(uid == 0 ? Status() : os::ChangeMode(mount.host_path, 0666));
    } else if (mount.give_to_box) {
      RINGFENCE_TRY(os::ChangeOwner(mount.host_path, uid, uid));
    }
  }
  return {};
}

// Of this kernel, where the hugetlb controller can hold boxes to a limit; else none.
std::vector<std::string> HugePageSizes() {
  std::vector<std::string> sizes;
  auto hierarchies = os::CgroupHierarchies();
  if (!hierarchies.has_value()) {
    return sizes;
  }
  // Where both are mounted the runtime uses v1 alone.
  const bool only_unified = std::all_of(hierarchies->begin(), hierarchies->end(),
                                        [](const auto& one) { return one.unified; });
  if (!only_unified) {
    std::erase_if(*hierarchies, [](const auto& one) { return one.unified; });
  }
  if (!os::HasController(*hierarchies, "hugetlb")) {
    return sizes;
  }
  const auto names = os::ListDir("/sys/kernel/mm/hugepages");
  for (const std::string& name : names.has_value() ? *names : std::vector<std::string>()) {
    constexpr std::string_view kPrefix = "hugepages-";
    std::uint64_t kilobytes = 0;
    if (!name.starts_with(kPrefix)) {
      continue;
    }
    (void)std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), kilobytes);
    if (kilobytes >= 1024 * 1024) {
      sizes.push_back(std::to_string(kilobytes / (1024 * 1024)) + "GB");
    } else if (kilobytes >= 1024) {
      sizes.push_back(std::to_string(kilobytes / 1024) + "MB");
    }
  }
  return sizes;
}

// The box asks the router's end of its wire, and nobody else.
Status NameResolver(const std::string& bundle, std::uint32_t router, BoxSpec& spec) {
  const std::string path = bundle + "/resolv.conf";
  const std::string text =
      "nameserver " + model::FormatIpv4(router) + "\noptions timeout:3 attempts:2\n";
  RINGFENCE_TRY(os::WriteFile(path, AsBytes(text), 0444));
  RINGFENCE_TRY(os::ChangeMode(path, 0444));
  RINGFENCE_TRY(os::ChangeOwner(path, spec.first_uid, spec.first_uid));
  spec.system_files.push_back({path, "/etc/resolv.conf"});
  return {};
}

// Devices that a lease never gets by itself: other GPUs, capabilities of MIG slices, the console.
std::vector<gpu::DeviceNode> ForeignNodes(const BoxPlan& plan) {
  constexpr std::uint32_t kNvidiaMajor = 195;
  constexpr std::uint32_t kCapsMajor = 241;  // as a simulated driver has it
  constexpr std::uint32_t kMinors = 8;
  std::vector<gpu::DeviceNode> nodes = {{"/dev/console", 5, 1}};
  for (std::uint32_t minor = 0; minor < kMinors; ++minor) {
    nodes.push_back({"/dev/nvidia" + std::to_string(minor), kNvidiaMajor, minor});
    nodes.push_back(
        {"/dev/nvidia-caps/nvidia-cap" + std::to_string(minor + 1), kCapsMajor, minor + 1});
  }
  for (const gpu::DeviceNode& node : plan.foreign_slices) {
    const bool there = std::any_of(nodes.begin(), nodes.end(), [&](const gpu::DeviceNode& one) {
      return one.path == node.path;
    });
    if (!there) {
      nodes.push_back(node);
    }
  }
  std::erase_if(nodes, [&](const gpu::DeviceNode& node) {
    return std::any_of(plan.files.nodes.begin(), plan.files.nodes.end(),
                       [&](const gpu::DeviceNode& own) { return own.path == node.path; });
  });
  return nodes;
}

// What a box without some wall has besides.
Status PrepareProbe(const BoxPlace& place, const BoxPlan& plan, BoxSpec& spec) {
  if (Without(spec, Wall::kDeviceNodes)) {
    RINGFENCE_ASSIGN(spec.foreign_nodes, MakeNodes(place, plan, ForeignNodes(plan), "foreign"));
  }
  if (Without(spec, Wall::kOwnFiles)) {
    spec.shared_folder = place.run_folder + "/shared";
    RINGFENCE_TRY(os::MakeDirs(spec.shared_folder, 0711));
    RINGFENCE_TRY(os::ChangeMode(spec.shared_folder, 0711));
    for (const char* name : {"/tmp", "/shm"}) {
      RINGFENCE_TRY(os::MakeDirs(spec.shared_folder + name));
      RINGFENCE_TRY(os::ChangeMode(spec.shared_folder + name, 01777));
    }
  }
  if (Without(spec, Wall::kGpuContext)) {
    spec.mps_folder = place.run_folder + "/mps";
    RINGFENCE_TRY(os::MakeDirs(spec.mps_folder));
    // Where no daemon has made it: what a simulated driver takes for one, and a real one does not.
    if (!os::Exists(spec.mps_folder + "/control")) {
      RINGFENCE_TRY(os::WriteFile(spec.mps_folder + "/control", {}, 0666));
      RINGFENCE_TRY(os::ChangeMode(spec.mps_folder + "/control", 0666));  // whatever the umask
    }
  }
  if (Without(spec, Wall::kEnvironment)) {
    spec.host_variables = {"RINGFENCE_HOST"};  // a service may have been started without any
    for (const auto& [name, value] : os::AllVariables()) {
      spec.host_variables.push_back(name);
    }
  }
  return {};
}

Result<BoxSpec> BuildSteps(const BoxPlace& place, const BoxPlan& plan) {
  const std::string& lease = plan.grant.lease;
  const std::string bundle = BundleFolder(place, lease);
  BoxSpec spec;
  spec.grant = plan.grant;
  spec.cgroup = BoxCgroup(place, lease);
  spec.first_uid = FirstUid(place, plan);
  spec.open_files_max = std::min(kOpenFilesMax, os::HardLimit(os::Limit::kOpenFiles));
  spec.root_folder = bundle + "/root";
  spec.init_host_path = place.init;
  spec.probe_host_path = place.probe;
  spec.walls_away = plan.walls_away;
  spec.driver_mounts = plan.files.mounts;
  spec.library_folders = plan.files.library_folders;

  spec.access = plan.access;
  if (plan.grant.box.exception.has_value() != plan.access.has_value()) {
    return Error{Code::kInternal, "an exception was granted and not checked"};
  }
  RINGFENCE_TRY(MakeClosedFolder(bundle, spec.first_uid));
  RINGFENCE_TRY(MakeClosedFolder(spec.root_folder, spec.first_uid));
  RINGFENCE_TRY(os::ChangeMode(spec.root_folder, 0755));
  spec.named_mounts = plan.mounts;
  spec.huge_page_sizes = HugePageSizes();
  if (plan.grant.box.huge_bytes_max > 0 && spec.huge_page_sizes.empty()) {
    return Error{Code::kFailedPrecondition, "this node cannot limit huge pages, so boxes get none",
                 "mount the hugetlb cgroup controller, or ask for none"};
  }
  if (plan.image.has_value()) {
    spec.has_image = true;
    spec.image_environment = plan.image->environment;
    if (!plan.image->working_folder.empty()) {
      spec.working_folder = plan.image->working_folder;
    }
    RINGFENCE_TRY(MountImageRoot(bundle, *plan.image, spec));
  } else {
    RINGFENCE_ASSIGN(spec.system_files,
                     BuildBoxRoot(spec.root_folder, place.host_root, spec.first_uid));
  }
  if (SharesNetwork(spec)) {
    const std::string path = (place.host_root == "/" ? "" : place.host_root) + "/etc/resolv.conf";
    if (os::Exists(path)) {
      spec.system_files.push_back({path, "/etc/resolv.conf"});
    }
  } else if (plan.grant.network.has_value() && !plan.grant.network->names.empty()) {
    RINGFENCE_TRY(NameResolver(bundle, NetworkAddresses().Router(plan.slot), spec));
  }
  RINGFENCE_ASSIGN(spec.nodes, MakeNodes(place, plan, plan.files.nodes));
  RINGFENCE_TRY(PrepareProbe(place, plan, spec));
  RINGFENCE_TRY(GiveFiles(plan.files, spec.first_uid + kJobUid));
  RINGFENCE_TRY(
      os::WriteFile(bundle + "/config.json", AsBytes(CanonicalJson(BoxConfig(spec))), 0600));
  return spec;
}

}  // namespace

Status PrepareBoxPlace(const BoxPlace& place) {
  RINGFENCE_TRY(os::MakeDirs(RuntimeState(place), 0700));
  for (const char* name : {"/bundles", "/nodes"}) {
    RINGFENCE_TRY(os::MakeDirs(place.run_folder + name, 0711));
    RINGFENCE_TRY(os::ChangeMode(place.run_folder + name, 0711));  // whatever the umask
  }
  return {};
}

unsigned FirstUid(const BoxPlace& place, const BoxPlan& plan) {
  const unsigned slot = StandsWithout(plan, Wall::kUserIds) ? kSharedUidSlot : plan.slot;
  return place.uid_base + slot * kBoxUidCount;
}

std::string BoxCgroup(const BoxPlace& place, const std::string& lease) {
  return "/ringfence/" + place.node + "/" + lease;
}

std::string BundleFolder(const BoxPlace& place, const std::string& lease) {
  return place.run_folder + "/bundles/" + lease;
}

Result<BoxSpec> BuildBox(const BoxPlace& place, const BoxPlan& plan) {
  auto built = BuildSteps(place, plan);
  if (!built.has_value()) {
    (void)TakeDownBox(place, plan.grant.lease, plan.files);
    return Prefix("build box", built.error());
  }
  return built;
}

Result<LaunchedBox> LaunchBox(const BoxPlace& place, const BoxPlan& plan) {
  const std::string& lease = plan.grant.lease;
  const std::string bundle = BundleFolder(place, lease);
  RINGFENCE_ASSIGN(os::Pipe out, os::MakePipe());
  RINGFENCE_ASSIGN(os::Pipe err, os::MakePipe());
  // Programs open /dev/stdout by name, which needs the pipe to be the job's own.
  const unsigned job = FirstUid(place, plan) + kJobUid;
  RINGFENCE_TRY(os::ChangeOwner(out.write.get(), job, job));
  RINGFENCE_TRY(os::ChangeOwner(err.write.get(), job, job));
  RINGFENCE_ASSIGN(os::SocketPair status, os::MakeSocketPair(kStatusBytesMax));
  os::SpawnOptions spawn;
  spawn.path = place.runtime;
  spawn.arguments = {"runtime",
                     "--root",
                     RuntimeState(place),
                     "--log",
                     bundle + "/log",
                     "--log-format",
                     "json",
                     "run",
                     "--detach",
                     "--bundle",
                     bundle,
                     "--pid-file",
                     bundle + "/pid",
                     "--preserve-fds",
                     "1",
                     lease};
  spawn.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  spawn.fds = {{out.write.get(), 1}, {err.write.get(), 2}, {status.second.get(), 3}};
  int kept = 1;  // descriptors from 3 on that the box gets
#ifdef RINGFENCE_FAILPOINTS
  if (os::failpoint::TableFd() >= 0) {  // for process 1 of the box alone
    spawn.fds.emplace_back(os::failpoint::TableFd(), os::failpoint::kBoxFd);
    kept = 2;
  }
#endif
  os::UniqueFd left_open;
  if (StandsWithout(plan, Wall::kDescriptors)) {
    RINGFENCE_ASSIGN(left_open, os::OpenRead("/"));
    spawn.fds.emplace_back(left_open.get(), 3 + kept++);
  }
  *(spawn.arguments.end() - 2) = std::to_string(kept);
  spawn.parent_death_signal = kSigKill;
  // The runtime makes mount points; the job's user must be able to pass through them.
  spawn.before_exec = [] {
    os::SetFileModeMask(022);
    return Status();
  };
  RINGFENCE_ASSIGN(const int pid, os::Spawn(spawn));
  RINGFENCE_TRY(os::SetNonBlocking(status.first.get(), true));
  return LaunchedBox{pid, std::move(out.read), std::move(err.read), std::move(status.first)};
}

Result<int> BoxPid(const BoxPlace& place, const std::string& lease) {
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(BundleFolder(place, lease) + "/pid", 64));
  int pid = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (failed != std::errc() || pid <= 1) {
    return Error{Code::kCorrupt, "the runtime wrote no process id"};
  }
  return pid;
}

std::string RuntimeComplaint(const BoxPlace& place, const std::string& lease) {
  const auto text = os::ReadText(BundleFolder(place, lease) + "/log", kComplaintBytesMax);
  std::string last = "the runtime failed and said nothing";
  if (!text.has_value()) {
    return last;
  }
  std::size_t at = 0;
  while (at < text->size()) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    const auto json = ParseJson(std::string_view(*text).substr(at, end - at), kComplaintBytesMax);
    const JsonObject* line = json.has_value() ? json->if_object() : nullptr;
    const auto* message = line == nullptr ? nullptr : line->if_contains("msg");
    if (message != nullptr && message->is_string()) {
      last = std::string(message->get_string()).substr(0, kComplaintShownMax);
    }
    at = end + 1;
  }
  return last;
}

Status TakeDownBox(const BoxPlace& place, const std::string& lease, const gpu::DriverFiles& files) {
  const std::string cgroup = BoxCgroup(place, lease);
  RINGFENCE_TRY(os::KillCgroup(cgroup));
  RINGFENCE_TRY(os::RemoveCgroup(cgroup));
  RINGFENCE_TRY(os::RemoveTree(RuntimeState(place) + "/" + lease));
  RINGFENCE_TRY(os::RemoveTree(NodesFolder(place, lease)));
  RINGFENCE_TRY(UnmountImageRoot(BundleFolder(place, lease)));
  RINGFENCE_TRY(os::RemoveTree(BundleFolder(place, lease)));
  return GiveFiles(files, 0);
}

}  // namespace ringfence::isolate

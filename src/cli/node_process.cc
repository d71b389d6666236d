#include "cli/node_process.h"

#include "gpu/amd_sysfs.h"
#include "gpu/library.h"
#include "gpu/simulated_root.h"
#include "os/file.h"
#include "os/identity.h"

namespace ringfence::cli {
namespace {

constexpr std::size_t kScenarioBytesMax = std::size_t{1} << 20U;

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The real driver where the kernel has it, else a simulated one in the state folder.
Result<std::string> DriverRoot(const Settings& settings) {
  const std::string& wanted = settings.Text(Setting::kNodeDriverRoot);
  if (wanted != "auto") {
    return wanted;
  }
  const std::string& scenario_file = settings.Text(Setting::kNodeScenario);
  const bool amd = gpu::HasAmdDriver("/") && gpu::HasLibrary("/", gpu::kAmdSmiName);
  if (scenario_file.empty() && (os::Exists("/proc/driver/nvidia/version") || amd)) {
    return std::string("/");
  }
  const std::string root = settings.state() + "/node/driver";
  std::string scenario = gpu::DefaultScenario(settings.Text(Setting::kNodeName));
  if (!scenario_file.empty()) {
    RINGFENCE_ASSIGN(scenario, os::ReadText(scenario_file, kScenarioBytesMax));
  }
  RINGFENCE_ASSIGN(const std::string libraries, OwnPart("sim/lib"));
  RINGFENCE_TRY(gpu::MakeSimulatedRoot(root, libraries, scenario));
  return root;
}

}  // namespace

DaemonUsers UsersFor(const Settings& settings) {
  if (!os::IsRoot()) {
    return {os::UserId(), os::GroupId(), os::UserId(), os::GroupId()};
  }
  const auto base = static_cast<unsigned>(settings.Number(Setting::kNodeUidBase));
  const auto server = os::FindAccount("ringfence").value_or(os::Account{base - 2, base - 2});
  const auto agent = os::FindAccount("ringfence-agent").value_or(os::Account{base - 3, base - 3});
  return {server.uid, server.gid, agent.uid, agent.gid};
}

Result<std::string> OwnPart(const std::string& name) {
  RINGFENCE_ASSIGN(const std::string own, os::OwnPath());
  const std::string folder = FolderOf(own);
  for (const std::string& path :
       {folder + "/" + name, FolderOf(folder) + "/lib/ringfence/" + name}) {
    if (os::Exists(path)) {
      return path;
    }
  }
  return Error{Code::kNotFound, name + " is not where " + own + " was built or installed",
               "build all of it: `make build`, or install the whole package"};
}

Result<os::SpawnOptions> MakeNodeProcess(const Settings& settings, const NodeStart& start) {
  const std::string node = settings.state() + "/node";
  const DaemonUsers users = UsersFor(settings);
  RINGFENCE_TRY(os::MakeDirs(node, 0755));
  RINGFENCE_TRY(os::MakeDirs(node + "/jailer", 0700));
  RINGFENCE_TRY(os::MakeDirs(node + "/agent", 0700));
  RINGFENCE_TRY(os::ChangeOwner(node + "/agent", users.agent_uid, users.agent_gid));
  RINGFENCE_ASSIGN(const std::string driver_root, DriverRoot(settings));
  RINGFENCE_ASSIGN(const std::string jailer, OwnPart("ringfence-jailer"));
  RINGFENCE_ASSIGN(const std::string worker, OwnPart("ringfence-worker"));
  RINGFENCE_ASSIGN(const std::string init, OwnPart("ringfence-init"));
  RINGFENCE_ASSIGN(const std::string own, os::OwnPath());
  os::SpawnOptions options;
  options.path = jailer;
  options.arguments = {"ringfence-jailer",
                       "--state",
                       node + "/jailer",
                       "--agent-uid",
                       std::to_string(users.agent_uid),
                       "--agent-gid",
                       std::to_string(users.agent_gid),
                       "--worker",
                       worker,
                       "--init",
                       init,
                       "--driver-root",
                       driver_root,
                       "--node",
                       settings.Text(Setting::kNodeName),
                       "--uid-base",
                       settings.Text(Setting::kNodeUidBase),
                       "--log-format",
                       settings.Text(Setting::kLogFormat)};
  if (const std::string& cdi = settings.Text(Setting::kNodeCdiDir); !cdi.empty()) {
    RINGFENCE_ASSIGN(const std::string hook, OwnPart("ringfence-hook"));
    options.arguments.insert(options.arguments.end(), {"--cdi-dir", cdi, "--hook", hook});
  }
  options.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  if (const std::string uplink = settings.Text(Setting::kNodeUplink); !uplink.empty()) {
    options.arguments.insert(options.arguments.end(), {"--uplink", uplink});
  }
  if (const std::string& above = settings.Text(Setting::kNodeResolvers); !above.empty()) {
    options.arguments.insert(options.arguments.end(), {"--resolvers", above});
  }
  if (const std::string& mounts = settings.Text(Setting::kNodeMounts); !mounts.empty()) {
    options.arguments.insert(options.arguments.end(), {"--mounts", mounts});
  }
  if (const std::string& verifier = settings.Text(Setting::kNodeImageVerifier); !verifier.empty()) {
    options.arguments.insert(options.arguments.end(), {"--image-verifier", verifier});
  }
  if (!start.join_token_file.empty()) {
    options.arguments.insert(options.arguments.end(), {"--join-token-file", start.join_token_file});
  }
  if (!start.agent_socket.empty()) {
    options.arguments.insert(options.arguments.end(), {"--agent-socket", start.agent_socket});
    return options;
  }
  options.arguments.insert(
      options.arguments.end(),
      {"--agent-exec", own, "--", "agent", "--state", start.seen_state, "--node-name",
       settings.Text(Setting::kNodeName), "--log-level", settings.Text(Setting::kLogLevel),
       "--log-format", settings.Text(Setting::kLogFormat)});
  if (!start.server.empty()) {
    options.arguments.insert(options.arguments.end(), {"--server", start.server});
  }
  return options;
}

}  // namespace ringfence::cli

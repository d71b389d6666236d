#include "jailer/agent_process.h"

#include "os/file.h"
#include "os/identity.h"
#include "os/memory_file.h"
#include "os/privileges.h"
#include "os/process.h"

namespace ringfence::jailer {
namespace {

constexpr int kSigKill = 9;

}  // namespace

Result<int> StartAgent(const Options& options, int socket, const isolate::AgentJoin* join) {
  const bool root = os::IsRoot();
  if (root && options.agent_uid == 0) {
    return Error{Code::kInvalidArgument, "--agent-uid 0: the agent must not be root",
                 "make a user for it: adduser --system --group ringfence-agent"};
  }
  // Opened with our rights: its folder may be closed to the agent's user.
  RINGFENCE_ASSIGN(const os::UniqueFd program, os::OpenRead(options.agent_exec));
  os::SpawnOptions spawn;
  spawn.exec_fd = program.get();
  spawn.arguments = {options.agent_exec};
  spawn.arguments.insert(spawn.arguments.end(), options.agent_arguments.begin(),
                         options.agent_arguments.end());
  spawn.environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LANG=C.UTF-8",
                       "RINGFENCE_JAILER_FD=" + std::to_string(kAgentSocketFd)};
  spawn.fds = {{1, 1}, {2, 2}, {socket, kAgentSocketFd}};
  os::UniqueFd join_file;
  if (join != nullptr) {
    RINGFENCE_ASSIGN(
        join_file, os::MakeMemoryFile("ringfence-join", AsBytes(isolate::FormatAgentJoin(*join))));
    spawn.fds.emplace_back(join_file.get(), kAgentJoinFd);
    spawn.environment.push_back("RINGFENCE_JOIN_FD=" + std::to_string(kAgentJoinFd));
  }
  spawn.parent_death_signal = kSigKill;
  spawn.before_exec = [&options, root] {
    return root ? os::BecomeUser(options.agent_uid, options.agent_gid) : os::DropAllPrivileges();
  };
  return os::Spawn(spawn);
}

}  // namespace ringfence::jailer

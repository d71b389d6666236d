#include "jailer/agent_process.h"

#include "isolate/agent_greeting.h"
#include "isolate/jailer_protocol.h"
#include "os/file.h"
#include "os/identity.h"
#include "os/local_socket.h"
#include "os/log.h"
#include "os/notify.h"
#include "os/privileges.h"
#include "os/process.h"

namespace ringfence::jailer {
namespace {

constexpr int kSigInt = 2;
constexpr int kSigKill = 9;
constexpr int kSigTerm = 15;

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
    RINGFENCE_ASSIGN(join_file, isolate::MakeJoinFile(*join));
    spawn.fds.emplace_back(join_file.get(), kAgentJoinFd);
    spawn.environment.push_back("RINGFENCE_JOIN_FD=" + std::to_string(kAgentJoinFd));
  }
  spawn.parent_death_signal = kSigKill;
  spawn.before_exec = [&options, root] {
    return root ? os::BecomeUser(options.agent_uid, options.agent_gid) : os::DropAllPrivileges();
  };
  return os::Spawn(spawn);
}

Result<os::UniqueFd> WaitForAgent(const Options& options, int signals,
                                  const isolate::AgentJoin* join) {
  if (options.agent_uid == 0) {
    return Error{Code::kInvalidArgument, "--agent-uid 0: the agent must not be root",
                 "make a user for it: adduser --system --group ringfence-agent"};
  }
  const os::ListenOptions where{options.agent_socket, options.agent_uid, isolate::kFrameBytesMax};
  RINGFENCE_ASSIGN(const os::UniqueFd listener, os::ListenLocal(where));
  os::NotifyManager("READY=1\nSTATUS=waiting for the agent");
  for (;;) {
    std::vector<os::PollItem> items{{listener.get()}, {signals}};
    RINGFENCE_TRY(os::Poll(items, std::nullopt));
    const int signal = os::ReadSignal(signals);
    if (signal == kSigTerm || signal == kSigInt) {
      RINGFENCE_TRY(os::RemoveFile(options.agent_socket));
      return os::UniqueFd();
    }
    auto agent = os::AcceptLocal(listener.get(), where);
    if (!agent.has_value() && agent.error().code == Code::kUnavailable) {
      continue;
    }
    if (!agent.has_value() && agent.error().code == Code::kPermissionDenied) {
      os::Log(os::Level::kError, "stranger_refused", {{"who", agent.error().message}});
      continue;
    }
    if (!agent.has_value()) {
      return agent.error();
    }
    RINGFENCE_TRY(os::RemoveFile(options.agent_socket));  // one agent in a jailer's life
    RINGFENCE_TRY(isolate::SendGreeting(agent->get(), join));
    os::NotifyManager("STATUS=serving its agent");
    return agent;
  }
}

}  // namespace ringfence::jailer

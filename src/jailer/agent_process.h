#pragma once

#include "base/result.h"
#include "isolate/join_token.h"
#include "jailer/options.h"
#include "os/unique_fd.h"

namespace ringfence::jailer {

inline constexpr int kAgentSocketFd = 3;  // RINGFENCE_JAILER_FD
inline constexpr int kAgentJoinFd = 4;    // RINGFENCE_JOIN_FD, when there is a token

// Starts the agent with `socket` as its end of the pair: its own user, no groups, no capability,
// no_new_privs; it dies with us. Returns its process id.
Result<int> StartAgent(const Options& options, int socket, const isolate::AgentJoin* join);

// The other way, for a service manager that starts the agent apart from us: listens at
// `options.agent_socket` until the agent's user connects, then takes the path away again, so that
// nobody else ever can. Returns our end of the pair; an invalid one when told to stop meanwhile.
Result<os::UniqueFd> WaitForAgent(const Options& options, int signals,
                                  const isolate::AgentJoin* join);

}  // namespace ringfence::jailer

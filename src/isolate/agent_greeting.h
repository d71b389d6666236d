#pragma once

// The first message over a pair whose agent was not started by its jailer but connected to it: the
// agent's half of the join token, which a child finds in RINGFENCE_JOIN_FD. docs/formats/jailer.md.

#include <optional>

#include "base/result.h"
#include "isolate/join_token.h"
#include "os/unique_fd.h"

namespace ringfence::isolate {

// A sealed memory file of what the agent needs for joining.
Result<os::UniqueFd> MakeJoinFile(const AgentJoin& join);

Status SendGreeting(int socket, const AgentJoin* join);  // null: it has joined before
// The join file; an invalid descriptor when there is none.
Result<os::UniqueFd> ReceiveGreeting(int socket);

}  // namespace ringfence::isolate

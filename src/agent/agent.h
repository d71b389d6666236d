#pragma once

// The node's network side: unprivileged, confined, the only part of a node that talks to the
// server. It asks for orders and has its jailer carry them out.

#include <string>

#include "base/result.h"

namespace ringfence::agent {

struct AgentOptions {
  std::string state_folder;  // the agent's own: credentials, witness
  std::string node;
  int jailer_fd = -1;  // the socketpair
  int join_fd = -1;    // what the jailer read from the join token; -1: none
  std::string server;  // where the server is, if it has moved since the node joined
};

// Runs until told to stop (SIGTERM, SIGINT) or the pair to the jailer ends.
Status Run(const AgentOptions& options);

}  // namespace ringfence::agent

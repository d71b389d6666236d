#pragma once

// The node's network side: unprivileged, confined, the only part of a node that talks to the
// server. It asks for orders and has its jailer carry them out.

#include <string>

#include "agent/credentials.h"
#include "agent/surroundings.h"
#include "audit/note.h"
#include "base/result.h"
#include "isolate/jailer_client.h"

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

// What the agent works with once it has joined. All of it must outlive Tend.
struct NodeParts {
  std::string name;
  std::string credentials_path;
  isolate::JailerClient& jailer;
  CredentialHolder& holder;
  audit::Witness& witness;
  Surroundings& surroundings;
  std::string telemetry_folder = {};  // where its spool is; empty: GPUs are not watched
};
// Takes up what an earlier agent left, then reports and obeys. Returns only when it could not
// begin; it ends with Surroundings::Exit.
Status Tend(const NodeParts& parts);

}  // namespace ringfence::agent

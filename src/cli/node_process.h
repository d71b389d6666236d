#pragma once

// How a node is started: which driver, which users, which folders; for `agent` and `up`.

#include <string>

#include "base/result.h"
#include "cli/settings.h"
#include "os/process.h"

namespace ringfence::cli {

// From `up` (or the server's unit) to the server it starts.
inline constexpr const char* kLocalFileVariable = "RINGFENCE_UP_LOCAL_FILE";
inline constexpr const char* kLocalNodeVariable = "RINGFENCE_UP_LOCAL_NODE";

// The users of the daemons when root starts them: the accounts "ringfence" and "ringfence-agent"
// where they exist (a package makes them), otherwise ids just below those of boxes, which nobody
// else has. Not root: ourselves.
struct DaemonUsers {
  unsigned server_uid = 0;
  unsigned server_gid = 0;
  unsigned agent_uid = 0;
  unsigned agent_gid = 0;
};
DaemonUsers UsersFor(const Settings& settings);

// Lays out <state>/node and, where there is no real driver, the simulated one; returns how to start
// the jailer, which starts or awaits the agent. `seen_state` is the state folder's path as the
// daemons see it. Files are made under the real one.
struct NodeStart {
  std::string seen_state;
  std::string join_token_file;  // empty: it has joined before
  std::string server;           // where the server is now; empty: where it was
  std::string agent_socket;     // empty: the jailer starts the agent; else it connects there
};
Result<os::SpawnOptions> MakeNodeProcess(const Settings& settings, const NodeStart& start);

// What belongs to this program ("ringfence-jailer", "sim/lib"): beside it in a build, in
// ../lib/ringfence where it is installed.
Result<std::string> OwnPart(const std::string& name);

}  // namespace ringfence::cli

#pragma once

// The agent's own confinement: it talks to the network and reads what strangers wrote, so it
// keeps only what that needs.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::isolate {

struct AgentSandbox {
  std::string state_folder;                  // the only place it may write
  std::vector<std::string> read_paths;       // more to read; one that is not there is passed over
  std::vector<std::uint16_t> connect_ports;  // the server's; enforced where Landlock knows ports
};

// Call it early, before the first thread is started. From then on the process can neither start
// another program or process nor open a file elsewhere, and Landlock and seccomp bind all threads
// started later. An error leaves the process half confined: exit.
Status EnterAgentSandbox(const AgentSandbox& options);

}  // namespace ringfence::isolate

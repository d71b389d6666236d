#pragma once

// The long-running sides of the binary. Only main.cc calls these: the table of commands describes
// them (daemon_commands.cc), and the app hands over once the words and the settings are good.

#include <string>

#include "base/time.h"
#include "cli/settings.h"

namespace ringfence::cli {

struct UpOptions {
  bool detach = false;  // return once all is healthy, and leave it running
  bool quiet = false;
  Milliseconds wait = std::chrono::seconds(60);  // for all to be healthy
};

struct AgentOptions {
  std::string join_token_file;  // empty: this node has joined before
  std::string jailer_socket;    // where a jailer listens; empty: start one
};

struct JailerOptions {
  std::string join_token_file;  // read only while the node has no certificate; may be missing
  std::string agent_socket;     // where its agent will connect
};

// Each returns what to exit with. They print for people on standard output and standard error.
int RunUp(const Settings& settings, const UpOptions& options);
int RunDown(const Settings& settings);
int RunServer(const Settings& settings);
int RunAgent(const Settings& settings, const AgentOptions& options);
int RunJailer(const Settings& settings, const JailerOptions& options);

// The same, as values: what main.cc gives the app.
struct Daemons {
  int (*up)(const Settings&, const UpOptions&) = nullptr;
  int (*down)(const Settings&) = nullptr;
  int (*server)(const Settings&) = nullptr;
  int (*agent)(const Settings&, const AgentOptions&) = nullptr;
  int (*jailer)(const Settings&, const JailerOptions&) = nullptr;
};

}  // namespace ringfence::cli

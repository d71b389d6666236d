// The words of `up`, `down`, `server`, `agent` and `jailer`; what they do is behind daemons.h.

#include "cli/commands.h"
#include "cli/settings.h"

namespace ringfence::cli {

CommandTable DaemonCommands() {
  const OptionSpec listen = SettingOption(Setting::kServerListen);
  const OptionSpec policy = SettingOption(Setting::kPolicyFolder);
  const OptionSpec log_level = SettingOption(Setting::kLogLevel);
  const OptionSpec log_format = SettingOption(Setting::kLogFormat);
  const OptionSpec node_name = SettingOption(Setting::kNodeName);
  const OptionSpec driver_root = SettingOption(Setting::kNodeDriverRoot);
  const OptionSpec scenario = SettingOption(Setting::kNodeScenario);
  const OptionSpec cdi_dir = SettingOption(Setting::kNodeCdiDir);
  return {
      {.path = "up",
       .group = Group::kOperate,
       .summary = "Start a server and a node on this machine, with simulated GPUs if need be.",
       .details = "Stays in the foreground until Ctrl-C. All that it makes lives in the state\n"
                  "folder, and the command line is signed in as its administrator. A node needs\n"
                  "root; without it the server runs and `status` says what is missing.",
       .options = {listen,
                   {.name = "detach",
                    .letter = 'd',
                    .help = "return once all is healthy, and leave it running"},
                   {.name = "wait",
                    .value = "TIME",
                    .help = "how long to wait for all to be healthy (default 60s)"},
                   node_name,
                   driver_root,
                   scenario,
                   cdi_dir,
                   policy,
                   log_level,
                   log_format},
       .examples = {{"ringfence up", "until Ctrl-C"},
                    {"ringfence up --state /var/lib/ringfence --listen 0.0.0.0:8443 --detach",
                     "in the background"},
                    {"ringfence up --state /tmp/second --listen 127.0.0.1:0",
                     "a second one beside it"}}},
      {.path = "down",
       .group = Group::kOperate,
       .summary = "Stop what `up` started, cleanly; its state stays.",
       .examples = {{"ringfence down", "stop it"}}},
      {.path = "server",
       .group = Group::kOperate,
       .summary = "Run only the server (never as root).",
       .options = {listen, policy, log_level, log_format},
       .examples = {{"ringfence server --config /etc/ringfence/ringfence.yaml",
                     "as systemd starts it"}}},
      {.path = "agent",
       .group = Group::kOperate,
       .summary = "Run only a node: a jailer, and the agent that it starts.",
       .details = "With --jailer it is the agent alone, never root, beside a jailer that listens\n"
                  "there: so that a service manager can confine the two apart from each other.",
       .options = {{.name = "join-token",
                    .value = "FILE",
                    .help = "file with the token of `node token create`, for the first start",
                    .completes = Completes::kFile},
                   {.name = "jailer",
                    .value = "SOCKET",
                    .help = "connect to the jailer that listens there instead of starting one",
                    .completes = Completes::kFile},
                   node_name,
                   driver_root,
                   scenario,
                   cdi_dir,
                   log_level,
                   log_format},
       .examples = {{"ringfence agent --join-token join-token", "join, then serve"},
                    {"ringfence agent --jailer /run/ringfence-node/agent.sock",
                     "as systemd starts it"}}},
      {.path = "jailer",
       .group = Group::kOperate,
       .summary = "Run only a node's jailer (root), and let its agent connect.",
       .details =
           "For a service manager, which starts `agent --jailer` beside it. The first of the\n"
           "agent's user to connect is its agent; then the socket is gone. By hand, use\n"
           "`agent`, which is both.",
       .options = {{.name = "socket",
                    .value = "PATH",
                    .help = "where the agent will connect",
                    .completes = Completes::kFile},
                   {.name = "join-token",
                    .value = "FILE",
                    .help = "file with the token of `node token create`; read until it has joined",
                    .completes = Completes::kFile},
                   node_name,
                   driver_root,
                   scenario,
                   cdi_dir,
                   log_format},
       .examples = {{"ringfence jailer --socket /run/ringfence-node/agent.sock --join-token "
                     "/etc/ringfence/join-token",
                     "as systemd starts it"}}},
  };
}

}  // namespace ringfence::cli

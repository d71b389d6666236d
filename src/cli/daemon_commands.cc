// The words of `up`, `down`, `server` and `agent`; what they do is behind daemons.h.

#include "cli/commands.h"
#include "cli/settings.h"

namespace ringfence::cli {

CommandTable DaemonCommands() {
  const OptionSpec listen = SettingOption(Setting::kServerListen);
  const OptionSpec policy = SettingOption(Setting::kPolicyFolder);
  const OptionSpec log_level = SettingOption(Setting::kLogLevel);
  const OptionSpec node_name = SettingOption(Setting::kNodeName);
  const OptionSpec driver_root = SettingOption(Setting::kNodeDriverRoot);
  const OptionSpec scenario = SettingOption(Setting::kNodeScenario);
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
                   policy,
                   log_level},
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
       .options = {listen, policy, log_level},
       .examples = {{"ringfence server --config /etc/ringfence/ringfence.yaml",
                     "as systemd starts it"}}},
      {.path = "agent",
       .group = Group::kOperate,
       .summary = "Run only a node's agent.",
       .options = {{.name = "join-token",
                    .value = "FILE",
                    .help = "file with the token of `node token create`, for the first start",
                    .completes = Completes::kFile},
                   node_name,
                   driver_root,
                   scenario,
                   log_level},
       .examples = {{"ringfence agent --join-token join-token", "join, then serve"}}},
  };
}

}  // namespace ringfence::cli

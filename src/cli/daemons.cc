// `server`, `agent` and `jailer`: from settings to the wired processes.

#include "cli/daemons.h"

#include <charconv>
#include <iostream>

#include "agent/agent.h"
#include "base/code.h"
#include "cli/node_process.h"
#include "cli/up_state.h"
#include "isolate/agent_greeting.h"
#include "isolate/jailer_protocol.h"
#include "os/file.h"
#include "os/identity.h"
#include "os/local_socket.h"
#include "os/log.h"
#include "os/log_format.h"
#include "os/process.h"
#include "os/replace.h"
#include "server/server.h"

namespace ringfence::cli {
namespace {

int Report(const Status& status) {
  if (status.has_value()) {
    return kExitOk;
  }
  std::cerr << "ringfence: " << status.error().message << "\n";
  if (!status.error().hint.empty()) {
    std::cerr << "  " << status.error().hint << "\n";
  }
  return Facts(status.error().code).exit_status;
}

void SetLevel(const Settings& settings) {
  const std::string& level = settings.Text(Setting::kLogLevel);
  os::SetLogLevel(level == "debug"     ? os::Level::kDebug
                  : level == "warning" ? os::Level::kWarning
                  : level == "error"   ? os::Level::kError
                                       : os::Level::kInfo);
  os::SetLogFormat(settings.Text(Setting::kLogFormat) == "json" ? os::LogFormat::kJson
                                                                : os::LogFormat::kText);
}

int FdFrom(const char* variable) {
  const auto text = os::Environment(variable);
  int fd = -1;
  if (text.has_value()) {
    (void)std::from_chars(text->data(), text->data() + text->size(), fd);
  }
  return fd;
}

// Beside the program in a build, in its own folder when installed.
std::string ContentFolder() {
  const auto own = os::OwnPath();
  const std::string folder = own.has_value() ? own->substr(0, own->rfind('/')) : ".";
  return os::IsDirectory(folder + "/content") ? folder + "/content"
                                              : folder + "/../share/ringfence";
}

struct JailerLink {
  os::UniqueFd jailer;
  os::UniqueFd join;  // invalid: this node has joined before
};
Result<JailerLink> ConnectToJailer(const std::string& path) {
  if (os::IsRoot()) {
    return Error{Code::kFailedPrecondition, "the agent never runs as root",
                 "systemctl start ringfence-node starts it as the user ringfence-agent"};
  }
  RINGFENCE_ASSIGN(os::UniqueFd jailer, os::ConnectToRoot(path, isolate::kFrameBytesMax));
  RINGFENCE_ASSIGN(os::UniqueFd join, isolate::ReceiveGreeting(jailer.get()));
  return JailerLink{std::move(jailer), std::move(join)};
}

}  // namespace

int RunServer(const Settings& settings) {
  SetLevel(settings);
  server::ServerOptions options;
  options.state_folder = settings.state() + "/server";
  options.policy_folder = settings.Text(Setting::kPolicyFolder);
  options.policy_instead_of = settings.Number(Setting::kPolicyInsteadOf);
  options.database = settings.Text(Setting::kServerDatabase);
  options.listen = settings.Text(Setting::kServerListen);
  if (settings.Given(Setting::kServerAddress)) {
    options.address = settings.Text(Setting::kServerAddress);
  }
  options.names = settings.Names(Setting::kServerNames);
  options.ca_certificate_file = settings.Text(Setting::kServerCaCertificate);
  options.ca_key_file = settings.Text(Setting::kServerCaKey);
  options.witnesses = settings.Text(Setting::kServerWitnesses);
  options.witness_ca_file = settings.Text(Setting::kServerWitnessCa);
  options.content_folder = ContentFolder();
  options.telemetry_every = std::chrono::seconds(settings.Number(Setting::kServerTelemetrySeconds));
  options.more_rules = settings.Text(Setting::kServerRules);
  options.alert_webhook = settings.Text(Setting::kServerAlertWebhook);
  options.alert_webhook_ca_file = settings.Text(Setting::kServerAlertWebhookCa);
  options.requests_per_second_per_address =
      static_cast<double>(settings.Number(Setting::kServerRequestsPerSecond));
  // Set by `up` alone: how it gets to sign in the local administrator and let its node join.
  options.local_file = os::Environment(kLocalFileVariable).value_or("");
  options.local_node = os::Environment(kLocalNodeVariable).value_or("");
  options.local_principal = "admin";
  return Report(server::Run(options));
}

int RunAgent(const Settings& settings, const AgentOptions& options) {
  SetLevel(settings);
  const int jailer_fd = FdFrom("RINGFENCE_JAILER_FD");
  const std::string server =
      settings.Given(Setting::kClientServer) ? settings.Text(Setting::kClientServer) : "";
  const std::string agent_state = settings.state() + "/node/agent";
  const std::string& name = settings.Text(Setting::kNodeName);
  if (jailer_fd >= 0) {  // started by the jailer: this is the unprivileged half
    return Report(agent::Run({agent_state, name, jailer_fd, FdFrom("RINGFENCE_JOIN_FD"), server}));
  }
  if (!options.jailer_socket.empty()) {  // started beside the jailer: the same half
    auto link = ConnectToJailer(options.jailer_socket);
    if (!link.has_value()) {
      return Report(link.error());
    }
    return Report(
        agent::Run({agent_state, name, link->jailer.Release(), link->join.Release(), server}));
  }
  auto process = MakeNodeProcess(settings, {settings.state(), options.join_token_file, server, ""});
  if (!process.has_value()) {
    return Report(process.error());
  }
  process->fds = {{0, 0}, {1, 1}, {2, 2}};
  constexpr int kSigTerm = 15;
  process->parent_death_signal = kSigTerm;
  const auto pid = os::Spawn(*process);
  if (!pid.has_value()) {
    return Report(pid.error());
  }
  // Signals of the terminal reach the whole group; what is sent to us alone is passed on.
  const auto pidfd = os::OpenProcess(*pid);
  const auto signals = os::OpenSignals({2, 15});
  while (pidfd.has_value() && signals.has_value()) {
    std::vector<os::PollItem> items{{pidfd->get()}, {signals->get()}};
    if (!os::Poll(items, std::nullopt).has_value() || items[0].ready) {
      break;
    }
    if (os::ReadSignal(signals->get()) != 0) {
      (void)os::SendSignal(pidfd->get(), kSigTerm);
    }
  }
  const os::Ended ended = os::WaitFor(*pid);
  return ended.signalled ? 128 + ended.code : ended.code;
}

int RunJailer(const Settings& settings, const JailerOptions& options) {
  const std::string& node = settings.Text(Setting::kNodeName);
  std::string token;
  if (NeedsJoin(settings.state() + "/node/agent/credentials.json", SystemClock().Now())) {
    token = options.join_token_file;
    if (token.empty() || !os::Exists(token)) {
      return Report(Error{Code::kFailedPrecondition, "this node has not joined a server yet",
                          "on the server: `ringfence node token create " + node +
                              "`; here: put what it prints into " +
                              (token.empty() ? "a file for --join-token" : token) +
                              ", readable by root alone"});
    }
  }
  if (options.agent_socket.empty()) {
    return Report(Error{Code::kInvalidArgument, "no --socket for the agent to connect to",
                        "`ringfence agent` runs both in one, without a service manager"});
  }
  auto process = MakeNodeProcess(settings, {settings.state(), token, "", options.agent_socket});
  if (!process.has_value()) {
    return Report(process.error());
  }
  for (const char* name : {"NOTIFY_SOCKET", "JOURNAL_STREAM"}) {
    if (const auto value = os::Environment(name); value.has_value()) {
      process->environment.push_back(std::string(name) + "=" + *value);
    }
  }
  return Report(os::ReplaceSelf(*process));
}

}  // namespace ringfence::cli

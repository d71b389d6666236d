// `server` and `agent`: from settings to the wired processes.

#include "cli/daemons.h"

#include <charconv>
#include <iostream>

#include "agent/agent.h"
#include "base/code.h"
#include "cli/node_process.h"
#include "os/identity.h"
#include "os/log.h"
#include "os/process.h"
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
}

int FdFrom(const char* variable) {
  const auto text = os::Environment(variable);
  int fd = -1;
  if (text.has_value()) {
    (void)std::from_chars(text->data(), text->data() + text->size(), fd);
  }
  return fd;
}

}  // namespace

int RunServer(const Settings& settings) {
  SetLevel(settings);
  server::ServerOptions options;
  options.state_folder = settings.state() + "/server";
  options.policy_folder = settings.Text(Setting::kPolicyFolder);
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
  if (jailer_fd >= 0) {  // started by the jailer: this is the unprivileged half
    return Report(agent::Run(
        {settings.state() + "/node/agent", settings.Text(Setting::kNodeName), jailer_fd,
         FdFrom("RINGFENCE_JOIN_FD"),
         settings.Given(Setting::kClientServer) ? settings.Text(Setting::kClientServer) : ""}));
  }
  auto process = MakeNodeProcess(
      settings,
      {settings.state(), options.join_token_file,
       settings.Given(Setting::kClientServer) ? settings.Text(Setting::kClientServer) : ""});
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

}  // namespace ringfence::cli

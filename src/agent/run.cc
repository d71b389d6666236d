#include <cstdint>

#include "agent/agent.h"
#include "agent/credentials.h"
#include "agent/process.h"
#include "audit/note.h"
#include "base/encoding.h"
#include "crypto/random.h"
#include "isolate/agent_sandbox.h"
#include "net/address.h"
#include "os/file.h"
#include "os/log.h"
#include "os/signals.h"

namespace ringfence::agent {
namespace {

constexpr std::size_t kJoinBytesMax = 4096;

Result<crypto::SigningKey> OpenWitnessKey(const std::string& path) {
  const auto text = os::ReadText(path, 256);
  if (text.has_value()) {
    RINGFENCE_ASSIGN(Bytes seed, FromBase64(*text));
    return crypto::SigningKey::FromSeed(SecretBytes(std::move(seed)));
  }
  if (text.error().code != Code::kNotFound) {
    return text.error();
  }
  SecretBytes seed = crypto::RandomSecret(32);
  RINGFENCE_TRY(os::CreateFileDurable(path, AsBytes(Base64(seed.Reveal())), 0600));
  return crypto::SigningKey::FromSeed(std::move(seed));
}

std::string WitnessName(const std::string& node) { return "ringfence.dev/node/" + node; }

Result<Credentials> JoinOrLoad(const AgentOptions& options, isolate::JailerClient& jailer,
                               const std::optional<isolate::AgentJoin>& join,
                               const crypto::SigningKey& witness_key) {
  const std::string path = options.state_folder + "/credentials.json";
  if (join.has_value()) {
    RINGFENCE_ASSIGN(const isolate::JailerHello hello, jailer.Hello());
    RINGFENCE_ASSIGN(const Credentials made, Join(*join, hello,
                                                  audit::VerifierKey(WitnessName(options.node), 4,
                                                                     witness_key.public_key()),
                                                  options.node));
    RINGFENCE_TRY(SaveCredentials(path, made));
    os::Log(os::Level::kInfo, "joined", {{"server", made.server}, {"node", options.node}});
    return made;
  }
  auto loaded = LoadCredentials(path);
  if (!loaded.has_value() && loaded.error().code == Code::kNotFound) {
    return Error{Code::kFailedPrecondition, "this node has not joined a server yet",
                 "on the server: `ringfence node token create " + options.node +
                     "`; here: `ringfence agent --join FILE`"};
  }
  return loaded;
}

std::vector<std::uint16_t> PortsOf(const std::string& servers) {
  std::vector<std::uint16_t> ports;
  const auto addresses = net::ParseAddresses(servers);
  if (addresses.has_value()) {
    for (const net::Address& address : *addresses) {
      ports.push_back(address.port);
    }
  }
  return ports;
}

}  // namespace

Status Run(const AgentOptions& options) {
  os::SetLogName("agent");
  os::HoldSignals();
  std::optional<isolate::AgentJoin> join;
  if (options.join_fd >= 0) {
    const os::UniqueFd fd(options.join_fd);
    Bytes text(kJoinBytesMax);
    RINGFENCE_ASSIGN(const std::size_t got, os::ReadSome(fd.get(), text));
    RINGFENCE_ASSIGN(join, isolate::ParseAgentJoin(AsText(ByteView(text).first(got))));
  }
  const std::string credentials_path = options.state_folder + "/credentials.json";
  std::string server = options.server.empty() && join.has_value() ? join->server : options.server;
  if (server.empty()) {
    const auto loaded = LoadCredentials(credentials_path);
    server = loaded.has_value() ? loaded->server : "";
  }
  RINGFENCE_TRY(isolate::EnterAgentSandbox({options.state_folder, {}, PortsOf(server)}));

  // At once: whoever waits for the jailer would take its end for a scrub or a start that failed,
  // and tell the server so. The next pair knows better.
  const auto jailer = isolate::JailerClient::Attach(os::UniqueFd(options.jailer_fd), [] {
    EndProcess(Error{Code::kUnavailable, "the jailer ended the pair"});
  });
  RINGFENCE_ASSIGN(crypto::SigningKey witness_key,
                   OpenWitnessKey(options.state_folder + "/witness.key"));
  RINGFENCE_ASSIGN(Credentials credentials, JoinOrLoad(options, *jailer, join, witness_key));
  credentials.server = server;
  RINGFENCE_ASSIGN(const audit::NamedKey log_key, audit::ParseVerifierKey(credentials.log_vkey));
  RINGFENCE_ASSIGN(
      audit::Witness witness,
      audit::Witness::Open(options.state_folder + "/witness.state", WitnessName(options.node),
                           std::move(witness_key), log_key));
  CredentialHolder holder(credentials);
  RINGFENCE_TRY(jailer->Hello());
  ProcessSurroundings surroundings(holder);
  return Tend({options.node, credentials_path, *jailer, holder, witness, surroundings,
               options.state_folder + "/telemetry"});
}

}  // namespace ringfence::agent

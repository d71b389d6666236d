#include "isolate/agent_greeting.h"

#include "os/memory_file.h"
#include "os/socket_pair.h"

namespace ringfence::isolate {
namespace {

constexpr std::string_view kJoin = "ringfence jailer v1: join\n";
constexpr std::string_view kServe = "ringfence jailer v1: serve\n";
constexpr std::size_t kGreetingBytesMax = 64;

}  // namespace

Result<os::UniqueFd> MakeJoinFile(const AgentJoin& join) {
  return os::MakeMemoryFile("ringfence-join", AsBytes(FormatAgentJoin(join)));
}

Status SendGreeting(int socket, const AgentJoin* join) {
  if (join == nullptr) {
    return os::SendMessage(socket, AsBytes(kServe));
  }
  RINGFENCE_ASSIGN(const os::UniqueFd file, MakeJoinFile(*join));
  return os::SendMessage(socket, AsBytes(kJoin), {file.get()});
}

Result<os::UniqueFd> ReceiveGreeting(int socket) {
  RINGFENCE_ASSIGN(os::Message message, os::ReceiveMessage(socket, kGreetingBytesMax));
  const std::string_view text = AsText(message.bytes);
  if (text == kServe && message.fds.empty()) {
    return os::UniqueFd();
  }
  if (text == kJoin && message.fds.size() == 1) {
    return std::move(message.fds.front());
  }
  return Error{Code::kFailedPrecondition, "what listens there is not a jailer of this version",
               "restart both: systemctl restart ringfence-node"};
}

}  // namespace ringfence::isolate

// Goal: let this test program stand in for the agent that a jailer starts.
// Method: before main(), when started with the word "relay-to-test" and a socket's path, pass
// descriptor 3 (the agent's end of the pair) to the test over that socket, wait until the test
// closes it, and exit with the status it sent last.

#include <sys/prctl.h>

#include <cerrno>

#include "jailer/agent_process.h"
#include "jailer/harness_test.h"

namespace ringfence::jailer {
namespace {

__attribute__((constructor)) void RelayIfAsked(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], kRelayWord) != 0) {
    return;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, argv[2], sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      !os::SendMessage(fd, AsBytes("pair"), {kAgentSocketFd}).has_value()) {
    _exit(99);
  }
  (void)close(kAgentSocketFd);  // the test holds the only copy
  // What this process is, for the test to look at.
  const std::string facts = os::ReadText("/proc/self/status", 65536).value() + "join " +
                            (getenv("RINGFENCE_JOIN_FD") != nullptr ? ReadToEnd(kAgentJoinFd) : "");
  (void)os::SendMessage(fd, AsBytes(facts));
  int status = 0;
  for (;;) {
    char byte = 0;
    const ssize_t got = read(fd, &byte, 1);
    if (got == 1) {
      status = byte;
    } else if (got == 0 || errno != ECONNRESET) {
      break;
    }  // else the test closed without having read our facts: what it sent before comes next
  }
  _exit(status);
}

}  // namespace
}  // namespace ringfence::jailer

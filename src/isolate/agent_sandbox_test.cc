// Goal: inside the agent's sandbox a file elsewhere, another program, another process and another
// port cannot be reached, and its own work still can.
// Method: a child process enters the sandbox and tries each; every answer is a bit of its exit
// status.

#include "isolate/agent_sandbox.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <thread>

#include "os/file.h"
#include "os/landlock.h"

namespace ringfence::isolate {
namespace {

class AgentSandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (os::LandlockAbi() < 4) {
      GTEST_SKIP() << "needs a kernel whose Landlock knows ports (Linux 6.7)";
    }
    char name[] = "/tmp/ringfence-sandbox-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) {
      (void)os::RemoveTree(folder_);
    }
  }
  // Exit status of a child that entered the sandbox and did `work`; 200 if it could not enter.
  int Inside(const std::function<int()>& work, std::uint16_t port = 443) {
    const pid_t pid = fork();
    if (pid == 0) {
      const Status entered = EnterAgentSandbox({folder_, {}, {port}});
      _exit(entered.has_value() ? work() : 200);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string folder_;
};

TEST_F(AgentSandboxTest, OwnWorkStillWorks) {
  EXPECT_EQ(Inside([&] {
              if (!os::WriteFileDurable(folder_ + "/x", AsBytes("y")).has_value()) {
                return 1;
              }
              int seen = 0;
              std::thread([&] { seen = 1; }).join();
              if (seen != 1) {
                return 2;
              }
              return os::ReadText("/etc/hosts", 1 << 20U).has_value() ? 0 : 3;
            }),
            0);
}

TEST_F(AgentSandboxTest, NothingElse) {
  EXPECT_EQ(Inside([] { return os::ReadText("/etc/hostname", 4096).has_value() ? 1 : 0; }), 0);
  EXPECT_EQ(Inside([] { return os::WriteFile("/tmp/escaped", {}).has_value() ? 1 : 0; }), 0);
  EXPECT_EQ(Inside([] {
              (void)execl("/bin/true", "true", nullptr);
              return errno == EPERM ? 0 : 1;
            }),
            0);
  EXPECT_EQ(Inside([] { return fork() < 0 && errno == EPERM ? 0 : 1; }), 0);
  EXPECT_EQ(Inside([] { return syscall(SYS_ptrace, 0, 0, 0, 0) < 0 && errno == EPERM ? 0 : 1; }),
            0);
  EXPECT_EQ(Inside([] { return syscall(SYS_bpf, 0, 0, 0) < 0 && errno == EPERM ? 0 : 1; }), 0);
  EXPECT_EQ(Inside([] { return socket(AF_PACKET, SOCK_RAW, 0) < 0 ? 0 : 1; }), 0);
  EXPECT_EQ(Inside([] { return socket(AF_INET, SOCK_RAW, 1) < 0 ? 0 : 1; }), 0);
  // Rubbish in the half of the argument that the kernel does not look at must not help.
  EXPECT_EQ(Inside([] {
              return syscall(SYS_socket, 0x100000011ULL, 3, 0) < 0 && errno == EAFNOSUPPORT ? 0 : 1;
            }),
            0);
}

TEST_F(AgentSandboxTest, OnlyTheServersPort) {
  const auto connect_to = [](std::uint16_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0
                                                                                         : errno;
  };
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  EXPECT_EQ(Inside([&] { return connect_to(port); }, port), 0);
  EXPECT_EQ(Inside([&] { return connect_to(port); }, port == 443 ? 444 : 443), EACCES);
  close(listener);
}

}  // namespace
}  // namespace ringfence::isolate

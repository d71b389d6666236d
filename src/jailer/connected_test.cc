// Goal: an agent that a service manager started beside the jailer gets the same pair as one that
// the jailer started: only its user can connect, once; a breach or its end ends the jailer. Method:
// the real jailer, listening at a path; this test connects as root, as a stranger and as the
// agent's user.

#include <sys/stat.h>

#include "isolate/agent_greeting.h"
#include "isolate/jailer_protocol.h"
#include "jailer/harness_test.h"
#include "jailer/service.h"
#include "os/local_socket.h"

namespace ringfence::jailer {
namespace {

class ConnectedTest : public JailerTest {
 protected:
  std::string Path() const { return folder_ + "/agent.sock"; }

  // Returns once the jailer listens, which is when it tells its manager so.
  void Begin() {
    const std::string manager_path = folder_ + "/notify";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, manager_path.c_str(), sizeof address.sun_path - 1);
    const os::UniqueFd manager(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(manager.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    std::vector<std::string> arguments = Arguments();
    arguments.resize(arguments.size() - 3);  // what follows "--" is for an agent to be started
    for (std::string& word : arguments) {
      word = word == "--agent-exec" ? "--agent-socket" : word == "/proc/self/exe" ? Path() : word;
    }
    os::SpawnOptions spawn;
    spawn.path = Binary("ringfence-jailer");
    spawn.arguments = arguments;
    spawn.environment = {"PATH=/usr/bin:/bin", "NOTIFY_SOCKET=" + manager_path};
    spawn.fds = {{1, 1}, {2, 2}};
    const auto pid = os::Spawn(spawn);
    ASSERT_TRUE(pid.has_value()) << pid.error().message;
    jailer_pid_ = *pid;
    process_ = std::move(os::OpenProcess(jailer_pid_).value());
    std::vector<os::PollItem> either = {{manager.get()}, {process_.get()}};
    ASSERT_TRUE(os::Poll(either, std::nullopt).has_value());
    ASSERT_TRUE(either[0].ready) << "the jailer ended before it listened";
  }

  Result<os::UniqueFd> ConnectAs(unsigned uid) {
    EXPECT_EQ(seteuid(uid), 0);
    auto connected = os::ConnectToRoot(Path(), isolate::kFrameBytesMax);
    EXPECT_EQ(seteuid(0), 0);
    return connected;
  }

  void ConnectAgent() {
    auto connected = ConnectAs(kTestAgentUid);
    ASSERT_TRUE(connected.has_value()) << connected.error().message;
    socket_ = std::move(*connected);
    auto join = isolate::ReceiveGreeting(socket_.get());
    ASSERT_TRUE(join.has_value()) << join.error().message;
    join_ = std::move(*join);
  }

  os::UniqueFd process_;
  os::UniqueFd join_;
};

TEST_F(ConnectedTest, OnlyTheAgentsUserGetsThePairAndOnlyOnce) {
  Begin();
  ASSERT_FALSE(HasFatalFailure());
  struct stat facts{};
  ASSERT_EQ(stat(Path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0600U);
  EXPECT_EQ(facts.st_uid, kTestAgentUid);
  EXPECT_EQ(ConnectAs(kTestAgentUid + 1).error().code, Code::kPermissionDenied);

  // Root passes the mode, and is hung up on all the same.
  const auto root = ConnectAs(0);
  ASSERT_TRUE(root.has_value()) << root.error().message;
  EXPECT_EQ(os::ReceiveMessage(root->get(), 64).error().code, Code::kNotFound);

  ConnectAgent();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(join_.valid());
  client_ = isolate::JailerClient::Attach(std::move(socket_));
  const auto hello = client_->Hello();
  ASSERT_TRUE(hello.has_value()) << hello.error().message;
  EXPECT_FALSE(hello->key_proof.empty());
  EXPECT_FALSE(os::Exists(Path()));
  EXPECT_EQ(ConnectAs(kTestAgentUid).error().code, Code::kNotFound);
  EXPECT_EQ(Shell("echo hello").out, "hello\n");
}

TEST_F(ConnectedTest, TheJailerEndsWithItsAgentAndItsBoxes) {
  Begin();
  ASSERT_FALSE(HasFatalFailure());
  ConnectAgent();
  ASSERT_FALSE(HasFatalFailure());
  client_ = isolate::JailerClient::Attach(std::move(socket_));
  const isolate::Grant grant = MakeGrant({"sleep", "1000"});
  auto box = client_->Start(isolate::SealGrant(server_, grant));
  ASSERT_TRUE(box.has_value()) << box.error().message;
  const os::Ended ended = Stop();
  EXPECT_FALSE(ended.signalled);
  EXPECT_EQ(ended.code, 0);
  EXPECT_FALSE(os::CgroupExists("/ringfence/" + node_ + "/" + grant.lease));
}

TEST_F(ConnectedTest, ABreachEndsThePair) {
  Begin();
  ASSERT_FALSE(HasFatalFailure());
  ConnectAgent();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(os::SendMessage(socket_.get(), AsBytes("nonsense")).has_value());
  EXPECT_EQ(os::ReceiveMessage(socket_.get(), 64).error().code, Code::kNotFound);
  const os::Ended ended = os::WaitFor(jailer_pid_);
  jailer_pid_ = 0;
  EXPECT_EQ(ended.code, kExitPairEnded);
  EXPECT_FALSE(os::ListDir(folder_ + "/private/state/incidents")->empty());
}

TEST_F(ConnectedTest, ToldToStopWhileItWaitsItGoesAndTakesThePathWithIt) {
  Begin();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(os::SendSignal(process_.get(), 15).has_value());
  const os::Ended ended = os::WaitFor(jailer_pid_);
  jailer_pid_ = 0;
  EXPECT_EQ(ended.code, 0);
  EXPECT_FALSE(ended.signalled);
  EXPECT_FALSE(os::Exists(Path()));
}

}  // namespace
}  // namespace ringfence::jailer

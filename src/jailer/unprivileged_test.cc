// Goal: started by someone who is not root, the jailer still runs: it says what is missing, reads
// the inventory, and refuses boxes and scrubs with the reason.
// Method: the real jailer as another user, with copies of the programs where that user can read.

#include "jailer/harness_test.h"
#include "os/identity.h"
#include "os/privileges.h"

namespace ringfence::jailer {
namespace {

class UnprivilegedTest : public JailerTest {
 protected:
  void LaunchAsUser() {
    const std::string copies = folder_ + "/private";
    for (const char* name : {"ringfence-worker", "ringfence-init"}) {
      std::filesystem::copy_file(Binary(name), copies + "/" + name);
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(copies)) {
      ASSERT_EQ(lchown(entry.path().c_str(), kTestAgentUid, kTestAgentUid), 0);
    }
    ASSERT_EQ(chown(copies.c_str(), kTestAgentUid, kTestAgentUid), 0);
    std::vector<std::string> arguments = Arguments();
    for (std::string& word : arguments) {
      for (const char* name : {"ringfence-worker", "ringfence-init"}) {
        word = word == Binary(name) ? copies + "/" + name : word;
      }
      word = word == "/proc/self/exe" ? std::filesystem::read_symlink(word).string() : word;
    }
    const auto program = os::OpenRead(Binary("ringfence-jailer"));
    os::SpawnOptions spawn;
    spawn.exec_fd = program->get();
    spawn.arguments = arguments;
    spawn.fds = {{1, 1}, {2, 2}};
    spawn.before_exec = [] { return os::BecomeUser(kTestAgentUid, kTestAgentUid); };
    const auto pid = os::Spawn(spawn);
    ASSERT_TRUE(pid.has_value()) << pid.error().message;
    jailer_pid_ = *pid;
    Accept();
    client_ = isolate::JailerClient::Attach(std::move(socket_));
  }
};

TEST_F(UnprivilegedTest, RunsAndSaysWhatIsMissing) {
  LaunchAsUser();
  ASSERT_FALSE(HasFatalFailure());
  const auto hello = client_->Hello();
  ASSERT_TRUE(hello.has_value());
  ASSERT_EQ(hello->missing.size(), 1U);
  EXPECT_TRUE(hello->missing[0].starts_with("not root")) << hello->missing[0];
  const std::vector<std::string> gpus = Gpus();
  EXPECT_EQ(gpus.size(), 8U);
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, MakeGrant({"true"}))), Code::kFailedPrecondition);
  EXPECT_EQ(client_->Scrub("", gpus).error().code, Code::kFailedPrecondition);
  EXPECT_TRUE(client_->List()->empty());
}

}  // namespace
}  // namespace ringfence::jailer

// Goal: kill -9 of the jailer leaves nothing running, and the next jailer knows what there was.
// Method: kill it in the middle of a lease on a GPU; look for processes, cgroups and mounts by the
// lease's name; start another on the same state.

#include <signal.h>

#include <fstream>
#include <thread>

#include "isolate/jailer_protocol.h"
#include "jailer/harness_test.h"
#include "os/cgroup.h"

namespace ringfence::jailer {
namespace {

class CrashTest : public JailerTest {
 protected:
  // The agent dies with the jailer; both are waited for.
  void KillJailer() {
    ASSERT_EQ(kill(jailer_pid_, SIGKILL), 0);
    (void)os::WaitFor(jailer_pid_);
    jailer_pid_ = 0;
    if (client_ != nullptr) {
      EXPECT_FALSE(client_->List().has_value());
      // Asked by the agent before it tells the server that a scrub has failed.
      EXPECT_FALSE(client_->Hello().has_value()) << "the pair has ended";
    }
    client_.reset();
    (void)ReadToEnd(relay_.get());  // returns when the agent is gone too
    relay_.Reset();
  }

  static std::string MountsOfHost() {
    std::ifstream file("/proc/self/mountinfo");
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(CrashTest, TheNextJailerEndsTheBox) {
  const std::string mounts_before = MountsOfHost();
  Start();
  const std::vector<std::string> gpus = Gpus();
  ASSERT_TRUE(client_->Scrub("", {gpus[0]}).has_value());
  const isolate::Grant grant = MakeGrant({"sh", "-c", "echo up; exec sleep 1000"}, {gpus[0]});
  auto box = client_->Start(isolate::SealGrant(server_, grant));
  ASSERT_TRUE(box.has_value()) << box.error().message;
  char up[3];
  ASSERT_EQ(read(box->out.get(), up, sizeof up), 3);
  const std::string cgroup = "/ringfence/" + node_ + "/" + grant.lease;
  ASSERT_FALSE(os::CgroupProcesses(cgroup)->empty());
  KillJailer();
  // The box ends by itself with its jailer: its output closes without anyone's help.
  EXPECT_EQ(ReadToEnd(box->out.get()), "");
  EXPECT_EQ(ReadToEnd(box->exit.get()), "");  // nobody was left to say how

  Start();
  EXPECT_TRUE(os::CgroupProcesses(cgroup)->empty());
  EXPECT_FALSE(os::CgroupExists(cgroup));
  EXPECT_EQ(MountsOfHost(), mounts_before);
  const auto records = client_->List();
  ASSERT_TRUE(records.has_value());
  ASSERT_EQ(records->size(), 1U);
  EXPECT_EQ((*records)[0].lease, grant.lease);
  EXPECT_EQ((*records)[0].state, isolate::BoxState::kEnded);
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, grant)), Code::kConflict);
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, MakeGrant({"true"}, {gpus[0]}))),
            Code::kFailedPrecondition);
  ASSERT_TRUE(client_->Scrub(grant.lease, {}).has_value());
  EXPECT_EQ(Run(MakeGrant({"true"}, {gpus[0]})).exit, "exited 0\n");
}

TEST_F(CrashTest, KilledAtAnyMomentOfAStart) {
  for (int delay_ms = 0; delay_ms <= 100; delay_ms += 10) {
    Launch();
    ASSERT_TRUE(os::SendMessage(socket_.get(), isolate::EncodeRequest({1, isolate::HelloRequest{}}))
                    .has_value());
    const isolate::Grant grant = MakeGrant({"sleep", "1000"});
    ASSERT_TRUE(os::SendMessage(socket_.get(),
                                isolate::EncodeRequest(
                                    {2, isolate::StartRequest{isolate::SealGrant(server_, grant)}}))
                    .has_value());
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));  // where to cut, not a wait
    KillJailer();
    socket_.Reset();
    Start();
    const std::string cgroup = "/ringfence/" + node_ + "/" + grant.lease;
    EXPECT_TRUE(os::CgroupProcesses(cgroup)->empty()) << delay_ms;
    EXPECT_FALSE(os::CgroupExists(cgroup)) << delay_ms;
    const auto records = client_->List();
    ASSERT_TRUE(records.has_value());
    for (const isolate::BoxRecord& record : *records) {
      EXPECT_EQ(record.state, isolate::BoxState::kEnded);
      ASSERT_TRUE(client_->Scrub(record.lease, {}).has_value());
      ASSERT_TRUE(client_->Forget(record.lease).has_value());
    }
    Stop();
  }
}

}  // namespace
}  // namespace ringfence::jailer

// Goal: a granted command runs in a box, its output, exit and limits are as promised, and nothing
// of it is left.
// Method: the real jailer, runtime and kernel (see harness_test.h).

#include <signal.h>

#include "jailer/harness_test.h"
#include "os/cgroup.h"

namespace ringfence::jailer {
namespace {

using BoxTest = JailerTest;

TEST_F(BoxTest, TrueRunsAndNothingIsLeft) {
  Start();
  const isolate::Grant grant = MakeGrant({"true"});
  const Ran ran = Run(grant);
  EXPECT_EQ(ran.exit, "exited 0\n") << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_FALSE(os::CgroupExists("/ringfence/" + node_ + "/" + grant.lease));
  const auto records = client_->List();
  ASSERT_TRUE(records.has_value());
  ASSERT_EQ(records->size(), 1U);
  EXPECT_EQ((*records)[0].state, isolate::BoxState::kEnded);
}

TEST_F(BoxTest, ExitCodesSignalsAndOutputPass) {
  Start();
  const Ran code = Shell("echo out; echo err >&2; exit 42");
  EXPECT_EQ(code.exit, "exited 42\n");
  EXPECT_EQ(code.out, "out\n");
  EXPECT_EQ(code.err, "err\n");
  EXPECT_EQ(Shell("kill -SEGV $$").exit, "signalled 11\n");
  EXPECT_EQ(Shell("kill -KILL $$").exit, "signalled 9\n");
  const Ran none = Run(MakeGrant({"no-such-program"}));
  EXPECT_EQ(none.exit, "exited 127\n");
  EXPECT_EQ(none.err, "ringfence: no-such-program: command not found in the box\n");
  EXPECT_EQ(Run(MakeGrant({"/etc/passwd"})).exit, "exited 126\n");
  EXPECT_EQ(Shell("head -c 3000000 /dev/zero").out.size(), 3000000U);
  EXPECT_EQ(Shell("echo again > /dev/stdout").out, "again\n");
}

TEST_F(BoxTest, ChildrenOfTheJobDoNotOutliveIt) {
  Start();
  const Ran ran = Shell("(setsid sleep 1000 >/dev/null 2>&1 &) ; echo started");
  EXPECT_EQ(ran.out, "started\n");
  EXPECT_EQ(ran.exit, "exited 0\n");
}

TEST_F(BoxTest, EnvironmentIsTheGrantsAndNotTheHosts) {
  Start();
  isolate::Grant grant = MakeGrant({"env"});
  grant.environment = {{"COLOUR", "blue; $(id)"}, {"RINGFENCE_TENANT", "someone/else"}};
  const Ran ran = Run(grant);
  EXPECT_NE(ran.out.find("COLOUR=blue; $(id)\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("RINGFENCE_LEASE=" + grant.lease + "\n"), std::string::npos);
  EXPECT_NE(ran.out.find("RINGFENCE_TENANT=acme/research/vision\n"), std::string::npos);
  EXPECT_EQ(ran.out.find("someone/else"), std::string::npos);
  EXPECT_EQ(ran.out.find("SECRET_OF_THE_HOST"), std::string::npos);
}

TEST_F(BoxTest, MemoryLimitEndsTheJobAndSaysOom) {
  Start();
  isolate::Grant grant = MakeGrant({"sh", "-c", "x=$(head -c 200000000 /dev/zero | tr '\\0' x)"});
  grant.memory_bytes_max = std::uint64_t{64} << 20U;
  EXPECT_EQ(Run(grant).exit, "oom\n");
}

TEST_F(BoxTest, TmpIsBoundedByMemory) {
  Start();
  isolate::Grant grant =
      MakeGrant({"sh", "-c", "head -c 100000000 /dev/zero > /tmp/big; stat -c %s /tmp/big"});
  grant.memory_bytes_max = std::uint64_t{64} << 20U;
  const Ran ran = Run(grant);
  EXPECT_NE(ran.err.find("No space left"), std::string::npos) << ran.exit << ran.err;
}

TEST_F(BoxTest, ForkBombIsContained) {
  Start();
  isolate::Grant grant = MakeGrant(
      {"sh", "-c", "n=0; while [ $n -lt 500 ]; do sleep 100 & n=$((n+1)); done; echo all"});
  grant.pids_max = 40;
  const Ran ran = Run(grant);
  EXPECT_EQ(ran.out.find("all"), std::string::npos);
  EXPECT_NE(ran.err.find("fork"), std::string::npos) << ran.err;
}

TEST_F(BoxTest, TimeoutEndsIt) {
  Start();
  isolate::Grant grant = MakeGrant({"sleep", "1000"});
  grant.runtime_max = std::chrono::milliseconds(300);
  EXPECT_EQ(Run(grant).exit, "timeout\n");
}

TEST_F(BoxTest, EndSendsTermFirst) {
  Start();
  const isolate::Grant grant = MakeGrant(
      {"sh", "-c", "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.1; done"});
  auto box = client_->Start(isolate::SealGrant(server_, grant));
  ASSERT_TRUE(box.has_value()) << box.error().message;
  char ready[6];
  ASSERT_EQ(read(box->out.get(), ready, sizeof ready), 6);
  ASSERT_TRUE(client_->End(grant.lease).has_value());
  const Ran ran = Collect(std::move(*box));
  EXPECT_EQ(ran.out, "bye\n");
  EXPECT_EQ(ran.exit, "exited 7\n");
  EXPECT_TRUE(client_->End(grant.lease).has_value());  // ended already: fine
  EXPECT_EQ(client_->End("lease-nobody-knows").error().code, Code::kNotFound);
}

TEST_F(BoxTest, EndRightAfterStartIsNotLost) {
  Start();
  for (int i = 0; i < 10; ++i) {
    const isolate::Grant grant = MakeGrant({"sleep", "1000"});
    auto box = client_->Start(isolate::SealGrant(server_, grant));
    ASSERT_TRUE(box.has_value()) << box.error().message;
    ASSERT_TRUE(client_->End(grant.lease).has_value());
    EXPECT_EQ(Collect(std::move(*box)).exit, "signalled 15\n");
  }
}

TEST_F(BoxTest, SeveralAtOnce) {
  Start();
  std::vector<isolate::StartedBox> boxes;
  for (int i = 0; i < 4; ++i) {
    auto box = client_->Start(
        isolate::SealGrant(server_, MakeGrant({"sh", "-c", "id -u; exit " + std::to_string(i)})));
    ASSERT_TRUE(box.has_value()) << box.error().message;
    boxes.push_back(std::move(*box));
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Collect(std::move(boxes[static_cast<std::size_t>(i)])).exit,
              "exited " + std::to_string(i) + "\n");
  }
}

TEST_F(BoxTest, AgentIsUnprivilegedAndGetsOnlyItsHalfOfTheSecret) {
  Launch();
  auto facts = os::ReceiveMessage(relay_.get(), 65536);
  ASSERT_TRUE(facts.has_value());
  const std::string text = ToText(facts->bytes);
  const std::string uid = std::to_string(kTestAgentUid);
  EXPECT_NE(text.find("Uid:\t" + uid + "\t" + uid + "\t" + uid), std::string::npos) << text;
  EXPECT_NE(text.find("Groups:\t \n"), std::string::npos);
  EXPECT_NE(text.find("CapPrm:\t0000000000000000"), std::string::npos);
  EXPECT_NE(text.find("CapBnd:\t0000000000000000"), std::string::npos);
  EXPECT_NE(text.find("NoNewPrivs:\t1"), std::string::npos);
  const auto join = isolate::ParseAgentJoin(text.substr(text.find("join ") + 5));
  ASSERT_TRUE(join.has_value());
  const SecretBytes secret{ByteView(join_secret_)};
  EXPECT_TRUE(join->secret.Equals(isolate::AgentHalf(secret).Reveal()));
  EXPECT_EQ(text.find(Base64Url(join_secret_)), std::string::npos);

  client_ = isolate::JailerClient::Attach(std::move(socket_));
  const auto hello = client_->Hello();
  ASSERT_TRUE(hello.has_value());
  EXPECT_TRUE(hello->missing.empty());
  const auto key = crypto::PublicKey::FromRaw(FromBase64(hello->public_key).value()).value();
  EXPECT_EQ(hello->key_proof, isolate::JailerKeyProof(isolate::JailerHalf(secret), key));
}

TEST_F(BoxTest, JailerExitsWithTheAgentsStatus) {
  Start();
  const char status = 9;
  ASSERT_EQ(write(relay_.get(), &status, 1), 1);
  const os::Ended ended = Stop();
  EXPECT_FALSE(ended.signalled);
  EXPECT_EQ(ended.code, 9);
}

}  // namespace
}  // namespace ringfence::jailer

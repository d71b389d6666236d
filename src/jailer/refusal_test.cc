// Goal: a taken-over agent gets nothing: no ungranted box, no replay, no GPU that was not scrubbed,
// no forged receipt; and what it tries out of turn ends the pair and is remembered, signed.
// Method: the test holds the agent's end of a real jailer's socketpair and misuses it.

#include <fcntl.h>

#include "isolate/incident.h"
#include "isolate/jailer_protocol.h"
#include "jailer/harness_test.h"
#include "jailer/service.h"

namespace ringfence::jailer {
namespace {

class RefusalTest : public JailerTest {
 protected:
  // Sends raw bytes as the agent's first message (after Hello if asked) and expects the pair to
  // end; returns the incident that the next jailer delivers.
  isolate::Incident Break(bool hello_first, ByteView bytes, const std::vector<int>& fds = {}) {
    Launch();
    if (hello_first) {
      Say(isolate::EncodeRequest({1, isolate::HelloRequest{}}));
      EXPECT_TRUE(os::ReceiveMessage(socket_.get(), isolate::kFrameBytesMax).has_value());
    }
    EXPECT_TRUE(os::SendMessage(socket_.get(), bytes, fds).has_value());
    while (os::ReceiveMessage(socket_.get(), isolate::kFrameBytesMax).has_value()) {
    }
    const os::Ended ended = os::WaitFor(jailer_pid_);
    jailer_pid_ = 0;
    EXPECT_EQ(ended.code, kExitPairEnded);
    return DeliverIncident();
  }

  void Say(const Bytes& frame) { ASSERT_TRUE(os::SendMessage(socket_.get(), frame).has_value()); }

  isolate::Incident DeliverIncident() {
    relay_.Reset();
    socket_.Reset();
    Start();
    const auto incidents = client_->Incidents();
    EXPECT_TRUE(incidents.has_value());
    EXPECT_EQ(incidents->size(), 1U);
    if (!incidents.has_value() || incidents->empty()) {
      return {};
    }
    const auto key = crypto::PublicKey::FromRaw(FromBase64(client_->Hello()->public_key).value());
    auto incident = isolate::OpenIncident(*key, incidents->front());
    EXPECT_TRUE(incident.has_value());
    EXPECT_EQ(client_->AckIncidents(2).error().code, Code::kInvalidArgument);
    EXPECT_TRUE(client_->AckIncidents(1).has_value());
    EXPECT_TRUE(client_->Incidents()->empty());
    Stop();
    return incident.value();
  }
};

TEST_F(RefusalTest, ForgedGrants) {
  Start();
  const isolate::Grant grant = MakeGrant({"true"});
  const crypto::SigningKey other = crypto::SigningKey::Generate();
  EXPECT_EQ(StartCode(isolate::SealGrant(other, grant)), Code::kPermissionDenied);
  std::string damaged = isolate::SealGrant(server_, grant);
  const std::size_t at = damaged.find("\"payload\":\"") + 30;
  damaged[at] = damaged[at] == 'A' ? 'B' : 'A';
  EXPECT_EQ(StartCode(damaged), Code::kPermissionDenied);
  EXPECT_EQ(StartCode("{}"), Code::kInvalidArgument);

  isolate::Grant elsewhere = grant;
  elsewhere.node = "another";
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, elsewhere)), Code::kPermissionDenied);
  isolate::Grant late = grant;
  late.issued -= std::chrono::hours(2);
  late.start_before = clock_.Now() - std::chrono::seconds(1);
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, late)), Code::kPermissionDenied);
  isolate::Grant early = grant;
  early.issued += std::chrono::hours(2);
  early.start_before += std::chrono::hours(2);
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, early)), Code::kPermissionDenied);
  // None of these used the lease up.
  EXPECT_EQ(Run(grant).exit, "exited 0\n");
}

TEST_F(RefusalTest, WallsAreTakenAwayForTheProbeAlone) {
  Start();
  const auto code = [&](std::vector<std::string> command, std::vector<std::string> walls) {
    isolate::Grant grant = MakeGrant(std::move(command));
    grant.box.walls_away = std::move(walls);
    return StartCode(isolate::SealGrant(server_, grant));
  };
  EXPECT_EQ(code({"/bin/sh"}, {"seccomp"}), Code::kPermissionDenied);
  EXPECT_EQ(code({"/bin/sh", isolate::kBoxProbePath}, {"seccomp"}), Code::kPermissionDenied);
  EXPECT_EQ(code({"/run/ringfence/../ringfence/probe"}, {"seccomp"}), Code::kPermissionDenied);
  EXPECT_EQ(code({isolate::kBoxProbePath, "x"}, {"all"}), Code::kInvalidArgument);
  isolate::Grant image = MakeGrant({isolate::kBoxProbePath, "x"});
  image.box.walls_away = {"seccomp"};
  image.box.mounts = {{"data", "/data", false}};
  EXPECT_FALSE(client_->Start(isolate::SealGrant(server_, image)).has_value());
}

TEST_F(RefusalTest, ALeaseStartsOnceEvenAfterRestartAndForget) {
  Start();
  const isolate::Grant grant = MakeGrant({"true"});
  const std::string envelope = isolate::SealGrant(server_, grant);
  EXPECT_EQ(Run(grant).exit, "exited 0\n");
  EXPECT_EQ(StartCode(envelope), Code::kConflict);
  EXPECT_EQ(client_->Forget(grant.lease).error().code, Code::kFailedPrecondition);
  Stop();
  Start();
  EXPECT_EQ(StartCode(envelope), Code::kConflict);
  ASSERT_TRUE(client_->Scrub(grant.lease, {}).has_value());
  ASSERT_TRUE(client_->Forget(grant.lease).has_value());
  EXPECT_TRUE(client_->List()->empty());
  EXPECT_EQ(StartCode(envelope), Code::kConflict);
  Stop();
  Start();
  EXPECT_EQ(StartCode(envelope), Code::kConflict);
  // A server that was restored from a backup asks again: a receipt can be had, the job cannot.
  ASSERT_TRUE(client_->Scrub(grant.lease, {Gpus()[0]}).has_value());
  EXPECT_EQ(StartCode(envelope), Code::kConflict);
}

TEST_F(RefusalTest, NoReceiptNoLease) {
  Start();
  const std::vector<std::string> gpus = Gpus();
  ASSERT_EQ(gpus.size(), 8U);
  const auto on_first = [&] { return isolate::SealGrant(server_, MakeGrant({"true"}, {gpus[0]})); };
  EXPECT_EQ(StartCode(on_first()), Code::kFailedPrecondition);  // never scrubbed
  const auto receipt = client_->Scrub("", {gpus[0]});
  ASSERT_TRUE(receipt.has_value()) << receipt.error().message;
  const auto key =
      crypto::PublicKey::FromRaw(FromBase64(client_->Hello()->public_key).value()).value();
  const auto opened = isolate::OpenReceipt(key, *receipt);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_TRUE(opened->simulated);
  ASSERT_EQ(opened->gpus.size(), 1U);
  EXPECT_EQ(opened->gpus[0].uuid, gpus[0]);
  EXPECT_GT(opened->gpus[0].reached_bytes, 0U);

  const isolate::Grant grant = MakeGrant({"sleep", "1000"}, {gpus[0]});
  auto box = client_->Start(isolate::SealGrant(server_, grant));
  ASSERT_TRUE(box.has_value()) << box.error().message;
  EXPECT_EQ(StartCode(on_first()), Code::kFailedPrecondition);  // in use
  EXPECT_EQ(client_->Scrub("", {gpus[0]}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(client_->Scrub(grant.lease, {}).error().code, Code::kFailedPrecondition);
  ASSERT_TRUE(client_->End(grant.lease).has_value());
  EXPECT_EQ(Collect(std::move(*box)).exit, "signalled 15\n");
  EXPECT_EQ(StartCode(on_first()), Code::kFailedPrecondition);  // ended, not scrubbed
  const auto again = client_->Scrub(grant.lease, {});
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(*client_->Scrub(grant.lease, {}), *again);  // the same one
  EXPECT_EQ(Run(MakeGrant({"true"}, {gpus[0]})).exit, "exited 0\n");
  // A GPU that is not there.
  EXPECT_EQ(client_->Scrub("", {"GPU-00000000-0000-0000-0000-000000000000"}).error().code,
            Code::kNotFound);
}

TEST_F(RefusalTest, CleanGpusAreForgottenWithTheBoot) {
  Start();
  const std::vector<std::string> gpus = Gpus();
  ASSERT_TRUE(client_->Scrub("", {gpus[1]}).has_value());
  Stop();
  const std::string path = folder_ + "/private/state/state.json";
  std::string state = os::ReadText(path, 1 << 20U).value();
  const std::size_t boot = state.find("\"boot\":\"") + 8;
  state[boot] = state[boot] == '0' ? '1' : '0';
  ASSERT_TRUE(os::WriteFile(path, AsBytes(state), 0600).has_value());
  Start();
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, MakeGrant({"true"}, {gpus[1]}))),
            Code::kFailedPrecondition);
}

TEST_F(RefusalTest, GarbageEndsThePair) {
  EXPECT_EQ(Break(false, AsBytes("garbage")).what, "malformed_request");
}

TEST_F(RefusalTest, ARequestBeforeHelloEndsThePair) {
  EXPECT_EQ(Break(false, isolate::EncodeRequest({1, isolate::ListRequest{}})).what, "out_of_turn");
}

TEST_F(RefusalTest, ASecondHelloEndsThePair) {
  EXPECT_EQ(Break(true, isolate::EncodeRequest({2, isolate::HelloRequest{}})).what, "out_of_turn");
}

TEST_F(RefusalTest, ADescriptorEndsThePair) {
  EXPECT_EQ(Break(true, isolate::EncodeRequest({2, isolate::ListRequest{}}), {2}).what,
            "malformed_request");
}

TEST_F(RefusalTest, TrailingBytesEndThePair) {
  Bytes frame = isolate::EncodeRequest({2, isolate::ListRequest{}});
  frame.push_back(std::byte{0});
  EXPECT_EQ(Break(true, frame).what, "malformed_request");
}

TEST_F(RefusalTest, BoxesEndWithTheBrokenPair) {
  Launch();
  Say(isolate::EncodeRequest({1, isolate::HelloRequest{}}));
  ASSERT_TRUE(os::ReceiveMessage(socket_.get(), isolate::kFrameBytesMax).has_value());
  const isolate::Grant grant = MakeGrant({"sleep", "1000"});
  Say(isolate::EncodeRequest({2, isolate::StartRequest{isolate::SealGrant(server_, grant)}}));
  auto started = os::ReceiveMessage(socket_.get(), isolate::kFrameBytesMax);
  ASSERT_TRUE(started.has_value());
  ASSERT_EQ(started->fds.size(), 3U);
  ASSERT_TRUE(os::SendMessage(socket_.get(), AsBytes("x")).has_value());
  EXPECT_EQ(ReadToEnd(started->fds[2].get()), "signalled 9\n");
  EXPECT_EQ(os::WaitFor(jailer_pid_).code, kExitPairEnded);
  jailer_pid_ = 0;
}

TEST_F(RefusalTest, ATokenOthersCanReadIsRefused) {
  ASSERT_EQ(chmod((folder_ + "/private/token").c_str(), 0644), 0);
  os::SpawnOptions spawn;
  spawn.path = Binary("ringfence-jailer");
  spawn.arguments = Arguments();
  const auto pid = os::Spawn(spawn);
  ASSERT_TRUE(pid.has_value());
  EXPECT_EQ(os::WaitFor(*pid).code, 1);
}

}  // namespace
}  // namespace ringfence::jailer

// Goal: a GPU is cut as a signed order says and never otherwise; what a box uses is not taken away;
// a jailer that is killed half-way leaves nothing that the next one does not bring to its end.
// Method: the real jailer and worker over a simulated driver, which enforces the boards' rules.

#include <signal.h>

#include <thread>

#include "gpu/simulated_test_root.h"
#include "isolate/jailer_protocol.h"
#include "isolate/mig_order.h"
#include "jailer/harness_test.h"

namespace ringfence::jailer {
namespace {

class MigTest : public JailerTest {
 protected:
  std::string Order(const std::string& aim, std::int64_t serial) {
    return isolate::SealMigOrder(server_,
                                 {"order-" + std::to_string(serial), serial, node_, gpu_, aim});
  }

  isolate::MigReport Open(const std::string& envelope) {
    const auto hello = client_->Hello();
    const auto key = crypto::PublicKey::FromRaw(*FromBase64(hello->public_key));
    const auto report = isolate::OpenMigReport(*key, envelope);
    EXPECT_TRUE(report.has_value()) << report.error().message;
    return report.has_value() ? *report : isolate::MigReport();
  }

  isolate::MigReport Obey(const std::string& aim, std::int64_t serial) {
    const auto envelope = client_->Mig(Order(aim, serial));
    EXPECT_TRUE(envelope.has_value()) << envelope.error().message;
    return envelope.has_value() ? Open(*envelope) : isolate::MigReport();
  }

  static std::string Now(const isolate::MigReport& report) {
    return report.live.has_value() ? gpu::FormatMigTarget(gpu::TargetOf(*report.live)) : "unknown";
  }

  Code Refused(const std::string& envelope) {
    const auto answer = client_->Mig(envelope);
    EXPECT_FALSE(answer.has_value());
    return answer.has_value() ? Code::kConflict : answer.error().code;
  }

  void KillJailer() {
    ASSERT_EQ(kill(jailer_pid_, SIGKILL), 0);
    (void)os::WaitFor(jailer_pid_);
    jailer_pid_ = 0;
    client_.reset();
    socket_.Reset();
    (void)ReadToEnd(relay_.get());
    relay_.Reset();
  }

  void StartWithGpu() {
    Start();
    gpu_ = Gpus()[0];
  }

  std::string gpu_;
};

TEST_F(MigTest, ObeysOnceAndSaysTheSameAgain) {
  StartWithGpu();
  const std::string order = Order("on 1g.18gb x3, 4g.71gb", 10);
  const auto first = client_->Mig(order);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  const isolate::MigReport report = Open(*first);
  EXPECT_EQ(report.reason, "");
  EXPECT_EQ(report.order, "order-10");
  EXPECT_EQ(Now(report), "on 4g.71gb@0, 1g.18gb@4, 1g.18gb@5, 1g.18gb@6");
  EXPECT_EQ(report.touched.size(), 5U) << "the GPU, whose mode changed, and four new slices";
  EXPECT_EQ(*client_->Mig(order), *first);
  EXPECT_EQ(Now(Obey("on 1g.18gb x3, 4g.71gb", 11)), Now(report));
  EXPECT_EQ(Obey("on 1g.18gb x3, 4g.71gb", 12).touched.size(), 0U) << "nothing was to be done";

  EXPECT_EQ(Refused(order), Code::kPermissionDenied) << "an older one is never obeyed again";
  EXPECT_EQ(client_->Incidents()->size(), 1U);
  EXPECT_EQ(Now(Obey("on 2g.35gb@4, 4g.71gb", 13)), "on 4g.71gb@0, 2g.35gb@4");
  EXPECT_EQ(Now(Obey("off", 14)), "off");
}

TEST_F(MigTest, NobodyElsesOrderIsObeyed) {
  StartWithGpu();
  const auto other = crypto::SigningKey::Generate();
  EXPECT_EQ(Refused(isolate::SealMigOrder(other, {"order-1", 1, node_, gpu_, "on"})),
            Code::kPermissionDenied);
  EXPECT_EQ(Refused(isolate::SealMigOrder(server_, {"order-1", 1, "elsewhere", gpu_, "on"})),
            Code::kPermissionDenied);
  EXPECT_EQ(Refused(isolate::SealMigOrder(server_, {"order-1", 1, node_, gpu_, "sideways"})),
            Code::kInvalidArgument);
  EXPECT_EQ(Refused("no envelope"), Code::kInvalidArgument);
  EXPECT_EQ(Now(Obey("off", 1)), "off");
}

TEST_F(MigTest, AnImpossibleLayoutFailsWithTheBoardsRule) {
  StartWithGpu();
  const isolate::MigReport report = Obey("on 4g.71gb x2", 1);
  EXPECT_NE(report.reason.find("4g.71gb"), std::string::npos) << report.reason;
  EXPECT_EQ(Now(report), "off");
  EXPECT_EQ(report.touched.size(), 0U);
}

TEST_F(MigTest, AGpuThatABoxUsesKeepsItsMode) {
  StartWithGpu();
  ASSERT_TRUE(client_->Scrub("", {gpu_}).has_value());
  const isolate::Grant grant = MakeGrant({"sh", "-c", "echo up; exec sleep 1000"}, {gpu_});
  auto box = client_->Start(isolate::SealGrant(server_, grant));
  ASSERT_TRUE(box.has_value()) << box.error().message;
  char up[3];
  ASSERT_EQ(read(box->out.get(), up, sizeof up), 3);
  const isolate::MigReport report = Obey("on 7g.141gb", 1);
  EXPECT_NE(report.reason.find("is held by lease " + grant.lease), std::string::npos)
      << report.reason;
  EXPECT_EQ(Now(report), "off");
  ASSERT_TRUE(client_->End(grant.lease).has_value());
  (void)ReadToEnd(box->exit.get());
  ASSERT_TRUE(client_->Scrub(grant.lease, {}).has_value());
  EXPECT_EQ(Now(Obey("on 7g.141gb", 2)), "on 7g.141gb@0");
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, MakeGrant({"true"}, {gpu_}))),
            Code::kFailedPrecondition)
      << "its mode changed: it is not clean";
}

TEST_F(MigTest, KilledAtAnyMomentTheNextOneBringsItToItsEnd) {
  StartWithGpu();
  ASSERT_EQ(Now(Obey("on 1g.18gb x2, 3g.71gb@4", 1)), "on 1g.18gb@0, 1g.18gb@1, 3g.71gb@4");
  Stop();
  std::int64_t serial = 1;
  for (int delay_ms = 0; delay_ms <= 120; delay_ms += 20) {
    const bool forth = delay_ms % 40 == 0;
    const std::string aim = forth ? "on 7g.141gb" : "on 1g.18gb x2, 3g.71gb@4";
    Launch();
    ++serial;
    for (const isolate::Request& request :
         {isolate::Request{1, isolate::HelloRequest{}},
          isolate::Request{2, isolate::MigRequest{Order(aim, serial)}}}) {
      ASSERT_TRUE(os::SendMessage(socket_.get(), isolate::EncodeRequest(request)).has_value());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));  // where to cut, not a wait
    KillJailer();
    Start();
    const isolate::MigReport report = Obey(aim, serial);
    EXPECT_EQ(report.reason, "") << delay_ms;
    EXPECT_EQ(Now(report), forth ? "on 7g.141gb@0" : "on 1g.18gb@0, 1g.18gb@1, 3g.71gb@4");
    EXPECT_FALSE(report.touched.empty());
    Stop();
  }
}

class MigFailsTest : public MigTest {
 protected:
  std::string Scenario() override { return gpu::OneComputeInstanceOnly(); }
};

TEST_F(MigFailsTest, WhatFailsHalfWayIsPutBackWithTheReason) {
  StartWithGpu();
  const isolate::MigReport report = Obey("on 1g.18gb x3", 1);
  EXPECT_NE(report.reason.find("CreateComputeInstance: Unknown Error (999)"), std::string::npos)
      << report.reason;
  EXPECT_NE(report.reason.find("what was there before is there again"), std::string::npos);
  EXPECT_EQ(Now(report), "off");
  EXPECT_EQ(Now(Obey("on 1g.18gb", 2)), "on 1g.18gb@0");
}

}  // namespace
}  // namespace ringfence::jailer

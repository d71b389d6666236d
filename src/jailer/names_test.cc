// Goal: a box reaches a server by its name, at the ports of the rule, after it has asked; nothing
// else of that server, no other address, no other name. A resolver above that lies opens nothing of
// this machine, its neighbours or its metadata service; a resolver of ours that has been taken over
// opens nothing that the grant does not name.
// Method: the real kernel, the real worker under its confinement, processes in namespaces that play
// boxes and the world, and a resolver above that says what the test tells it to.

#include "jailer/names.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <sstream>

#include "isolate/network_places_test.h"
#include "os/file.h"
#include "os/identity.h"
#include "os/mount.h"
#include "os/network_namespace.h"
#include "resolve/lying_test.h"

namespace ringfence::jailer {
namespace {

using isolate::At;
using isolate::Bound;
using isolate::Connect;
using isolate::kAnswerMs;
using isolate::kSilenceMs;
using isolate::Place;
using isolate::Socket;
using resolve::Liar;
using resolve::Truth;

constexpr unsigned kUid = 1'999'999'990;
model::PortRange Ports(const char* text) { return model::PortRange::Parse(text).value(); }
std::uint32_t Address(const char* text) { return ntohl(inet_addr(text)); }

class NamesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!os::IsRoot() || !os::TryNamespaces().has_value()) {
      GTEST_SKIP() << "needs root and a machine that can make namespaces";
    }
    ASSERT_TRUE(os::EnterNewNamespaces({.network = true}).has_value());
    ASSERT_TRUE(os::Links::Open()->SetUp("lo").has_value());
    world_.emplace();
    box_.emplace();
    other_.emplace();
    MakeWorld();
    auto network = isolate::BoxNetwork::Open({"n1", "world0"});
    ASSERT_TRUE(network.has_value()) << network.error().message << " " << network.error().hint;
    network_ = std::move(*network);
  }

  // Behind this machine's interface "world0": a server, another, the metadata service, and a
  // resolver.
  void MakeWorld() {
    const os::UniqueFd inside = std::move(os::NetworkNamespaceOf(world_->pid()).value());
    os::Links here = std::move(os::Links::Open().value());
    ASSERT_TRUE(here.MakePair({"world0", "out0", inside.get()}).has_value());
    ASSERT_TRUE(here.AddAddress("world0", Address("198.51.100.1"), 24).has_value());
    ASSERT_TRUE(here.SetForwarding("world0").has_value());
    ASSERT_TRUE(here.SetUp("world0").has_value());
    world_->In([] {
      os::Links there = std::move(os::Links::Open().value());
      for (const char* address : {"198.51.100.2", "198.51.100.3", "198.51.100.53"}) {
        ASSERT_TRUE(there.AddAddress("out0", Address(address), 24).has_value());
      }
      for (const char* address : {"169.254.169.254", "10.9.9.9"}) {
        ASSERT_TRUE(there.AddAddress("out0", Address(address), 32).has_value());
      }
      ASSERT_TRUE(there.SetUp("out0").has_value());
      ASSERT_TRUE(there.AddDefaultRoute("out0", Address("198.51.100.1")).has_value());
    });
    ASSERT_TRUE(here.AwaitRunning("world0").has_value());
  }

  void Attach(const Place& place, unsigned slot, std::vector<isolate::NetworkName> names) {
    isolate::NetworkGrant grant;
    grant.lease = "lease" + std::to_string(slot);
    grant.names = std::move(names);
    const Status attached = network_->Attach({grant.lease, slot, place.pid(), {"acme", grant}});
    ASSERT_TRUE(attached.has_value()) << attached.error().message;
    if (names_ == nullptr) {
      auto opened = Names::Open(
          {RINGFENCE_BINARY_DIR "/ringfence-resolve", kUid, {Address("198.51.100.53")}}, *network_);
      ASSERT_TRUE(opened.has_value()) << opened.error().message;
      names_ = std::move(*opened);
    }
    names_->Add(*network_->NamesOf(grant.lease));
  }
  // With a rule to www.acme.org at tcp/443.
  void AttachBox(Liar::Script script, bool allow_private = false) {
    ASSERT_NO_FATAL_FAILURE(
        Attach(*box_, 0, {{"www.acme.org", allow_private, {Ports("tcp/443")}}}));
    Above(std::move(script));
  }
  void Above(Liar::Script script) {
    world_->In([&] { above_ = Liar::At({Address("198.51.100.53"), 53}, std::move(script)); });
  }

  // The jailer's loop, until `done` or the time has come.
  bool Serve(int wait_ms, const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
    while (!done()) {
      if (std::chrono::steady_clock::now() >= until) {
        return false;
      }
      std::vector<os::PollItem> items;
      names_->AddPollItems(items);
      (void)os::Poll(items, std::chrono::milliseconds(10));
      for (const os::Ended& ended : os::ReapChildren()) {
        (void)names_->OnEnded(ended, std::chrono::steady_clock::now());
      }
      names_->Tick(std::chrono::steady_clock::now());
    }
    return true;
  }

  struct Said {
    int rcode = -1;  // -1: nothing
    std::size_t addresses = 0;
  };
  Said Ask(const Place& place, unsigned slot, const std::string& name, int wait_ms = 30'000) {
    const os::UniqueFd socket = Socket(place, SOCK_DGRAM);
    const sockaddr_in to = At(isolate::NetworkAddresses().Router(slot), 53);
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    resolve::wire::Message question;
    question.flags = 0x0100;
    question.question = resolve::wire::Name(name);
    const Bytes bytes = question.Write();
    EXPECT_EQ(send(socket.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    Said said;
    (void)Serve(wait_ms, [&] {
      std::array<std::byte, 512> answer{};
      const ssize_t got = recv(socket.get(), answer.data(), answer.size(), MSG_DONTWAIT);
      if (got < 12) {
        return false;
      }
      said.rcode = static_cast<int>(answer[3] & std::byte{15});
      said.addresses = GetBigEndian<std::uint16_t>(ByteView(answer).subspan(6));
      return true;
    });
    return said;
  }

  std::optional<Place> world_;
  std::optional<Place> box_;
  std::optional<Place> other_;
  std::unique_ptr<isolate::BoxNetwork> network_;
  std::unique_ptr<Names> names_;
  std::atomic<std::uint32_t> lie_ = 0;  // outlives who tells it
  std::unique_ptr<Liar> above_;
};

TEST_F(NamesTest, ByItsNameAtItsPortAndNothingElse) {
  ASSERT_NO_FATAL_FAILURE(AttachBox(Truth(Address("198.51.100.2"))));
  const os::UniqueFd https = Bound(*world_, SOCK_STREAM, 443);
  const os::UniqueFd http = Bound(*world_, SOCK_STREAM, 80);
  const std::uint32_t server = Address("198.51.100.2");
  EXPECT_EQ(Connect(*box_, server, 443), EHOSTUNREACH);  // before it has asked
  const Said said = Ask(*box_, 0, "www.acme.org");
  EXPECT_EQ(said.rcode, 0);
  EXPECT_EQ(said.addresses, 1U);
  EXPECT_EQ(Connect(*box_, server, 443), 0);
  EXPECT_EQ(Connect(*box_, server, 80), EHOSTUNREACH);
  EXPECT_EQ(Connect(*box_, Address("198.51.100.3"), 443), EHOSTUNREACH);
  EXPECT_EQ(Ask(*box_, 0, "evil.org").rcode, 5);
  EXPECT_GE(network_->DeniedSoFar("lease0")->packets, 3U);
}

TEST_F(NamesTest, WhatOneBoxAskedOpensNothingToAnother) {
  ASSERT_NO_FATAL_FAILURE(AttachBox(Truth(Address("198.51.100.2"))));
  ASSERT_NO_FATAL_FAILURE(Attach(*other_, 1, {{"www.acme.org", false, {Ports("tcp/443")}}}));
  const os::UniqueFd https = Bound(*world_, SOCK_STREAM, 443);
  EXPECT_EQ(Ask(*box_, 0, "www.acme.org").rcode, 0);
  EXPECT_EQ(Connect(*other_, Address("198.51.100.2"), 443), EHOSTUNREACH);
  EXPECT_EQ(Ask(*other_, 1, "www.acme.org").rcode, 0);
  EXPECT_EQ(Connect(*other_, Address("198.51.100.2"), 443), 0);
}

TEST_F(NamesTest, ThePortOfTheRouterIsForThoseWhoMayAsk) {
  ASSERT_NO_FATAL_FAILURE(AttachBox(Truth(Address("198.51.100.2"))));
  isolate::NetworkGrant closed;
  closed.lease = "lease1";
  ASSERT_TRUE(network_->Attach({"lease1", 1, other_->pid(), {"globex", closed}}).has_value());
  EXPECT_EQ(Ask(*other_, 1, "www.acme.org", kSilenceMs).rcode, -1);
  EXPECT_EQ(Connect(*other_, isolate::NetworkAddresses().Router(1), 53), EHOSTUNREACH);
  EXPECT_GE(network_->DeniedSoFar("lease1")->packets, 2U);
  // Nor the port of another's wire, nor another port, nor a resolver of its own choice.
  EXPECT_EQ(Connect(*box_, isolate::NetworkAddresses().Router(1), 53), EHOSTUNREACH);
  EXPECT_EQ(Connect(*box_, isolate::NetworkAddresses().Router(0), 22), EHOSTUNREACH);
  EXPECT_EQ(Connect(*box_, Address("198.51.100.53"), 53), EHOSTUNREACH);
  EXPECT_EQ(Connect(*box_, isolate::NetworkAddresses().Router(0), 53), 0);  // the control
  EXPECT_NE(Connect(*world_, isolate::NetworkAddresses().UplinkInside(), 53, kSilenceMs), 0);
}

TEST_F(NamesTest, RebindingOpensNothing) {
  ASSERT_NO_FATAL_FAILURE(
      AttachBox([this](ByteView query, bool stream) { return Truth(lie_)(query, stream); }));
  const os::UniqueFd https = Bound(*world_, SOCK_STREAM, 443);
  const os::UniqueFd host(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in any = At(0, 443);
  ASSERT_EQ(bind(host.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(listen(host.get(), 8), 0);
  for (const char* address : {"127.0.0.1", "169.254.169.254", "198.51.100.1", "100.96.0.1",
                              "100.96.0.2", "10.9.9.9", "0.0.0.0", "224.0.0.1"}) {
    lie_ = Address(address);
    const Said said = Ask(*box_, 0, "www.acme.org");
    EXPECT_EQ(said.rcode, 2) << address;
    EXPECT_EQ(said.addresses, 0U) << address;
    EXPECT_NE(Connect(*box_, Address(address), 443, kSilenceMs), 0) << address;
  }
}

TEST_F(NamesTest, APrivateAddressWhereTheRuleSaysSo) {
  ASSERT_NO_FATAL_FAILURE(AttachBox(Truth(Address("10.9.9.9")), true));
  const os::UniqueFd https = Bound(*world_, SOCK_STREAM, 443);
  EXPECT_EQ(Ask(*box_, 0, "www.acme.org").rcode, 0);
  // The way there is the machine's: it has a route by which the world answers.
  os::Links here = std::move(os::Links::Open().value());
  ASSERT_TRUE(here.AddDefaultRoute("world0", Address("198.51.100.2")).has_value());
  EXPECT_EQ(Connect(*box_, Address("10.9.9.9"), 443), 0);
}

TEST_F(NamesTest, AMixedAnswerIsRefusedWhole) {
  ASSERT_NO_FATAL_FAILURE(AttachBox([](ByteView query, bool) {
    resolve::wire::Message message = resolve::wire::AnswerTo(query);
    message.records = {resolve::wire::Address("www.acme.org", Address("198.51.100.2"), 300),
                       resolve::wire::Address("www.acme.org", Address("169.254.169.254"), 300)};
    return std::vector<Bytes>{message.Write()};
  }));
  const os::UniqueFd https = Bound(*world_, SOCK_STREAM, 443);
  EXPECT_EQ(Ask(*box_, 0, "www.acme.org").rcode, 2);
  EXPECT_EQ(Connect(*box_, Address("198.51.100.2"), 443), EHOSTUNREACH);
}

TEST_F(NamesTest, ATakenOverResolverOpensOnlyWhatGrantsName) {
  ASSERT_NO_FATAL_FAILURE(AttachBox(Truth(Address("198.51.100.2"))));
  const resolve::AddBox box = *network_->NamesOf("lease0");
  resolve::OpenName wanted{1, box.slot, box.mark, 0, 60, {Address("198.51.100.3")}};
  EXPECT_TRUE(network_->OpenName(wanted).has_value());  // the control
  EXPECT_TRUE(network_->OpenName(wanted).has_value());  // and again, for longer
  wanted.name = 1;
  EXPECT_EQ(network_->OpenName(wanted).error().code, Code::kInvalidArgument);
  wanted.name = 0;
  wanted.mark += 1;
  EXPECT_EQ(network_->OpenName(wanted).error().code, Code::kNotFound);
  wanted.mark = box.mark;
  wanted.slot = 1;
  EXPECT_EQ(network_->OpenName(wanted).error().code, Code::kNotFound);
  wanted.slot = 0;
  wanted.addresses.push_back(Address("127.0.0.1"));
  EXPECT_EQ(network_->OpenName(wanted).error().code, Code::kPermissionDenied);
  wanted.addresses = {Address("198.51.100.2")};
  wanted.seconds = 0xffffffff;  // for ever: no
  EXPECT_TRUE(network_->OpenName(wanted).has_value());
}

TEST_F(NamesTest, ElementsGoWithTheirTime) {
  ASSERT_NO_FATAL_FAILURE(AttachBox(Truth(Address("198.51.100.2"))));
  const os::UniqueFd https = Bound(*world_, SOCK_STREAM, 443);
  EXPECT_EQ(Ask(*box_, 0, "www.acme.org").rcode, 0);
  const os::UniqueFd open = Socket(*box_, SOCK_STREAM);
  EXPECT_EQ(isolate::ConnectFrom(open, Address("198.51.100.2"), 443, kAnswerMs), 0);
  os::UniqueFd accepted(-1);
  ASSERT_TRUE(isolate::Hears(https, kAnswerMs));
  accepted = os::UniqueFd(accept4(https.get(), nullptr, nullptr, SOCK_CLOEXEC));
  // As its time would: out of the set. What was begun goes on; nothing new begins.
  ASSERT_TRUE(os::InNetworkNamespace(network_->router(), [] {
                os::Nftables firewall = std::move(os::Nftables::Open().value());
                return firewall.Apply("flush set inet ringfence name0_0\n");
              }).has_value());
  ASSERT_EQ(send(open.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(isolate::Hears(accepted, kAnswerMs));
  EXPECT_EQ(Connect(*box_, Address("198.51.100.2"), 443), EHOSTUNREACH);
}

TEST_F(NamesTest, ADeadResolverIsStartedAnewAndKnowsTheBoxes) {
  ASSERT_NO_FATAL_FAILURE(AttachBox(Truth(Address("198.51.100.2"))));
  EXPECT_EQ(Ask(*box_, 0, "www.acme.org").rcode, 0);
  const auto find = [] {
    const auto children =
        os::ReadText("/proc/self/task/" + std::to_string(getpid()) + "/children", 4096);
    std::vector<int> found;
    std::istringstream list(children.has_value() ? *children : "");
    for (int pid = 0; list >> pid;) {
      const auto name = os::ReadText("/proc/" + std::to_string(pid) + "/comm", 64);
      if (name.has_value() && name->starts_with("ringfence-reso")) {
        found.push_back(pid);
      }
    }
    return found;
  };
  const std::vector<int> before = find();
  ASSERT_EQ(before.size(), 1U);
  kill(before[0], SIGKILL);
  ASSERT_TRUE(Serve(30'000, [&] {
    const std::vector<int> now = find();
    return now.size() == 1 && now != before;
  }));
  EXPECT_EQ(Ask(*box_, 0, "www.acme.org").rcode, 0);
}

TEST_F(NamesTest, TheWorkerHasNoRights) {
  ASSERT_NO_FATAL_FAILURE(AttachBox(Truth(Address("198.51.100.2"))));
  EXPECT_EQ(Ask(*box_, 0, "www.acme.org").rcode, 0);
  const auto children =
      os::ReadText("/proc/self/task/" + std::to_string(getpid()) + "/children", 4096);
  std::istringstream list(*children);
  int checked = 0;
  for (int pid = 0; list >> pid;) {
    const auto status = os::ReadText("/proc/" + std::to_string(pid) + "/status", 16384);
    if (!status.has_value() || status->find("Name:\tringfence-reso") == std::string::npos) {
      continue;
    }
    ++checked;
    const std::string uid = std::to_string(kUid);
    for (const std::string& line :
         {"Uid:\t" + uid + "\t" + uid + "\t" + uid + "\t" + uid,
          std::string("CapEff:\t0000000000000000"), std::string("CapBnd:\t0000000000000000"),
          std::string("NoNewPrivs:\t1"), std::string("Seccomp:\t2")}) {
      EXPECT_NE(status->find(line), std::string::npos) << line << "\n" << *status;
    }
  }
  EXPECT_EQ(checked, 1);
}

}  // namespace
}  // namespace ringfence::jailer

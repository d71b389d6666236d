// Goal: between boxes, router, this machine and the world nothing passes but what both grants name;
// what was denied is counted; whatever fails half-way or dies leaves nothing.
// Method: the real kernel. This test moves into a network namespace of its own, which plays the
// machine; processes in further ones play boxes and the world. Sockets are made inside them.

#include "isolate/box_network.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "isolate/network_places_test.h"
#include "os/identity.h"
#include "os/mount.h"
#include "os/network_namespace.h"

namespace ringfence::isolate {
namespace {

model::PortRange Ports(const char* text) { return model::PortRange::Parse(text).value(); }
std::uint32_t Address(const char* text) { return ntohl(inet_addr(text)); }

class BoxNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!os::IsRoot() || !os::TryNamespaces().has_value()) {
      GTEST_SKIP() << "needs root and a machine that can make namespaces";
    }
    ASSERT_TRUE(os::EnterNewNamespaces({.network = true}).has_value());
    ASSERT_TRUE(os::Links::Open()->SetUp("lo").has_value());
  }

  void Open(const std::string& uplink = "") {
    auto network = BoxNetwork::Open({"n1", uplink});
    ASSERT_TRUE(network.has_value()) << network.error().message << " " << network.error().hint;
    network_ = std::move(*network);
  }

  Status Attach(const Place& place, unsigned slot, const std::string& tenant,
                NetworkGrant grant = {}) {
    if (grant.lease.empty()) {
      grant.lease = "lease" + std::to_string(slot);
    }
    return network_->Attach(
        {"lease" + std::to_string(slot), slot, place.pid(), {tenant, std::move(grant)}});
  }

  // Boxes 0 and 1; what box 0 may ask of box 1.
  void AttachPair(const Place& a, const Place& b, const std::vector<model::PortRange>& ports) {
    NetworkGrant from;
    from.to = {{"acme/data", ports}};
    NetworkGrant to;
    to.from = {{"acme/vision", ports}};
    const Status first = Attach(a, 0, "acme/vision", from);
    ASSERT_TRUE(first.has_value()) << first.error().message;
    const Status second = Attach(b, 1, "acme/data", to);
    ASSERT_TRUE(second.has_value()) << second.error().message;
  }

  std::uint64_t DeniedTo(unsigned slot) {
    const auto denied = network_->DeniedSoFar("lease" + std::to_string(slot));
    EXPECT_TRUE(denied.has_value()) << denied.error().message;
    return denied.has_value() ? denied->packets : 0;
  }

  // A namespace behind this machine's interface "world0", with 198.51.100.2 in it.
  void MakeWorld(const Place& world) {
    const os::UniqueFd inside = std::move(os::NetworkNamespaceOf(world.pid()).value());
    os::Links here = std::move(os::Links::Open().value());
    ASSERT_TRUE(here.MakePair({"world0", "out0", inside.get()}).has_value());
    ASSERT_TRUE(here.AddAddress("world0", Address("198.51.100.1"), 24).has_value());
    ASSERT_TRUE(here.SetForwarding("world0").has_value());
    ASSERT_TRUE(here.SetUp("world0").has_value());
    world.In([] {
      os::Links there = std::move(os::Links::Open().value());
      ASSERT_TRUE(there.AddAddress("out0", Address("198.51.100.2"), 24).has_value());
      ASSERT_TRUE(there.AddAddress("out0", Address("169.254.169.254"), 32).has_value());
      ASSERT_TRUE(there.SetUp("out0").has_value());
      ASSERT_TRUE(there.AddDefaultRoute("out0", Address("198.51.100.1")).has_value());
    });
  }

  NetworkAddresses addresses_;
  std::unique_ptr<BoxNetwork> network_;
};

TEST_F(BoxNetworkTest, WithoutARuleNothingPassesAndItIsCounted) {
  Open();
  const Place a;
  const Place b;
  ASSERT_TRUE(Attach(a, 0, "acme").has_value());
  ASSERT_TRUE(Attach(b, 1, "acme").has_value());
  const os::UniqueFd server = Bound(b, SOCK_STREAM, 443);
  EXPECT_EQ(Connect(a, addresses_.Box(1), 443), EHOSTUNREACH);
  EXPECT_EQ(Connect(b, addresses_.Box(0), 443), EHOSTUNREACH);
  EXPECT_EQ(Connect(a, Address("8.8.8.8"), 53), EHOSTUNREACH);
  EXPECT_EQ(Connect(a, Address("169.254.169.254"), 80), EHOSTUNREACH);
  EXPECT_EQ(Connect(a, addresses_.Router(0), 22), EHOSTUNREACH);
  EXPECT_EQ(Connect(a, addresses_.Router(1), 22), EHOSTUNREACH);
  EXPECT_EQ(Connect(a, addresses_.UplinkInside(), 22), EHOSTUNREACH);
  const auto denied = network_->Detach("lease0");
  ASSERT_TRUE(denied.has_value()) << denied.error().message;
  EXPECT_GE(denied->packets, 6U);
  EXPECT_GE(denied->bytes, 6U * 40U);
  ASSERT_EQ(denied->flows.size(), 6U);
  bool metadata = false;
  for (const model::DeniedFlow& flow : denied->flows) {
    metadata = metadata || (flow.to == "169.254.169.254" && flow.protocol == "tcp" &&
                            flow.port == 80 && flow.packets >= 1);
  }
  EXPECT_TRUE(metadata);
  EXPECT_EQ(network_->DeniedSoFar("lease0").error().code, Code::kNotFound);
}

TEST_F(BoxNetworkTest, WhatBothGrantsNamePasses) {
  Open();
  const Place a;
  const Place b;
  AttachPair(a, b, {Ports("tcp/443"), Ports("tcp/8000-8100"), Ports("udp/53")});
  const os::UniqueFd https = Bound(b, SOCK_STREAM, 443);
  const os::UniqueFd range = Bound(b, SOCK_STREAM, 8050);
  const os::UniqueFd other = Bound(b, SOCK_STREAM, 22);
  const os::UniqueFd back = Bound(a, SOCK_STREAM, 443);
  EXPECT_EQ(Connect(a, addresses_.Box(1), 443), 0);
  EXPECT_EQ(Connect(a, addresses_.Box(1), 8050), 0);
  EXPECT_EQ(Connect(a, addresses_.Box(1), 22), EHOSTUNREACH);
  EXPECT_EQ(Connect(b, addresses_.Box(0), 443), EHOSTUNREACH);
  EXPECT_EQ(Connect(a, addresses_.Box(1), 8001), ECONNREFUSED);  // open, and nobody listens
  // A datagram and its answer.
  const os::UniqueFd dns = Bound(b, SOCK_DGRAM, 53);
  const os::UniqueFd client = Socket(a, SOCK_DGRAM);
  ASSERT_EQ(ConnectFrom(client, addresses_.Box(1), 53, 0), 0);
  ASSERT_EQ(send(client.get(), "q", 1, 0), 1);
  ASSERT_TRUE(Hears(dns, kAnswerMs));
  sockaddr_in who{};
  socklen_t size = sizeof who;
  char question = 0;
  ASSERT_EQ(recvfrom(dns.get(), &question, 1, 0, reinterpret_cast<sockaddr*>(&who), &size), 1);
  ASSERT_EQ(sendto(dns.get(), "a", 1, 0, reinterpret_cast<sockaddr*>(&who), size), 1);
  EXPECT_TRUE(Hears(client, kAnswerMs));
}

TEST_F(BoxNetworkTest, AnAllowedPortIsNoWayBack) {
  Open();
  const Place a;
  const Place b;
  AttachPair(a, b, {Ports("tcp/443"), Ports("udp/53")});
  const os::UniqueFd victim = Bound(a, SOCK_STREAM, 9000);
  const os::UniqueFd from_port = Socket(b, SOCK_STREAM);
  const sockaddr_in any = At(0, 443);
  ASSERT_EQ(bind(from_port.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  EXPECT_EQ(ConnectFrom(from_port, addresses_.Box(0), 9000, kAnswerMs), EHOSTUNREACH);
}

TEST_F(BoxNetworkTest, OneGrantAloneOpensNothing) {
  Open();
  const Place a;
  const Place b;
  NetworkGrant only;
  only.to = {{"acme/data", {Ports("tcp/443")}}};
  ASSERT_TRUE(Attach(a, 0, "acme/vision", only).has_value());
  ASSERT_TRUE(Attach(b, 1, "acme/data").has_value());
  const os::UniqueFd server = Bound(b, SOCK_STREAM, 443);
  EXPECT_EQ(Connect(a, addresses_.Box(1), 443), EHOSTUNREACH);
}

TEST_F(BoxNetworkTest, RanksOfOneLeaseReachEachOther) {
  Open();
  const Place a;
  const Place b;
  const Place stranger;
  NetworkGrant ranks;
  ranks.lease = "wide";
  ranks.ranks = {Ports("tcp/29500")};
  ASSERT_TRUE(Attach(a, 0, "acme", ranks).has_value());
  ASSERT_TRUE(Attach(b, 1, "acme", ranks).has_value());
  ranks.lease = "other";
  ASSERT_TRUE(Attach(stranger, 2, "acme", ranks).has_value());
  const os::UniqueFd first = Bound(a, SOCK_STREAM, 29500);
  const os::UniqueFd second = Bound(b, SOCK_STREAM, 29500);
  EXPECT_EQ(Connect(a, addresses_.Box(1), 29500), 0);
  EXPECT_EQ(Connect(b, addresses_.Box(0), 29500), 0);
  EXPECT_EQ(Connect(stranger, addresses_.Box(0), 29500), EHOSTUNREACH);
  EXPECT_EQ(Connect(a, addresses_.Box(2), 29500), EHOSTUNREACH);
}

TEST_F(BoxNetworkTest, ALaterBoxWithTheSameAddressInheritsNothing) {
  Open();
  const Place a;
  {
    const Place b;
    AttachPair(a, b, {Ports("tcp/443")});
    const os::UniqueFd server = Bound(b, SOCK_STREAM, 443);
    EXPECT_EQ(Connect(a, addresses_.Box(1), 443), 0);
    ASSERT_TRUE(network_->Detach("lease1").has_value());
  }
  const Place c;
  ASSERT_TRUE(Attach(c, 1, "globex").has_value());
  const os::UniqueFd server = Bound(c, SOCK_STREAM, 443);
  EXPECT_EQ(Connect(a, addresses_.Box(1), 443), EHOSTUNREACH);
}

TEST_F(BoxNetworkTest, AForgedSenderIsDroppedAndCounted) {
  Open();
  const Place a;
  const Place b;
  const Place spoofer;
  AttachPair(a, b, {Ports("udp/53")});
  ASSERT_TRUE(Attach(spoofer, 2, "globex").has_value());
  const os::UniqueFd dns = Bound(b, SOCK_DGRAM, 53);
  const auto forge = [&](const Place& from) {
    const os::UniqueFd raw = Socket(from, SOCK_RAW, IPPROTO_RAW);
    struct {
      iphdr ip;
      udphdr udp;
    } packet{};
    packet.ip.version = 4;
    packet.ip.ihl = 5;
    packet.ip.ttl = 64;
    packet.ip.protocol = IPPROTO_UDP;
    packet.ip.saddr = htonl(addresses_.Box(0));
    packet.ip.daddr = htonl(addresses_.Box(1));
    packet.udp.source = htons(5000);
    packet.udp.dest = htons(53);
    packet.udp.len = htons(sizeof packet.udp);
    const sockaddr_in to = At(addresses_.Box(1), 0);
    EXPECT_EQ(sendto(raw.get(), &packet, sizeof packet, 0, reinterpret_cast<const sockaddr*>(&to),
                     sizeof to),
              static_cast<ssize_t>(sizeof packet));
  };
  forge(spoofer);
  EXPECT_FALSE(Hears(dns, kSilenceMs));
  EXPECT_GE(DeniedTo(2), 1U);
  forge(a);  // the same packet from its rightful sender: the control
  EXPECT_TRUE(Hears(dns, kAnswerMs));
}

TEST_F(BoxNetworkTest, IpVersionSixIsClosed) {
  Open();
  const Place a;
  ASSERT_TRUE(Attach(a, 0, "acme").has_value());
  a.In([] {
    const os::UniqueFd fd(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd.valid()) {
      return;  // a kernel without it
    }
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(53);
    inet_pton(AF_INET6, "ff02::1", &to.sin6_addr);
    to.sin6_scope_id = if_nametoindex("eth0");
    EXPECT_LT(sendto(fd.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    inet_pton(AF_INET6, "2001:db8::1", &to.sin6_addr);
    to.sin6_scope_id = 0;
    EXPECT_LT(sendto(fd.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  });
}

TEST_F(BoxNetworkTest, ThroughTheUplinkOnlyWhatTheGrantNames) {
  const Place world;
  ASSERT_NO_FATAL_FAILURE(MakeWorld(world));
  ASSERT_NO_FATAL_FAILURE(Open("world0"));
  const Place a;
  const Place closed;
  NetworkGrant out;
  out.out = {{model::Ipv4Network::Parse("0.0.0.0/0").value(), {Ports("tcp/443")}}};
  ASSERT_TRUE(Attach(a, 0, "acme", out).has_value());
  ASSERT_TRUE(Attach(closed, 1, "globex").has_value());
  const os::UniqueFd https = Bound(world, SOCK_STREAM, 443);
  const os::UniqueFd http = Bound(world, SOCK_STREAM, 80);
  const std::uint32_t outside = Address("198.51.100.2");
  EXPECT_EQ(Connect(a, outside, 443), 0);
  EXPECT_EQ(Connect(a, outside, 80), EHOSTUNREACH);
  EXPECT_EQ(Connect(closed, outside, 443), EHOSTUNREACH);
  // What no rule opens, though 0.0.0.0/0 contains it.
  EXPECT_EQ(Connect(a, Address("169.254.169.254"), 443), EHOSTUNREACH);
  EXPECT_EQ(Connect(a, addresses_.Box(1), 443), EHOSTUNREACH);
  // This machine itself, which the router cannot tell from the world.
  const os::UniqueFd host(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in any = At(0, 443);
  ASSERT_EQ(bind(host.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(listen(host.get(), 8), 0);
  EXPECT_EQ(Connect(world, Address("198.51.100.1"), 443), 0);  // it does listen: the control
  EXPECT_EQ(Connect(a, Address("198.51.100.1"), 443, kSilenceMs), ETIMEDOUT);
  // And nobody outside begins to talk to a box.
  const os::UniqueFd inbox = Bound(a, SOCK_STREAM, 443);
  EXPECT_NE(Connect(world, addresses_.Box(0), 443, kSilenceMs), 0);
  EXPECT_NE(Connect(world, addresses_.UplinkInside(), 443, kSilenceMs), 0);
}

TEST_F(BoxNetworkTest, AnUplinkThatCannotWorkIsSaid) {
  const auto none = BoxNetwork::Open({"n1", "nosuch0"});
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message.find("there is no interface nosuch0"), std::string::npos);
  const os::UniqueFd setting(
      open("/proc/sys/net/ipv4/conf/lo/forwarding", O_WRONLY | O_CLOEXEC));  // of this namespace
  ASSERT_EQ(write(setting.get(), "0", 1), 1);
  const auto lo = BoxNetwork::Open({"n1", "lo"});
  ASSERT_FALSE(lo.has_value());
  EXPECT_NE(lo.error().message.find("does not forward"), std::string::npos) << lo.error().message;
}

TEST_F(BoxNetworkTest, WhatFailsHalfWayLeavesNothing) {
  Open();
  {
    const Place gone;
    const NetworkPlan plan{"lease0", 0, 0x3fffffff, {"acme", {}}};
    EXPECT_FALSE(network_->Attach(plan).has_value());  // no such process: after the rules
  }
  const Place taken;
  taken.In([&] {
    const os::UniqueFd here = std::move(os::OwnNetworkNamespace().value());
    os::Links links = std::move(os::Links::Open().value());
    ASSERT_TRUE(links.MakePair({"eth0", "eth1", here.get()}).has_value());
  });
  const Status refused = Attach(taken, 0, "acme");
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("network of the box"), std::string::npos);
  // Every name that the two used is free again.
  const Place a;
  const Status attached = Attach(a, 0, "acme");
  EXPECT_TRUE(attached.has_value()) << attached.error().message;
  EXPECT_TRUE(network_->Detach("lease0").has_value());
  EXPECT_TRUE(network_->Detach("lease0").has_value());  // once more changes nothing
}

TEST_F(BoxNetworkTest, SigkillLeavesNoInterfaceAndNoRule) {
  const Place world;
  ASSERT_NO_FATAL_FAILURE(MakeWorld(world));
  const Place a;
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto network = BoxNetwork::Open({"n1", "world0"});
    const bool up =
        network.has_value() && (*network)->Attach({"lease0", 0, a.pid(), {"acme", {}}}).has_value();
    (void)!write(ready[1], up ? "y" : "n", 1);
    for (;;) {
      pause();
    }
  }
  char up = 'n';
  ASSERT_EQ(read(ready[0], &up, 1), 1);
  close(ready[0]);
  close(ready[1]);
  EXPECT_EQ(up, 'y');
  os::Nftables firewall = std::move(os::Nftables::Open().value());
  // Not the tables themselves: libnftables 1.0.6 has no name for the flag "owner" and prints what
  // lies behind its list of names.
  const auto chains = [&]() -> std::size_t {
    const auto listed = firewall.List("chains");
    if (!listed.has_value()) {
      ADD_FAILURE() << listed.error().message;
      return 0;
    }
    return listed->at("nftables").as_array().size() - 1;  // the first says the library's version
  };
  const auto links = [] {
    struct if_nameindex* const names = if_nameindex();
    std::size_t count = 0;
    for (const struct if_nameindex* at = names; at->if_index != 0; ++at) {
      count += std::strncmp(at->if_name, "rf", 2) == 0 ? 1 : 0;
    }
    if_freenameindex(names);
    return count;
  };
  EXPECT_GT(chains(), 0U);
  EXPECT_EQ(links(), 1U);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  // The kernel takes a namespace away in its own time.
  for (int i = 0; i < 1000 && (chains() != 0 || links() != 0); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(chains(), 0U);
  EXPECT_EQ(links(), 0U);
  std::size_t in_box = 2;
  for (int i = 0; i < 1000 && in_box != 0; ++i) {
    a.In([&] { in_box = if_nametoindex("eth0"); });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(in_box, 0U);
}

}  // namespace
}  // namespace ringfence::isolate

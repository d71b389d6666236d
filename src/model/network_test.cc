// Goal: only what is meant parses as a network, a port or a name, and what was parsed is written
// back the same.
// Method: tables of right and wrong texts, and edges of each.

#include "model/network.h"

#include <gtest/gtest.h>

namespace ringfence::model {
namespace {

TEST(Ipv4NetworkTest, ReadsAndWrites) {
  for (const char* text : {"0.0.0.0/0", "10.0.0.0/8", "192.168.7.0/24", "10.1.2.3/32"}) {
    const auto network = Ipv4Network::Parse(text);
    ASSERT_TRUE(network.has_value()) << text;
    EXPECT_EQ(network->text(), text);
  }
  EXPECT_EQ(Ipv4Network::Parse("10.1.2.0/24")->address(), 0x0a010200U);
}

TEST(Ipv4NetworkTest, RefusesWhatReadersDisagreeAbout) {
  for (const char* text :
       {"", "/", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0/8", "10.0.0.0.0/8", "010.0.0.0/8",
        "10.0.0.256/32", "10.0.0.1/8", "0x0a.0.0.0/8", "10.0.0.0/08", " 10.0.0.0/8", "10.0.0.0/8 ",
        "10.0.0.0/-1", "2001:db8::/32", "::/0", "10..0.0/8", "167772160/8"}) {
    EXPECT_FALSE(Ipv4Network::Parse(text).has_value()) << text;
  }
  EXPECT_EQ(Ipv4Network::Parse("10.0.0.1/8").error().hint, "write 10.0.0.0/8");
}

TEST(Ipv4NetworkTest, Contains) {
  const auto net = [](const char* text) { return Ipv4Network::Parse(text).value(); };
  EXPECT_TRUE(net("0.0.0.0/0").Contains(net("169.254.169.254/32")));
  EXPECT_TRUE(net("10.0.0.0/8").Contains(net("10.0.0.0/8")));
  EXPECT_FALSE(net("10.0.0.0/9").Contains(net("10.0.0.0/8")));
  EXPECT_FALSE(net("10.0.0.0/8").Contains(net("11.0.0.0/8")));
}

TEST(PortRangeTest, ReadsAndWrites) {
  for (const char* text : {"tcp/1", "tcp/443", "udp/5000-5100", "tcp/1-65535", "icmp"}) {
    const auto ports = PortRange::Parse(text);
    ASSERT_TRUE(ports.has_value()) << text;
    EXPECT_EQ(ports->text(), text);
  }
  EXPECT_EQ(PortRange::Parse("tcp/80-80")->text(), "tcp/80");
}

TEST(PortRangeTest, Refuses) {
  for (const char* text : {"", "443", "tcp", "tcp/", "tcp/0", "tcp/65536", "tcp/2-1", "tcp/1-",
                           "tcp/-1", "TCP/443", "sctp/1", "icmp/8", "tcp/0443", "tcp/80-90-95"}) {
    EXPECT_FALSE(PortRange::Parse(text).has_value()) << text;
  }
}

TEST(PortRangeTest, Meet) {
  const auto ports = [](const char* text) { return PortRange::Parse(text).value(); };
  EXPECT_EQ(ports("tcp/80-90").Meet(ports("tcp/85-100")), ports("tcp/85-90"));
  EXPECT_EQ(ports("tcp/80").Meet(ports("udp/80")), std::nullopt);
  EXPECT_EQ(ports("tcp/80").Meet(ports("tcp/81")), std::nullopt);
  EXPECT_EQ(ports("icmp").Meet(ports("icmp")), ports("icmp"));
}

TEST(DnsNameTest, NamesAndNotNames) {
  for (const char* text : {"pypi.org", "a.b", "files.pythonhosted.org", "xn--bcher-kva.example"}) {
    EXPECT_TRUE(IsDnsName(text)) << text;
  }
  for (const char* text : {"", ".", "localhost", "a..b", ".a.b", "a.b.", "-a.b", "a-.b", "A.b",
                           "10.0.0.1", "a_b.c", "a b.c", "*.example.org"}) {
    EXPECT_FALSE(IsDnsName(text)) << text;
  }
  EXPECT_FALSE(IsDnsName(std::string(64, 'a') + ".example"));
  std::string longest;
  while (longest.size() < 250) {
    longest += "abcdefghi.";
  }
  EXPECT_FALSE(IsDnsName(longest + "example"));
}

}  // namespace
}  // namespace ringfence::model

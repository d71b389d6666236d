// Goal: a name never stands for this machine, a box, the metadata service or (unless its rule says
// so) a private network; and only resolvers that can be reached are asked.
// Method: the edges of every network that is closed, one address inside and one outside.

#include "isolate/name_rules.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace ringfence::isolate {
namespace {

std::uint32_t Address(const char* text) { return ntohl(inet_addr(text)); }

std::string Why(const char* address, bool allow_private = false) {
  return WhyRefused(Address(address), allow_private, NetworkAddresses(),
                    {Address("203.0.113.9"), Address("10.1.1.1")});
}

TEST(NameRules, WhatNoNameStandsFor) {
  for (const char* address :
       {"0.0.0.0", "0.255.255.255", "127.0.0.1", "127.255.255.255", "169.254.169.254",
        "169.254.0.0", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "100.96.0.0",
        "100.96.0.1", "100.96.15.255", "203.0.113.9", "10.1.1.1"}) {
    EXPECT_NE(Why(address), "") << address;
    EXPECT_NE(Why(address, true), "") << address;  // private: true opens none of these
  }
}

TEST(NameRules, PrivateNetworksNeedTheirRulesWord) {
  for (const char* address : {"10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255",
                              "192.168.0.1", "100.64.0.1", "100.127.255.255", "198.18.0.1"}) {
    EXPECT_NE(Why(address).find("private: true"), std::string::npos) << address;
    EXPECT_EQ(Why(address, true), "") << address;
  }
}

TEST(NameRules, TheRestOfTheWorld) {
  for (const char* address :
       {"1.0.0.0", "9.255.255.255", "11.0.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255",
        "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0",
        "198.51.100.2", "203.0.113.8", "223.255.255.255", "100.63.255.255", "100.128.0.0"}) {
    EXPECT_EQ(Why(address), "") << address;
  }
}

TEST(NameRules, ResolversOfTheSettings) {
  EXPECT_EQ(ParseResolvers("10.0.0.2,10.0.0.3")->size(), 2U);
  EXPECT_TRUE(ParseResolvers("")->empty());
  for (const char* wrong :
       {"127.0.0.53", "localhost", "10.0.0.2,", "10.0.0.2,10.0.0.2", "::1",
        "1.1.1.1,1.1.1.2,1.1.1.3,1.1.1.4", "0.0.0.0", "10.0.0.2 10.0.0.3", "10.0.0.2:53"}) {
    const auto parsed = ParseResolvers(wrong);
    EXPECT_TRUE(!parsed.has_value() || std::string(wrong) == "10.0.0.2,") << wrong;
  }
}

TEST(NameRules, ResolversOfTheHost) {
  const std::string text =
      "# nameserver 9.9.9.9\nsearch acme.org\nnameserver 127.0.0.53\nnameserver ::1\n"
      "nameserver\t10.0.0.2 # ours\nnameserver 203.0.113.9\nnameserver 10.0.0.2\n"
      "nameservers 8.8.8.8\nnameserver 10.0.0.3\nnameserver 10.0.0.4\nnameserver 10.0.0.5";
  EXPECT_EQ(
      ResolversIn(text, {Address("203.0.113.9")}),
      (std::vector<std::uint32_t>{Address("10.0.0.2"), Address("10.0.0.3"), Address("10.0.0.4")}));
  EXPECT_TRUE(ResolversIn("", {}).empty());
}

}  // namespace
}  // namespace ringfence::isolate

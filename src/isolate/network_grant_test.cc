// Goal: the network rules of a grant are read as they were signed, and two boxes may talk only
// where the grants of both say so.
// Method: values to JSON and back, damaged JSON, and a table of pairs.

#include "isolate/network_grant.h"

#include <gtest/gtest.h>

#include "isolate/grant.h"
#include "isolate/network_rules.h"

namespace ringfence::isolate {
namespace {

model::PortRange Ports(const char* text) { return model::PortRange::Parse(text).value(); }

NetworkGrant Full() {
  NetworkGrant network;
  network.lease = "lease-1";
  network.out = {{model::Ipv4Network::Parse("10.0.0.0/8").value(), {Ports("tcp/443")}}};
  network.to = {{"acme/data", {Ports("tcp/5432"), Ports("icmp")}}};
  network.from = {{"globex", {Ports("udp/1-65535")}}};
  network.ranks = {Ports("tcp/1024-65535")};
  return network;
}

TEST(NetworkGrantTest, TravelsInTheSignedGrant) {
  const auto key = crypto::SigningKey::Generate();
  Grant grant;
  grant.lease = "lease-1";
  grant.node = "n1";
  grant.tenant = "acme";
  grant.principal = "alice";
  grant.command = {"true"};
  grant.memory_bytes_max = std::uint64_t{64} << 20U;
  grant.cpu_millis_max = 100;
  grant.pids_max = 64;
  grant.runtime_max = Milliseconds(1000);
  const auto without = OpenGrant(key.public_key(), SealGrant(key, grant));
  ASSERT_TRUE(without.has_value()) << without.error().message;
  EXPECT_FALSE(without->network.has_value());
  grant.network = Full();
  const auto with = OpenGrant(key.public_key(), SealGrant(key, grant));
  ASSERT_TRUE(with.has_value()) << with.error().message;
  ASSERT_TRUE(with->network.has_value());
  EXPECT_EQ(CanonicalJson(NetworkToJson(*with->network)), CanonicalJson(NetworkToJson(Full())));
}

TEST(NetworkGrantTest, RefusesWhatTheServerNeverWrites) {
  const std::string good = CanonicalJson(NetworkToJson(Full()));
  ASSERT_TRUE(NetworkFromJson(ParseJson(good, 4096).value()).has_value());
  const std::pair<const char*, const char*> damages[] = {
      {"10.0.0.0/8", "10.0.0.1/8"},  {"10.0.0.0/8", "accept"},  {"tcp/443", "tcp/0"},
      {"acme/data", "acme; accept"}, {"\"ranks\"", "\"rank\""}, {"lease-1", "../x"},
      {"icmp", "icmp accept"},
  };
  for (const auto& [from, to] : damages) {
    std::string bad = good;
    ASSERT_NE(bad.find(from), std::string::npos) << from;
    bad.replace(bad.find(from), std::string_view(from).size(), to);
    EXPECT_FALSE(NetworkFromJson(ParseJson(bad, 4096).value()).has_value()) << bad;
  }
}

TEST(NetworkGrantTest, BothGrantsMustSayIt) {
  NetworkBox a{"acme/research/vision", {}};
  NetworkBox b{"acme/data", {}};
  a.network.lease = "l1";
  b.network.lease = "l2";
  EXPECT_TRUE(PortsBetween(a, b).empty());
  a.network.to = {{"acme/data", {Ports("tcp/400-500")}}};
  EXPECT_TRUE(PortsBetween(a, b).empty());  // only the sender's says so
  b.network.from = {{"acme/research", {Ports("tcp/443-600"), Ports("udp/443")}}};
  EXPECT_EQ(PortsBetween(a, b), std::vector{Ports("tcp/443-500")});
  EXPECT_TRUE(PortsBetween(b, a).empty());  // and not back
  b.tenant = "acme/database";               // not below acme/data, for all its letters
  EXPECT_TRUE(PortsBetween(a, b).empty());
}

TEST(NetworkGrantTest, RanksOfOneLease) {
  NetworkBox a{"acme", {}};
  NetworkBox b{"acme", {}};
  a.network.lease = b.network.lease = "l1";
  a.network.ranks = b.network.ranks = {Ports("tcp/29500")};
  EXPECT_EQ(PortsBetween(a, b), std::vector{Ports("tcp/29500")});
  EXPECT_EQ(PortsBetween(b, a), std::vector{Ports("tcp/29500")});
  b.network.lease = "l2";
  EXPECT_TRUE(PortsBetween(a, b).empty());
}

TEST(NetworkRulesTest, DeniedIsReadAsNftablesPrintsIt) {
  const auto json = [](const char* text) { return ParseJson(text, 4096).value(); };
  const Json counter =
      json(R"({"nftables":[{"metainfo":{"version":"1"}},{"counter":{"packets":7,"bytes":420}}]})");
  const Json flows = json(
      R"({"nftables":[{"metainfo":{}},{"set":{"name":"flows0","elem":[
      {"elem":{"val":{"concat":["10.0.0.1",6,80]},"counter":{"packets":2,"bytes":1}}},
      {"elem":{"val":{"concat":["10.0.0.2",17,53]},"counter":{"packets":5,"bytes":1}}}]}}]})");
  const auto denied = ReadDenied(counter, flows);
  ASSERT_TRUE(denied.has_value());
  EXPECT_EQ(denied->packets, 7U);
  ASSERT_EQ(denied->flows.size(), 2U);
  EXPECT_EQ(denied->flows[0].to + "/" + denied->flows[0].protocol, "10.0.0.2/udp");
  EXPECT_EQ(denied->flows[1].port, 80);
  EXPECT_FALSE(ReadDenied(json("{}"), flows).has_value());
}

}  // namespace
}  // namespace ringfence::isolate

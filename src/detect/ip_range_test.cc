// Goal: addresses and ranges are read as written, contained as they should be, and nothing else
// passes for one. Method: tables.

#include "detect/ip_range.h"

#include <gtest/gtest.h>

namespace ringfence::detect {
namespace {

TEST(IpRange, Reads) {
  for (const char* good : {"0.0.0.0", "255.255.255.255", "10.0.0.0/8", "1.2.3.4/32", "1.2.3.4/0",
                           "::", "::1", "2001:db8::", "2001:db8::/32", "1:2:3:4:5:6:7:8",
                           "::ffff:1.2.3.4", "1::8/128", "2001:0db8:85a3::8a2e:0370:7334"}) {
    EXPECT_TRUE(ParseIpRange(good).has_value()) << good;
  }
  for (const char* bad :
       {"",           "1.2.3",    "1.2.3.4.5",          "256.1.1.1",         "01.2.3.4",
        "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/-1",         "1.2.3.4/08",        ":",
        ":::",        "1::2::3",  "1:2:3:4:5:6:7",      "1:2:3:4:5:6:7:8:9", "12345::",
        "g::",        "::/129",   "1:2:3:4:5:6:7::8:9", "1.2.3.4 ",          " 1.2.3.4",
        "::1.2.3",    "1:",       "example.com"}) {
    EXPECT_FALSE(ParseIpRange(bad).has_value()) << bad;
  }
}

TEST(IpRange, Contains) {
  const auto contains = [](const char* wide, const char* narrow) {
    return ParseIpRange(wide)->Contains(*ParseIpRange(narrow));
  };
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.1.2"));
  EXPECT_TRUE(contains("10.1.2.3/8", "10.255.1.2"));  // bits beyond the prefix do not count
  EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(contains("198.51.100.0/25", "198.51.100.127"));
  EXPECT_FALSE(contains("198.51.100.0/25", "198.51.100.128"));
  EXPECT_FALSE(contains("10.0.0.0/16", "10.0.0.0/8"));
  EXPECT_TRUE(contains("0.0.0.0/0", "9.9.9.9"));
  EXPECT_FALSE(contains("0.0.0.0/0", "::1"));
  EXPECT_TRUE(contains("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(contains("2001:db8::/33", "2001:db8:8000::1"));
}

}  // namespace
}  // namespace ringfence::detect

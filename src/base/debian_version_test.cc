// Goal: versions of packages are in Debian's order.
// Method: pairs from the policy manual and from real packages, both ways round; where dpkg is
// there, pairs of all of them are compared with what it says.

#include "base/debian_version.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace ringfence {
namespace {

TEST(DebianVersionTest, SmallerBeforeLarger) {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"1.0", "1.1"},
      {"1.9", "1.10"},
      {"1.1.5+ds1-1", "1.1.5+ds1-1+deb12u1"},
      {"1.1.5+ds1-1+deb12u1", "1.1.5+ds1-1+deb12u2"},
      {"1.1.5+ds1-1+deb12u9", "1.1.5+ds1-1+deb12u10"},
      {"1.1.5+ds1-1+deb12u1", "1.1.12+ds1-1"},
      {"1.0.0~rc93+ds1-5", "1.0.0+ds1-1"},
      {"1.0~rc1", "1.0"},
      {"1.0~~", "1.0~~a"},
      {"1.0~~a", "1.0~"},
      {"1.0~", "1.0"},
      {"1.0", "1.0a"},
      {"1.0a", "1.0+"},
      {"1.0a", "1.0b"},
      {"9:1.0", "10:0.1"},
      {"2.0", "1:1.0"},
      {"1.0-1", "1.0-2"},
      {"1.0-1~bpo12+1", "1.0-1"},
      {"1.0", "1.0-0+b1"},
      {"1-1-1", "1-1-2"},
      {"0", "1"},
  };
  for (const auto& [small, large] : pairs) {
    EXPECT_EQ(CompareDebianVersions(small, large), std::strong_ordering::less)
        << small << " < " << large;
    EXPECT_EQ(CompareDebianVersions(large, small), std::strong_ordering::greater)
        << large << " > " << small;
  }
}

TEST(DebianVersionTest, EqualIsEqual) {
  for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{
           {"1.0", "1.0"}, {"0:1.0", "1.0"}, {"1.00", "1.0"}, {"1.0-0", "1.0"}, {"", ""}}) {
    EXPECT_EQ(CompareDebianVersions(a, b), std::strong_ordering::equal) << a << " = " << b;
  }
}

TEST(DebianVersionTest, AgreesWithDpkg) {
  if (std::system("dpkg --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "dpkg is not here";
  }
  const std::vector<std::string> all = {"1.0",       "1.0~rc1", "1.0-1", "1.0-1+deb12u1", "1:0.1",
                                        "1.0+dfsg1", "1.0a",    "1.0.1", "1.0-1~bpo12+1"};
  for (const std::string& a : all) {
    for (const std::string& b : all) {
      const std::string command = "dpkg --compare-versions '" + a + "' lt '" + b + "'";
      EXPECT_EQ(CompareDebianVersions(a, b) < 0, std::system(command.c_str()) == 0)
          << a << " " << b;
    }
  }
}

}  // namespace
}  // namespace ringfence

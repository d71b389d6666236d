// Goal: a flaw counts as mended only where something shows it: the series, Debian's own fix, or the
// package's changelog.
// Method: versions around each fix; the list that is shipped, against the packages of Debian 12.

#include "assure/advisories.h"

#include <gtest/gtest.h>

#include <set>

#include "os/file.h"

namespace ringfence::assure {
namespace {

std::vector<Advisory> Shipped() {
  const std::string path = RINGFENCE_SOURCE_DIR "/content/runtimes/runc.yaml";
  const auto advisories = ParseAdvisories(os::ReadText(path, 1 << 20).value(), path);
  EXPECT_TRUE(advisories.has_value()) << advisories.error().message;
  return advisories.has_value() ? *advisories : std::vector<Advisory>();
}

std::set<std::string> Open(const InstalledVersion& version) {
  std::set<std::string> open;
  for (const Advisory& advisory : Shipped()) {
    if (WhyFixed(advisory, version).empty()) {
      open.insert(advisory.id);
    }
  }
  return open;
}

TEST(AdvisoriesTest, EachSeriesHasItsOwnFix) {
  const Advisory advisory{"CVE-X", "", {"1.2.8", "1.3.3", "1.4.0-rc.3"}, {}, false};
  for (const char* good : {"1.2.8", "1.2.9", "1.3.3", "1.4.0-rc.3", "1.4.0", "1.5.0", "2.0.0"}) {
    EXPECT_FALSE(WhyFixed(advisory, {good, "", ""}).empty()) << good;
  }
  for (const char* bad : {"1.1.99", "1.2.7", "1.3.2", "1.4.0-rc.2", "1.0.0", "0.9"}) {
    EXPECT_TRUE(WhyFixed(advisory, {bad, "", ""}).empty()) << bad;
  }
}

TEST(AdvisoriesTest, DebiansFixCountsForItsOwnUpstreamVersionOnly) {
  const Advisory advisory{"CVE-X", "", {"1.1.12"}, {"1.1.5+ds1-1+deb12u1"}, true};
  EXPECT_FALSE(WhyFixed(advisory, {"1.1.5", "1.1.5+ds1-1+deb12u1", ""}).empty());
  EXPECT_FALSE(WhyFixed(advisory, {"1.1.5", "1.1.5+ds1-1+deb12u3", ""}).empty());
  EXPECT_TRUE(WhyFixed(advisory, {"1.1.5", "1.1.5+ds1-1", ""}).empty());
  EXPECT_TRUE(WhyFixed(advisory, {"1.1.10", "1.1.10+ds1-1", ""}).empty())
      << "a higher version from before the fix";
  EXPECT_TRUE(WhyFixed(advisory, {"1.1.5", "", ""}).empty()) << "no package: nobody mended it";
  EXPECT_FALSE(
      WhyFixed(advisory, {"1.1.10", "1.1.10+ds1-2", "  * Fix CVE-X (Closes: #1)"}).empty());
  EXPECT_TRUE(WhyFixed(advisory, {"1.1.10", "", "CVE-X"}).empty());
}

TEST(AdvisoriesTest, WhatDebian12Has) {
  const std::set<std::string> later = {"CVE-2024-45310", "CVE-2025-31133", "CVE-2025-52565",
                                       "CVE-2025-52881"};
  EXPECT_EQ(Open({"1.1.5", "1.1.5+ds1-1+deb12u1", ""}), later);
  std::set<std::string> first = later;
  first.insert("CVE-2024-21626");
  EXPECT_EQ(Open({"1.1.5", "1.1.5+ds1-1", ""}), first);
  EXPECT_TRUE(Open({"1.3.3", "", ""}).empty());
}

TEST(AdvisoriesTest, AListThatIsNoneIsRefused) {
  for (const char* text : {"", "runtime: runc\n", "runtime: runc\nadvisories: 3\n",
                           "runtime: runc\nadvisories: [{id: X}]\n"}) {
    EXPECT_FALSE(ParseAdvisories(text, "x.yaml").has_value()) << text;
  }
}

}  // namespace
}  // namespace ringfence::assure

// Goal: a driver that may not scrub freed memory is never taken for one that does.
// Method: settings as drivers write them, and as nobody should.

#include "gpu/sharing.h"

#include <gtest/gtest.h>

namespace ringfence::gpu {
namespace {

TEST(SharingTest, OnlySettingsThatTellAreBelieved) {
  EXPECT_EQ(ScrubsOnFree("ResmanDebugLevel: 4294967295\nRegistryDwords: \"\"\n"), true);
  EXPECT_EQ(ScrubsOnFree("RegistryDwords: \"RMDisableScrubOnFree=1\"\n"), false);
  EXPECT_EQ(ScrubsOnFree("RegistryDwords: \"a=1;rmdisablescrubonfree=0x1\"\n"), false);
  EXPECT_EQ(ScrubsOnFree("RegistryDwords: \"\"\nRegistryDwordsPerDevice: "
                         "\"pci=0000:01:00.0;RMDisableScrubOnFree=1\"\n"),
            false);
  EXPECT_EQ(ScrubsOnFree(""), std::nullopt);
  EXPECT_EQ(ScrubsOnFree("RegistryDwordsPerDevice: \"\"\n"), std::nullopt);
}

}  // namespace
}  // namespace ringfence::gpu

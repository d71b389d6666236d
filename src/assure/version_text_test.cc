// Goal: versions are ordered as their publisher means them, and prose about versions is read right
// or not at all.
// Method: pairs in order; every form of sentence that NVIDIA's bulletins of 2022 to 2026 use, with
// versions in, at and beyond the bound; sentences that must be refused.

#include "assure/version_text.h"

#include <gtest/gtest.h>

namespace ringfence::assure {
namespace {

ProductVersion V(std::string_view text) {
  auto version = ParseProductVersion(text);
  EXPECT_TRUE(version.has_value()) << text;
  return version.value_or(ProductVersion());
}

TEST(ProductVersionTest, EachIsBeforeTheNext) {
  const std::vector<std::vector<const char*>> ladders = {
      {"390.157", "470.82", "470.82.01", "470.103.01", "535.54.03", "535.161.07", "535.183.01"},
      {"474.04", "474.11", "474.14"},
      {"1.16.1", "v1.16.2-rc.1", "1.16.2", "v1.17"},
      {"11.6", "11.6U1", "11.6 u2", "12.0"},
      {"r2.0.0rc0", "2.0.0rc1", "2.0.0"},
      {"10.24.09", "10.24.09a", "10.24.10"},
      {"6.15.6-3", "6.15.6-4", "6.16.0-5"},
      {"20.11_1.0.0-4", "20.11_5.0.0"},
      {"S2W_3A12", "S2W_3A13"},
      {"2.0.0~rc1", "2.0.0"},
  };
  for (const auto& ladder : ladders) {
    for (std::size_t i = 0; i + 1 < ladder.size(); ++i) {
      const std::string low = ladder[i] == std::string("11.6 u2") ? "11.6u2" : ladder[i];
      const std::string high = ladder[i + 1] == std::string("11.6 u2") ? "11.6u2" : ladder[i + 1];
      EXPECT_TRUE(Compare(V(low), V(high)) < 0) << low << " " << high;
      EXPECT_TRUE(Compare(V(high), V(low)) > 0) << low << " " << high;
    }
  }
}

TEST(ProductVersionTest, WhatIsTheSame) {
  const std::pair<const char*, const char*> same[] = {
      {"1.17", "v1.17.0"},
      {"535.183.01-1", "535.183.01"},
      {"1:535.183.01-1~deb12u1", "535.183.01"},
      {"1.17.8-ubuntu20.04", "1.17.8"},
      {"28.41.1000", "xx.41.1000"},
      {"1.17.8+build5", "1.17.8"},
      {"550.90.07", "550.90.7"},
  };
  for (const auto& [a, b] : same) {
    EXPECT_TRUE(Compare(V(a), V(b)) == 0) << a << " " << b;
  }
  EXPECT_TRUE(Compare(V("6.16.0"), V("6.16.0-5")) < 0) << "no revision is not the fifth";
  EXPECT_TRUE(Compare(V("28.39.5000"), V("xx.41.1000")) < 0);
}

TEST(ProductVersionTest, WhatCannotBeCompared) {
  EXPECT_TRUE(Compare(V("S2W_3A13"), V("1.25")) == std::partial_ordering::unordered);
  EXPECT_TRUE(Compare(V("S2W_3A13"), V("S2X_3A13")) == std::partial_ordering::unordered);
}

TEST(ProductVersionTest, WhatIsNone) {
  for (const char* text : {"", " ", "x", "xx", "latest", "1.2.3.", "-", "1..2", "12345678901.1",
                           "535.183.01 beta two", "1.2,1.3"}) {
    if (std::string(text) == "1.2.3.") {
      EXPECT_TRUE(ParseProductVersion(text).has_value()) << "a full stop ends a sentence";
    } else {
      EXPECT_FALSE(ParseProductVersion(text).has_value()) << text;
    }
  }
  EXPECT_FALSE(ParseProductVersion(std::string(200, '1')).has_value());
}

// Whether any span of the text holds the version: 'y'es, 'l'oosely, 'b'elow, 'n'o, 'u'nlike.
char Held(const VersionText& text, std::string_view version) {
  char best = 'n';
  for (const VersionSpan& span : text.spans) {
    switch (Contains(span, V(version))) {
      case Holds::kYes:
        return 'y';
      case Holds::kLoosely:
        best = 'l';
        break;
      case Holds::kBelow:
        best = best == 'n' ? 'b' : best;
        break;
      case Holds::kUnlike:
        best = best == 'n' ? 'u' : best;
        break;
      case Holds::kNo:
        break;
    }
  }
  return best;
}

struct Case {
  const char* text;
  const char* version;
  char held;
};

TEST(VersionTextTest, EveryFormOfSentence) {
  const Case cases[] = {
      {"All driver versions prior to 535.183.01", "535.183.00", 'y'},
      {"All driver versions prior to 535.183.01", "535.183.01", 'n'},
      {"All drivers versions prior to 472.98 for support of GeForce Kepler desktop", "472.97", 'y'},
      {"All driver versions prior 475.06 to for support of GeForce Kepler desktop", "475.05", 'y'},
      {"All driver versions prior 475.06 to for support of GeForce Kepler desktop", "475.06", 'n'},
      {"All versions prior to and including 32.7.4", "32.7.4", 'y'},
      {"All versions prior to and including 32.7.4", "32.7.5", 'n'},
      {"All versions up to and including v1.16.1", "1.16.1", 'y'},
      {"All versions up to and including v1.16.1", "1.16.2", 'n'},
      {"All versions up to and including CUDA Toolkit 12.5U1", "12.5U1", 'y'},
      {"All versions up to and including CUDA Toolkit 12.5U1", "12.6", 'n'},
      {"All versions prior to CUDA Toolkit 11.6 Update 2", "11.6U1", 'y'},
      {"All versions prior to CUDA Toolkit 11.6 Update 2", "11.6U2", 'n'},
      {"0.2 and prior versions", "0.2", 'y'},
      {"32.7.2 and prior releases", "32.7.3", 'n'},
      {"22.09 to 24.03", "22.08", 'b'},
      {"22.09 to 24.03", "24.03", 'l'},
      {"22.09 to 24.03", "24.04", 'n'},
      {"v19.11 through v24.08", "19.11", 'l'},
      {"v0.1.x - v0.9.x", "0.9.7", 'l'},
      {"v0.1.x - v0.9.x", "0.10.0", 'n'},
      {"6.00.32705137 to 6.04.33108832", "6.02.1", 'l'},
      {"All versions after 18.24.1000", "18.24.1001", 'y'},
      {"All versions after 18.24.1000", "18.24.1000", 'b'},
      {"2.1, 3.1, 3.1.1, 3.2", "3.1.1", 'y'},
      {"2.1, 3.1, 3.1.1, 3.2", "3.1.2", 'n'},
      {"Versions 35.1 and 34.1.1", "34.1.1", 'y'},
      {"6.15.x, 6.16.x, 6.17.x", "6.16.0", 'l'},
      {"6.15.x, 6.16.x, 6.17.x", "6.18.0", 'n'},
      {"6.15.x LTS prior to 6.15.6-4 LTS", "6.15.6-3", 'y'},
      {"6.15.x LTS prior to 6.15.6-4 LTS", "6.15.6-4", 'n'},
      {"6.15.x LTS prior to 6.15.6-4 LTS", "6.14.9", 'n'},
      {"All 32.x versions prior to 32.7.1", "32.7.0", 'y'},
      {"Bright Cluster Manager 9.0-9.2", "9.1-18", 'l'},
      {"Bright Cluster Manager 9.0-9.2", "9.2-16", 'l'},
      {"Base Command Manager 3, Base Command Manager 10", "10.24.09", 'l'},
      {"mlnx_dpdk_19.11_1 through mlnx_dpdk_20.11_1.0.0-4", "20.11_1.0.0-4", 'l'},
      {"mlnx_dpdk_19.11_1 through mlnx_dpdk_20.11_1.0.0-4", "20.11_5.0.0", 'n'},
      {"All SBIOS prior to S2W_3A13", "S2W_3A12", 'y'},
      {"All BMC firmware versions prior to 00.19.07", "00.19.06", 'y'},
      {"All versions prior to xx.35.4030", "20.35.4029", 'y'},
      {"All versions prior to nvJPEG2000 v0.7.x", "0.6.9", 'y'},
      {"All versions prior to nvJPEG2000 v0.7.x", "0.7.0", 'n'},
      {"Shield Experience prior to SE 9.0", "8.2", 'y'},
      {"LTS:2.8.2-46, 23.04, 23.07, 23.09", "23.07", 'y'},
      {"All driver versions", "535.1.1", 'y'},
      {"470.141.03(All versions prior to and including vGPU 13.6)", "470.100.01", 'y'},
      {"470.141.03(All versions prior to and including vGPU 13.6)", "470.141.04", 'n'},
      {"510.73.06\t(All versions prior to and including vGPU 14.1)", "510.73.06", 'y'},
      {"512.59(\tAll versions prior to and including the April 2022 Cloud Gaming Release)",
       "512.58", 'y'},
      {"All versions prior to 525.89.02(All versions prior to and including February 2023 release)",
       "525.89.02", 'n'},
      {"All versions up to and including 1.17.7 (CDI mode only for versions prior to 1.17.5)",
       "1.17.7", 'y'},
      {"vers:generic/>=1.0|<2.0", "1.5", 'y'},
      {"vers:generic/>=1.0|<2.0", "2.0", 'n'},
      {"< 3.2", "3.1.9", 'y'},
      {"<= 3.2", "3.2", 'y'},
      {"\u2264 3.2", "3.1", 'y'},
      {"\u22643.2", "3.3", 'n'},
      {"\u2265 3.2", "3.3", 'y'},
  };
  for (const Case& one : cases) {
    const VersionText text = ReadVersionText(one.text);
    ASSERT_TRUE(text.understood) << one.text;
    EXPECT_EQ(Held(text, one.version), one.held) << one.text << " | " << one.version;
  }
}

TEST(VersionTextTest, WhatTurnsASentenceRoundIsRefused) {
  for (const char* text :
       {"", "All versions except 1.2", "All versions prior to 1.2 (excluding 1.1.5)",
        "Available the week of June 29, 2023", "Contact your NVIDIA Customer Program Manager",
        "None", "TBD", "All versions prior to", "1.2 to 1.3 to 1.4", "prior to 1.2 or later",
        "All versions prior to 1.2 unless patched", "not 1.2", "1.2 (vGPU except 13)", "(1.2",
        "1.2)", "12days", "between 1.2"}) {
    EXPECT_FALSE(ReadVersionText(text).understood) << text;
  }
}

TEST(VersionTextTest, ConditionsAndComponentsAreKept) {
  EXPECT_EQ(ReadVersionText("All BMC versions prior to 00.22.05").component, "bmc");
  EXPECT_EQ(ReadVersionText("All SBIOS firmware versions prior to 1.18").component, "sbios");
  EXPECT_EQ(ReadVersionText("All versions up to and including 0.12.1 (only when CDI is enabled)")
                .condition,
            "only when CDI is enabled");
}

TEST(VersionTextTest, TheVgpuSoftwareHasNumbersOfItsOwn) {
  const VersionText text =
      ReadVersionText("580.105.06(All versions prior to and including vGPU software 19.3)");
  ASSERT_EQ(text.vgpu_spans.size(), 1U);
  EXPECT_EQ(Contains(text.vgpu_spans[0], V("19.3")), Holds::kYes);
  EXPECT_EQ(Contains(text.vgpu_spans[0], V("19.4")), Holds::kNo);
  const VersionText tight = ReadVersionText("550.54.15(All versions up to and including vGPU17.1)");
  ASSERT_EQ(tight.vgpu_spans.size(), 1U);
  EXPECT_EQ(Contains(tight.vgpu_spans[0], V("17.1")), Holds::kYes);
}

TEST(VersionTextTest, Fixes) {
  const auto fixes = [](std::string_view text) {
    std::string out;
    for (const ProductVersion& fix : FixesOf(ReadVersionText(text).spans)) {
      out += fix.text + ";";
    }
    return out;
  };
  EXPECT_EQ(fixes("2.3.4 and 2.3.5 (latest)"), "2.3.4;2.3.5;");
  EXPECT_EQ(fixes("LTS: 2.8.2-51, 23.10"), "2.8.2-51;23.10;");
  EXPECT_EQ(fixes("DLS v3.4 and v3.1.4"), "v3.4;v3.1.4;");
  EXPECT_EQ(fixes(" 24.38.1002 or later(BFB 4.2.0 or later)"), "24.38.1002;");
  EXPECT_EQ(fixes("Bright Cluster Manager 9.0-22, 9.1-19, 9.2-17"), "9.0-22;9.1-19;9.2-17;");
  EXPECT_EQ(fixes("All versions prior to 1.2"), "") << "that is no fix";
  EXPECT_EQ(fixes("Contact your NVIDIA Customer Program Manager"), "");
}

}  // namespace
}  // namespace ringfence::assure

// Goal: however a bulletin words its range, a version that has the flaw is never called fixed or
// not affected. Method: one row at a time, made up in the words of many years and with the slips of
// many hands.

#include <gtest/gtest.h>

#include <sstream>

#include "assure/advisory_match.h"
#include "base/json.h"

namespace ringfence::assure {
namespace {

// One row, as bulletins of 2019 to 2026 and of other vendors word it, slips and all, and versions
// that have the flaw by any reading.
struct Wording {
  const char* platform;
  const char* product;
  const char* affected;
  const char* fixed;  // empty: none
  const char* ask;
  const char* flawed;  // with blanks between
};
constexpr Wording kWordings[] = {
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.7.2 (inclusive)", "1.7.3",
     "container-toolkit", "1.7.2 1.7.1"},
    {"Linux", "NVIDIA Container Toolkit", "All versions up to 1.7.2", "1.7.3", "container-toolkit",
     "1.7.2 1.7.1"},
    {"Linux", "NVIDIA Container Toolkit", "Versions up through 1.7.2", "1.7.3", "container-toolkit",
     "1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "1.7.2 and earlier", "1.7.3", "container-toolkit",
     "1.7.2 1.0"},
    {"Linux", "NVIDIA Container Toolkit", "1.7.2 or earlier", "1.7.3", "container-toolkit",
     "1.7.2 1.0"},
    {"Linux", "NVIDIA Container Toolkit", "1.7.2 and below", "1.7.3", "container-toolkit",
     "1.7.2 1.0"},
    {"Linux", "NVIDIA Container Toolkit", "1.7.2 and older", "1.7.3", "container-toolkit",
     "1.7.2 1.0"},
    {"Linux", "NVIDIA Container Toolkit", "1.7.2 and lower", "1.7.3", "container-toolkit",
     "1.7.2 1.0"},
    {"Linux", "NVIDIA Container Toolkit", "Version 1.7.2 and all prior versions", "1.7.3",
     "container-toolkit", "1.7.2 1.0"},
    {"Linux", "NVIDIA Container Toolkit", "before 1.7.3", "1.7.3", "container-toolkit", "1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "All versions before 1.7.3", "1.7.3", "container-toolkit",
     "1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "earlier than 1.7.3", "1.7.3", "container-toolkit",
     "1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "All versions lower than 1.7.3", "1.7.3",
     "container-toolkit", "1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "All versions below 1.7.3", "1.7.3", "container-toolkit",
     "1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "Versions less than 1.7.3", "1.7.3", "container-toolkit",
     "1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "All versions older than 1.7.3", "1.7.3",
     "container-toolkit", "1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to (but not including) 1.7.3",
     "1.7.3", "container-toolkit", "1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "from 1.5 up to but not including 1.7", "1.7",
     "container-toolkit", "1.6 1.5"},
    {"Linux", "NVIDIA Container Toolkit", "From 1.5 to 1.7 (inclusive)", "1.8", "container-toolkit",
     "1.6 1.5 1.7"},
    {"Linux", "NVIDIA Container Toolkit", "between 1.5 and 1.7", "1.8", "container-toolkit", "1.6"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 - 1.7.2", "1.7.3", "container-toolkit", "1.6 1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "1.5\u20131.7.2", "1.7.3", "container-toolkit",
     "1.6 1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 \u2014 1.7.2", "1.7.3", "container-toolkit",
     "1.6 1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "\u2264 1.7.2", "1.7.3", "container-toolkit",
     "1.6 1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "\u22641.7.2", "1.7.3", "container-toolkit", "1.6 1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "<=1.7.2", "1.7.3", "container-toolkit", "1.6 1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "=< 1.7.2", "1.7.3", "container-toolkit", "1.6 1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", ">= 1.5, < 1.7.3", "1.7.3", "container-toolkit",
     "1.6 1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", ">= 1.5 and <= 1.7.2", "1.7.3", "container-toolkit",
     "1.6 1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "1.5+", "1.9", "container-toolkit", "1.6 1.5"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 and later", "1.9", "container-toolkit", "1.6 1.5"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 and newer versions", "1.9", "container-toolkit",
     "1.6 1.5"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 or later", "1.9", "container-toolkit", "1.6 1.5"},
    {"Linux", "NVIDIA Container Toolkit", "Versions starting with 1.5", "1.9", "container-toolkit",
     "1.6 1.5"},
    {"Linux", "NVIDIA Container Toolkit", "since 1.5", "1.9", "container-toolkit", "1.6 1.5"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 onwards", "1.9", "container-toolkit", "1.6 1.5"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.7.3 and 1.6.5", "1.7.3, 1.6.5",
     "container-toolkit", "1.6.4 1.7.2 1.7.0"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.6.5, 1.7.3", "1.6.5, 1.7.3",
     "container-toolkit", "1.6.4 1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.6.5 or 1.7.3", "1.6.5 or 1.7.3",
     "container-toolkit", "1.6.4 1.7.2"},
    {"Linux", "NVIDIA Container Toolkit", "1.6.x prior to 1.6.5; 1.7.x prior to 1.7.3",
     "1.6.5; 1.7.3", "container-toolkit", "1.6.4 1.7.2 1.7.0"},
    {"Linux", "NVIDIA Container Toolkit", "1.6.x prior to 1.6.5, 1.7.x prior to 1.7.3",
     "1.6.5, 1.7.3", "container-toolkit", "1.6.4 1.7.2 1.7.0"},
    {"Linux", "NVIDIA Container Toolkit", "1.6.0-1.6.4, 1.7.0-1.7.2", "1.6.5, 1.7.3",
     "container-toolkit", "1.6.4 1.7.2 1.7.0"},
    {"Linux", "NVIDIA Container Toolkit", "1.6.0 - 1.6.4 and 1.7.0 - 1.7.2", "1.6.5, 1.7.3",
     "container-toolkit", "1.6.4 1.7.2 1.7.0"},
    {"Linux", "NVIDIA Container Toolkit", "1.6, 1.7 and all prior versions", "1.8",
     "container-toolkit", "1.6 1.7 1.2"},
    {"Linux", "NVIDIA Container Toolkit", "1.6 and 1.7", "1.8", "container-toolkit", "1.6 1.7"},
    {"Linux", "NVIDIA Container Toolkit", "1.6/1.7", "1.8", "container-toolkit", "1.6 1.7"},
    {"Linux", "NVIDIA Container Toolkit", "1.6 & 1.7", "1.8", "container-toolkit", "1.6 1.7"},
    {"Linux", "NVIDIA Container Toolkit", "1.7", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "1.7.*", "1.8", "container-toolkit", "1.7.2 1.7"},
    {"Linux", "NVIDIA Container Toolkit", "1.x", "2.0", "container-toolkit", "1.7.2 1.7"},
    {"Linux", "NVIDIA Container Toolkit", "1.X", "2.0", "container-toolkit", "1.7.2 1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All 1.x versions", "2.0", "container-toolkit",
     "1.7.2 1.7"},
    {"Linux", "NVIDIA Container Toolkit", "*", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "all", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All releases", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "ALL VERSIONS PRIOR TO 1.8", "1.8", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "Any version prior to 1.8", "1.8", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to version 1.8", "1.8",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to v.1.8", "v.1.8",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to release 1.8", "release 1.8",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8*", "1.8*", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8\u00b9", "1.8",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8 [1]", "1.8",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8.", "1.8.", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All\u00a0versions\u00a0prior\u00a0to\u00a01.8", "1.8",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions  prior  to  1.8", "1.8",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions\nprior to 1.8", "1.8", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to1.8", "1.8", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versionsprior to 1.8", "1.8", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions piror to 1.8", "1.8", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All version prior to 1.8", "1.8", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions to 1.8", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "Up to 1.7", "1.8", "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "Through 1.7", "1.8", "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "All versions including 1.7", "1.8", "container-toolkit",
     "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "1.7 (and possibly earlier)", "1.8", "container-toolkit",
     "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "1.7 and possibly earlier versions", "1.8",
     "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8 if configured with CDI", "1.8",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8 on Ubuntu", "1.8",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "1.8 is not affected", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions other than 1.8", "1.8", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions with the exception of 1.8", "1.8",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All but 1.8", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 through 1.7, excluding 1.6.3", "1.8",
     "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8", "1.9", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8", "1.7", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8", "TBD", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8",
     "Available the week of May 3, 2021", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8", "No fix planned",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8", "1.8 (planned)",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8", "", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "1.7", "", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "End of life", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "N/A", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "See bulletin", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "all versions < 1.8", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "x < 1.8", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 < x < 1.8", "1.8", "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 <= version < 1.8", "1.8", "container-toolkit",
     "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "[1.5, 1.8)", "1.8", "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "1.5..1.7", "1.8", "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 until 1.7", "1.8", "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 upto 1.7", "1.8", "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 thru 1.7", "1.8", "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 to 1.7 and 2.0 to 2.3", "1.8, 2.4",
     "container-toolkit", "1.6 2.2"},
    {"Linux", "NVIDIA Container Toolkit", "1.5 to 1.7, 2.0 to 2.3", "1.8, 2.4", "container-toolkit",
     "1.6 2.2"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 2.4 (1.x branch: prior to 1.8)",
     "1.8, 2.4", "container-toolkit", "1.7 2.2"},
    {"Linux", "NVIDIA Container Toolkit", "1.7.0-rc.1 to 1.7.2", "1.7.3", "container-toolkit",
     "1.7.1"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.7.2-rc.1", "1.7.2-rc.1",
     "container-toolkit", "1.7.1"},
    {"Linux", "NVIDIA Container Toolkit", "All versions of 1.7 prior to 1.7.2", "1.7.2",
     "container-toolkit", "1.7.1"},
    {"Linux", "NVIDIA Container Toolkit", "Prior to 1.8", "1.8", "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "prior to or equal to 1.7", "1.8", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "equal to or prior to 1.7", "1.8", "container-toolkit",
     "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to and equal to 1.7", "1.8",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to, and including, 1.7", "1.8",
     "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "All versions including and prior to 1.7", "1.8",
     "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "All versions up to (and including) 1.7", "1.8",
     "container-toolkit", "1.7 1.6"},
    {"Linux", "NVIDIA Container Toolkit", "All versions up to and not including 1.8", "1.8",
     "container-toolkit", "1.7"},
    {"Linux", "NVIDIA Container Toolkit", "All versions prior to 1.8 and including 1.8", "1.9",
     "container-toolkit", "1.7 1.8"},
    {"Linux", "GeForce", "All R450 versions prior to 450.51", "450.51", "gpu-driver", "450.36"},
    {"Linux (R450)", "GeForce", "All versions prior to 450.51", "450.51", "gpu-driver", "450.36"},
    {"Linux R450", "GeForce", "All versions prior to 450.51", "450.51", "gpu-driver", "450.36"},
    {"Linux(R450, R440)", "GeForce", "All versions prior to 450.51 and 440.100", "450.51, 440.100",
     "gpu-driver", "450.36 440.82"},
    {"Linux(R450/R440)", "GeForce", "All versions prior to 450.51 (R450) and 440.100 (R440)",
     "450.51 (R450), 440.100 (R440)", "gpu-driver", "450.36 440.82"},
    {"Linux", "GeForce", "R450: All versions prior to 450.51; R440: All versions prior to 440.100",
     "450.51; 440.100", "gpu-driver", "450.36 440.82"},
    {"Linux", "GeForce", "All R450 versions", "450.51", "gpu-driver", "450.36"},
    {"Linux(R450)", "GeForce", "All R450 versions", "R450 available the week of May 4, 2020",
     "gpu-driver", "450.36"},
    {"Linux(R418)", "GeForce", "All R418 versions prior to 418.152", "418.152", "gpu-driver",
     "418.100"},
    {"Linux", "GeForce", "450.x prior to 450.51", "450.51", "gpu-driver", "450.36"},
    {"Linux", "GeForce", "450.00 - 450.50", "450.51", "gpu-driver", "450.36"},
    {"Linux", "GeForce", "450 branch: all versions prior to 450.51", "450.51", "gpu-driver",
     "450.36"},
    {"Linux", "GeForce", "All versions prior to 450.51, 440.100 and 418.152",
     "450.51, 440.100, 418.152", "gpu-driver", "450.36 440.82 418.100"},
    {"Linux", "GeForce", "All driver versions prior to 535.183.01, 550.90.07, and 555.52.04",
     "535.183.01, 550.90.07, 555.52.04", "gpu-driver", "535.161.07 550.54.15 545.29.06 555.42.02"},
    {"Linux(R535)", "GeForce", "535.183.01", "535.183.06", "gpu-driver", "535.183.01"},
    {"Windows & Linux(R450)", "GeForce", "All versions prior to 451.48 (Windows), 450.51 (Linux)",
     "451.48, 450.51", "gpu-driver", "450.36"},
    {"Linux(R450)", "GeForce", "All versions prior to 451.48", "451.48", "gpu-driver", "450.36"},
    {"Linux", "vGPU software (guest driver)",
     "8.x prior to 8.5, 9.x prior to 9.4, 10.x prior to 10.3", "8.5, 9.4, 10.3", "vgpu-guest",
     "8.4 9.3 10.2"},
    {"Linux", "vGPU software (guest driver)", "All 10.x versions prior to 10.3", "10.3",
     "vgpu-guest", "10.2"},
    {"Linux", "vGPU software (guest driver)", "10.0 - 10.2, 9.0 - 9.3", "10.3, 9.4", "vgpu-guest",
     "10.1 9.2"},
    {"Linux", "vGPU software (guest driver)", "vGPU 10.0 through 10.2", "vGPU 10.3", "vgpu-guest",
     "10.1"},
    {"Linux", "vGPU software (guest driver)", "All versions prior to and including 11.5, 12.3",
     "11.6, 12.4", "vgpu-guest", "11.5 12.3"},
    {"Linux", "vGPU software (guest driver)", "Version 11.5 and all prior 11.x versions", "11.6",
     "vgpu-guest", "11.5 11.2"},
    {"Linux", "vGPU software (Virtual GPU Manager)",
     "8.x prior to 8.5, 9.x prior to 9.4, 10.x prior to 10.3", "8.5, 9.4, 10.3", "vgpu-manager",
     "8.4 9.3 10.2"},
    {"Linux", "vGPU software (Virtual GPU Manager)", "All 10.x versions prior to 10.3", "10.3",
     "vgpu-manager", "10.2"},
    {"Linux", "vGPU software (Virtual GPU Manager)", "10.0 - 10.2, 9.0 - 9.3", "10.3, 9.4",
     "vgpu-manager", "10.1 9.2"},
    {"Linux", "vGPU software (Virtual GPU Manager)", "vGPU 10.0 through 10.2", "vGPU 10.3",
     "vgpu-manager", "10.1"},
    {"Linux", "vGPU software (Virtual GPU Manager)",
     "All versions prior to and including 11.5, 12.3", "11.6, 12.4", "vgpu-manager", "11.5 12.3"},
    {"Linux", "vGPU software (Virtual GPU Manager)", "Version 11.5 and all prior 11.x versions",
     "11.6", "vgpu-manager", "11.5 11.2"},
};

Json Leaf(const Wording& wording, const char* text, const char* id) {
  return JsonObject{{"category", "product_version"},
                    {"name", wording.product},
                    {"product", JsonObject{{"name", text}, {"product_id", id}}}};
}

std::string CsafOf(const Wording& wording) {
  JsonArray leaves = {Leaf(wording, wording.affected, "a")};
  JsonObject status{{"known_affected", JsonArray{"a"}}};
  if (*wording.fixed != '\0') {
    leaves.push_back(Leaf(wording, wording.fixed, "f"));
    status["fixed"] = JsonArray{"f"};
  }
  const Json platform = JsonObject{
      {"category", "architecture"}, {"name", wording.platform}, {"branches", std::move(leaves)}};
  const Json vendor =
      JsonObject{{"category", "vendor"}, {"name", "Made up"}, {"branches", JsonArray{platform}}};
  const Json tracking = JsonObject{{"id", "9900"},
                                   {"status", "final"},
                                   {"version", "1.0.0"},
                                   {"initial_release_date", "2021-01-01T00:00:00Z"},
                                   {"current_release_date", "2021-01-01T00:00:00Z"},
                                   {"revision_history", JsonArray()}};
  return CanonicalJson(JsonObject{
      {"document", JsonObject{{"category", "csaf_security_advisory"},
                              {"csaf_version", "2.0"},
                              {"title", "made up"},
                              {"publisher", JsonObject{{"category", "other"}, {"name", "tests"}}},
                              {"tracking", tracking}}},
      {"product_tree", JsonObject{{"branches", JsonArray{vendor}}}},
      {"vulnerabilities",
       JsonArray{JsonObject{{"cve", "CVE-2021-9900"}, {"product_status", std::move(status)}}}}});
}

TEST(AdvisoryWordingTest, NoWordingMakesAFlawedVersionGood) {
  std::size_t affected = 0;
  std::size_t asked = 0;
  for (const Wording& wording : kWordings) {
    auto bulletin = ParseCsaf(CsafOf(wording), "w.json");
    ASSERT_TRUE(bulletin.has_value()) << bulletin.error().message;
    const std::vector<Bulletin> all = {std::move(*bulletin)};
    const AdvisoryIndex index(all);
    std::istringstream versions(wording.flawed);
    for (std::string version; versions >> version; ++asked) {
      const auto query = index.Ask(wording.ask, "Linux", version);
      ASSERT_TRUE(query.has_value()) << wording.ask << ' ' << version;
      const auto flaws = index.Match(*query);
      ASSERT_EQ(flaws.size(), 1U) << wording.affected;
      EXPECT_GE(flaws[0].verdict, Verdict::kAmbiguous)
          << wording.platform << ": " << wording.affected << " -> " << wording.fixed << " | "
          << version << ": " << flaws[0].said[0].why;
      affected += flaws[0].verdict == Verdict::kAffected ? 1 : 0;
    }
  }
  EXPECT_GE(affected * 2, asked) << "it does not take refuge in doubt";
}

}  // namespace
}  // namespace ringfence::assure

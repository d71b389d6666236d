// Goal: a verdict is never better than what the bulletins show.
// Method: made-up bulletins in NVIDIA's form with each of their known slips (tests/vectors), and a
// truth table made by reading the real ones (2022 to 2024), tried where RINGFENCE_SHARED names
// them.

#include "assure/advisory_match.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ringfence::assure {
namespace {

struct Truth {
  const char* bulletin;  // null: what all bulletins together say
  const char* cve;
  const char* product;
  const char* platform;
  const char* version;
  const char* verdict;  // "-": the flaw is not listed for the product
};

class Bulletins {
 public:
  explicit Bulletins(const std::string& folder) {
    auto set = LoadBulletins(folder);
    EXPECT_TRUE(set.has_value());
    EXPECT_TRUE(set->problems.empty()) << set->problems.front();
    set_ = std::move(*set);
    index_ = std::make_unique<AdvisoryIndex>(set_.bulletins);
  }

  std::string Verdict(const Truth& truth, std::string& why) const {
    const auto query = index_->Ask(truth.product, truth.platform, truth.version);
    if (!query.has_value()) {
      return "error: " + query.error().message;
    }
    for (const FlawVerdict& flaw : index_->Match(*query)) {
      if (flaw.cve != truth.cve) {
        continue;
      }
      for (const BulletinVerdict& said : flaw.said) {
        if (truth.bulletin == nullptr || said.bulletin->id == truth.bulletin) {
          why = said.why;
          return std::string(Name(truth.bulletin == nullptr ? flaw.verdict : said.verdict));
        }
      }
    }
    return "-";
  }

  void Expect(const Truth& truth) const {
    std::string why;
    EXPECT_EQ(Verdict(truth, why), truth.verdict)
        << (truth.bulletin == nullptr ? "all" : truth.bulletin) << ' ' << truth.cve << ' '
        << truth.product << ' ' << truth.platform << ' ' << truth.version << ": " << why;
  }

  const AdvisoryIndex& index() const { return *index_; }
  const BulletinSet& set() const { return set_; }

 private:
  BulletinSet set_;
  std::unique_ptr<AdvisoryIndex> index_;
};

const Bulletins& MadeUp() {
  static const Bulletins bulletins(RINGFENCE_SOURCE_DIR "/tests/vectors/bulletins");
  return bulletins;
}

TEST(AdvisoryMatchTest, EachBranchHasItsOwnFix) {
  for (const Truth& truth : {
           Truth{"9001", "CVE-2030-0001", "gpu-driver", "Linux", "470.900.01", "affected"},
           Truth{"9001", "CVE-2030-0001", "gpu-driver", "Linux", "470.900.02", "fixed"},
           Truth{"9001", "CVE-2030-0001", "gpu-driver", "Linux", "535.900.04", "affected"},
           Truth{"9001", "CVE-2030-0001", "gpu-driver", "Linux", "535.900.05", "fixed"},
           Truth{"9001", "CVE-2030-0001", "gpu-driver", "Linux", "550.900.06", "affected"},
           Truth{"9001", "CVE-2030-0001", "gpu-driver", "Linux", "550.900.07", "fixed"},
           Truth{"9001", "CVE-2030-0001", "Tesla", "Ubuntu 22.04", "550.900.06", "affected"},
           Truth{"9001", "CVE-2030-0001", "NVIDIA GPU Display Driver", "Windows", "537.10",
                 "affected"},
           Truth{"9001", "CVE-2030-0001", "GeForce", "Windows 11", "538.90", "fixed"},
           Truth{"9001", "CVE-2030-0001", "GeForce", "Windows 11", "474.89", "affected"},
       }) {
    MadeUp().Expect(truth);
  }
}

TEST(AdvisoryMatchTest, BranchesThatGetNoFix) {
  for (const Truth& truth : {
           // between an older and a newer branch that are affected
           Truth{"9001", "CVE-2030-0001", "gpu-driver", "Linux", "525.147.05", "affected"},
           Truth{"9001", "CVE-2030-0001", "gpu-driver", "Linux", "545.29.06", "affected"},
           // older than all: earlier branches may be affected too
           Truth{"9001", "CVE-2030-0001", "gpu-driver", "Linux", "390.157", "ambiguous"},
           // the bulletin knows the branch, and does not list it for this flaw
           Truth{"9001", "CVE-2030-0002", "gpu-driver", "Linux", "535.900.05", "ambiguous"},
           Truth{"9001", "CVE-2030-0002", "gpu-driver", "Linux", "535.100.05", "ambiguous"},
           // newer than the only branch listed: with the bulletin's own update, and without
           Truth{"9001", "CVE-2030-0003", "gpu-driver", "Linux", "550.900.07", "not_affected"},
           Truth{"9001", "CVE-2030-0003", "gpu-driver", "Linux", "550.900.06", "ambiguous"},
           // another system
           Truth{"9001", "CVE-2030-0004", "gpu-driver", "Linux", "535.100.05", "not_affected"},
           Truth{"9001", "CVE-2030-0004", "gpu-driver", "Windows", "536.1", "affected"},
       }) {
    MadeUp().Expect(truth);
  }
}

TEST(AdvisoryMatchTest, NewerBranchesThanTheBulletinKnows) {
  for (const Truth& truth : {
           // the next branch may have been begun before the fix
           Truth{"9001", "CVE-2030-0001", "gpu-driver", "Linux", "555.42.02", "ambiguous"},
           // but a later bulletin's fix of that branch has everything
           Truth{"9001", "CVE-2030-0001", "gpu-driver", "Linux", "555.50.02", "fixed"},
           Truth{"9001", "CVE-2030-0001", "gpu-driver", "Linux", "580.10.01", "fixed"},
           Truth{"9002", "CVE-2030-0010", "gpu-driver", "Linux", "560.10.01", "ambiguous"},
           Truth{"9002", "CVE-2030-0010", "gpu-driver", "Linux", "565.10.01", "fixed"},
       }) {
    MadeUp().Expect(truth);
  }
}

TEST(AdvisoryMatchTest, TheWorstBulletinDecides) {
  MadeUp().Expect({"9001", "CVE-2030-0003", "gpu-driver", "Linux", "470.900.02", "fixed"});
  MadeUp().Expect({"9002", "CVE-2030-0003", "gpu-driver", "Linux", "470.900.02", "affected"});
  MadeUp().Expect({nullptr, "CVE-2030-0003", "gpu-driver", "Linux", "470.900.02", "affected"});
  MadeUp().Expect({nullptr, "CVE-2030-0003", "gpu-driver", "Linux", "470.950.01", "fixed"});
}

TEST(AdvisoryMatchTest, EditionsThatDifferMustBeNamed) {
  MadeUp().Expect({"9001", "CVE-2030-0005", "gpu-driver", "Linux", "550.900.05", "ambiguous"});
  MadeUp().Expect({"9001", "CVE-2030-0005", "Tesla", "Linux", "550.900.05", "affected"});
  MadeUp().Expect({"9001", "CVE-2030-0005", "geforce", "Linux", "550.900.05", "fixed"});
  MadeUp().Expect({"9001", "CVE-2030-0005", "gpu-driver", "Linux", "550.900.07", "fixed"});
}

TEST(AdvisoryMatchTest, SlipsOfTheTable) {
  for (const Truth& truth : {
           // "prior to 473.90", fixed in 474.90
           Truth{"9001", "CVE-2030-0006", "Tesla", "Windows", "473.89", "affected"},
           Truth{"9001", "CVE-2030-0006", "Tesla", "Windows", "473.90", "ambiguous"},
           Truth{"9001", "CVE-2030-0006", "Tesla", "Windows", "474.90", "fixed"},
           // the audio driver's numbers in a row of the display driver
           Truth{"9001", "CVE-2030-0006", "GeForce", "Windows", "591.10", "ambiguous"},
           // labelled R570, of R470
           Truth{"9001", "CVE-2030-0006", "vgpu-guest", "Windows", "571.10", "ambiguous"},
           Truth{"9001", "CVE-2030-0006", "vgpu-guest", "Windows", "474.90", "ambiguous"},
           // numbers of Linux under Windows: both must doubt
           Truth{"9001", "CVE-2030-0006", "vgpu-guest", "Windows", "453.23", "ambiguous"},
           Truth{"9001", "CVE-2030-0006", "vgpu-guest", "Linux", "450.100.01", "ambiguous"},
           // the release with the fix is called affected
           Truth{"9001", "CVE-2030-0001", "vgpu-guest", "Linux", "470.900.02", "ambiguous"},
           Truth{"9001", "CVE-2030-0001", "vgpu-guest", "Linux", "13.9", "ambiguous"},
           Truth{"9001", "CVE-2030-0001", "vgpu-guest", "Linux", "13.8", "affected"},
           Truth{"9001", "CVE-2030-0001", "vgpu-guest", "Linux", "470.910.02", "fixed"},
           // not understood, and no version yet
           Truth{"9002", "CVE-2030-0011", "Tesla", "Linux", "535.940.01", "ambiguous"},
           Truth{"9002", "CVE-2030-0011", "Tesla", "Linux", "535.950.01", "ambiguous"},
           Truth{"9002", "CVE-2030-0011", "Tesla", "Linux", "555.99.01", "affected"},
       }) {
    MadeUp().Expect(truth);
  }
}

TEST(AdvisoryMatchTest, VgpuInBothNumberings) {
  for (const Truth& truth : {
           Truth{"9001", "CVE-2030-0001", "vgpu-manager", "VMware vSphere", "16.8", "affected"},
           Truth{"9001", "CVE-2030-0001", "vgpu-manager", "VMware vSphere", "16.9", "fixed"},
           Truth{"9001", "CVE-2030-0001", "vgpu-manager", "Linux", "535.890.04", "affected"},
           Truth{"9001", "CVE-2030-0001", "vgpu-manager", "Linux", "535.899.04", "affected"},
           Truth{"9001", "CVE-2030-0001", "vgpu-manager", "Linux", "535.900.04", "fixed"},
           Truth{"9001", "CVE-2030-0001", "vgpu-guest", "Linux", "16.9", "fixed"},
           Truth{"9001", "CVE-2030-0001", "vgpu-guest", "Linux", "16.8", "affected"},
           Truth{"9001", "CVE-2030-0001", "vgpu", "Linux", "535.900.04", "ambiguous"},
       }) {
    MadeUp().Expect(truth);
  }
}

TEST(AdvisoryMatchTest, Tools) {
  for (const Truth& truth : {
           Truth{"9003", "CVE-2030-0020", "Container Toolkit", "Linux", "1.30.1", "affected"},
           Truth{"9003", "CVE-2030-0020", "nvidia-container-toolkit", "Linux", "1.30.1-1",
                 "affected"},
           Truth{"9003", "CVE-2030-0020", "container-toolkit", "Linux", "1.30.2-rc.1", "affected"},
           Truth{"9003", "CVE-2030-0020", "container-toolkit", "Linux", "1.30.2", "fixed"},
           Truth{"9003", "CVE-2030-0020", "container-toolkit", "Linux", "1.9.0", "affected"},
           Truth{"9003", "CVE-2030-0020", "gpu-operator", "Linux", "1.11.1", "affected"},
           Truth{"9003", "CVE-2030-0020", "gpu-operator", "Linux", "v30.6.2", "fixed"},
           Truth{"9003", "CVE-2030-0021", "container-toolkit", "Linux", "1.31.7", "affected"},
           Truth{"9003", "CVE-2030-0021", "container-toolkit", "Linux", "1.31.8", "fixed"},
           Truth{"9003", "CVE-2030-0022", "triton", "Linux", "22.08", "not_affected"},
           Truth{"9003", "CVE-2030-0022", "triton", "Linux", "30.03", "affected"},
           Truth{"9003", "CVE-2030-0022", "triton", "Linux", "30.04", "fixed"},
           Truth{"9003", "CVE-2030-0022", "triton", "Linux", "2.45.0", "ambiguous"},
           Truth{"9003", "CVE-2030-0023", "triton", "Linux", "23.05", "ambiguous"},
           Truth{"9003", "CVE-2030-0023", "triton", "Linux", "2.39.0", "affected"},
           Truth{"9003", "CVE-2030-0024", "DCGM", "Linux", "4.3.3", "affected"},
           Truth{"9003", "CVE-2030-0024", "dcgm", "Linux", "4.3.4", "fixed"},
           Truth{"9003", "CVE-2030-0024", "dcgm", "Linux", "4.4.0", "fixed"},
           Truth{"9003", "CVE-2030-0025", "cuda", "Linux", "19.3", "affected"},
           Truth{"9003", "CVE-2030-0025", "cuda", "Linux", "19.4", "ambiguous"},
           Truth{"9003", "CVE-2030-0025", "cuda", "Linux", "19.4U1", "fixed"},
           Truth{"9003", "CVE-2030-0024", "container-toolkit", "Linux", "1.30.1", "-"},
       }) {
    MadeUp().Expect(truth);
  }
}

TEST(AdvisoryMatchTest, SeriesComponentsAndLists) {
  for (const Truth& truth : {
           Truth{"9003", "CVE-2030-0026", "UFM Enterprise LTS23", "Linux", "6.15.6-3", "affected"},
           Truth{"9003", "CVE-2030-0026", "UFM Enterprise LTS23", "Linux", "6.15.6-4", "fixed"},
           Truth{"9003", "CVE-2030-0026", "UFM Enterprise GA", "Linux", "6.16.0-4", "affected"},
           Truth{"9003", "CVE-2030-0026", "UFM Enterprise GA", "Linux", "6.16.0-5", "fixed"},
           Truth{"9003", "CVE-2030-0026", "UFM Enterprise GA", "Linux", "6.17.3-1", "affected"},
           Truth{"9003", "CVE-2030-0026", "UFM Enterprise", "Linux", "6.15.6-4", "ambiguous"},
           Truth{"9003", "CVE-2030-0027", "DGX A100 BMC", "Linux", "00.22.04", "affected"},
           Truth{"9003", "CVE-2030-0027", "DGX A100 BMC", "Linux", "00.22.05", "fixed"},
           Truth{"9003", "CVE-2030-0027", "DGX A100 SBIOS", "Linux", "1.20", "-"},
           Truth{"9003", "CVE-2030-0028", "DGX A100 SBIOS", "Linux", "1.24", "affected"},
           Truth{"9003", "CVE-2030-0027", "DGX A100", "Linux", "1.25", "ambiguous"},
           Truth{"9003", "CVE-2030-0029", "ConnectX", "Linux", "28.40.9999", "affected"},
           Truth{"9003", "CVE-2030-0029", "ConnectX", "Linux", "28.41.1000", "fixed"},
           Truth{"9003", "CVE-2030-0029", "BlueField 1", "Linux", "18.30.1000", "affected"},
           Truth{"9003", "CVE-2030-0030", "Bright Cluster Manager", "Linux", "9.1-18", "affected"},
           Truth{"9003", "CVE-2030-0030", "Bright Cluster Manager", "Linux", "9.0-22", "fixed"},
           Truth{"9003", "CVE-2030-0030", "Bright Cluster Manager", "Linux", "9.2-16", "affected"},
           Truth{"9003", "CVE-2030-0030", "Base Command Manager", "Linux", "10.24.09", "affected"},
           Truth{"9003", "CVE-2030-0030", "Base Command Manager", "Linux", "10.24.09a", "fixed"},
       }) {
    MadeUp().Expect(truth);
  }
}

TEST(AdvisoryMatchTest, QuestionsThatCannotBeAnswered) {
  const AdvisoryIndex& index = MadeUp().index();
  EXPECT_EQ(index.Ask("gpu-drivr", "Linux", "535.1.1").error().code, Code::kNotFound);
  EXPECT_NE(index.Ask("gpu-drivr", "Linux", "535.1.1").error().hint.find("gpu-driver"),
            std::string::npos);
  for (const char* version : {"", "535", "1.2.3", "535.x", "latest"}) {
    EXPECT_FALSE(index.Ask("gpu-driver", "Linux", version).has_value()) << version;
  }
}

TEST(AdvisoryMatchTest, ConditionsAreShown) {
  const auto query = MadeUp().index().Ask("container-toolkit", "Linux", "1.31.4");
  ASSERT_TRUE(query.has_value());
  for (const FlawVerdict& flaw : MadeUp().index().Match(*query)) {
    if (flaw.cve == "CVE-2030-0021") {
      EXPECT_NE(flaw.said.front().condition.find("CDI mode only"), std::string::npos);
      EXPECT_EQ(flaw.severity, "critical");
      EXPECT_EQ(flaw.score_tenths, 90);
    }
  }
}

// By reading NVIDIA's bulletins, not from the program's answers.
constexpr Truth kReal[] = {
    {"5312", "CVE-2022-21813", "GeForce", "Linux", "510.47.02", "affected"},
    {"5312", "CVE-2022-21813", "GeForce", "Linux", "510.47.03", "fixed"},
    {"5312", "CVE-2022-21813", "Tesla", "Linux", "470.82.01", "affected"},
    {"5312", "CVE-2022-21813", "Tesla", "Linux", "470.103.01", "fixed"},
    {"5312", "CVE-2022-21813", "gpu-driver", "Linux", "495.46", "affected"},
    {"5312", "CVE-2022-21813", "vgpu-guest", "Windows", "472.39", "ambiguous"},
    {"5312", "CVE-2022-21813", "vgpu-guest", "Linux", "470.82.00", "ambiguous"},
    {"5312", "CVE-2022-21815", "gpu-driver", "Linux", "470.82.01", "not_affected"},
    {"5312", "CVE-2022-21815", "GeForce", "Windows 10", "472.98", "fixed"},
    {"5312", "CVE-2022-21815", "GeForce", "Windows 7", "472.98", "affected"},
    {"5312", "CVE-2022-21815", "GeForce", "Windows", "472.98", "ambiguous"},
    {"5312", "CVE-2022-21816", "vgpu-manager", "VMware vSphere", "13.1", "affected"},
    {"5312", "CVE-2022-21816", "vgpu-manager", "VMware vSphere", "13.2", "fixed"},
    {"5312", "CVE-2022-21816", "vgpu-manager", "Nutanix AHV", "470.103.02", "fixed"},
    {"5321", "CVE-2021-34401", "Jetson Nano", "Linux", "32.7.0", "affected"},
    {"5321", "CVE-2021-34401", "Jetson Nano", "Linux", "32.7.1", "fixed"},
    {"5328", "CVE-2022-21820", "dcgm", "Linux", "2.3.3", "affected"},
    {"5328", "CVE-2022-21820", "dcgm", "Linux", "2.3.4", "fixed"},
    {"5328", "CVE-2022-21820", "dcgm", "Linux", "2.3.6", "fixed"},
    {"5334", "CVE-2022-21821", "cuda-toolkit", "Linux", "11.6U1", "affected"},
    {"5334", "CVE-2022-21821", "cuda-toolkit", "Linux", "11.6U2", "fixed"},
    {"5342", "CVE-2022-28198", "Omniverse Nucleus", "Windows", "2021.3.2", "affected"},
    {"5342", "CVE-2022-28198", "Omniverse Nucleus", "Windows", "2021.3.1", "ambiguous"},
    {"5353", "CVE-2022-28181", "gpu-driver", "Linux", "510.73.05", "ambiguous"},
    {"5353", "CVE-2022-28181", "Tesla", "Linux", "510.73.05", "affected"},
    {"5353", "CVE-2022-28181", "GeForce, NVIDIA RTX/Quadro, NVS", "Linux(R470)", "470.129.05",
     "affected"},
    {"5353", "CVE-2022-28181", "GeForce, NVIDIA RTX/Quadro, NVS", "Linux(R470)", "470.129.06",
     "fixed"},
    {"5435", "CVE-2022-42277", "NVIDIA DGX servers SBIOS", "DGX Station A100", "10.15", "affected"},
    {"5435", "CVE-2022-42277", "NVIDIA DGX servers SBIOS", "DGX A100", "1.17", "not_affected"},
    {"5353", "CVE-2022-28181", "Tesla", "Linux", "510.73.08", "fixed"},
    {"5353", "CVE-2022-28181", "GeForce", "Linux", "390.150", "affected"},
    {"5353", "CVE-2022-28181", "GeForce", "Linux", "390.151", "fixed"},
    {"5383", "CVE-2022-31606", "Tesla", "Windows", "473.47", "ambiguous"},
    {"5383", "CVE-2022-31606", "Tesla", "Windows", "472.80", "affected"},
    {"5383", "CVE-2022-31606", "Tesla", "Windows", "473.81", "fixed"},
    {"5383", "CVE-2022-31606", "Tesla", "Windows", "513.45", "affected"},
    {"5383", "CVE-2022-31607", "Tesla", "Linux", "450.203.02", "affected"},
    {"5383", "CVE-2022-31607", "Tesla", "Linux", "450.203.03", "fixed"},
    {"5389", "CVE-2022-28199", "MLNX_DPDK", "Linux", "20.11_1.0.0-4", "affected"},
    {"5389", "CVE-2022-28199", "MLNX_DPDK", "Linux", "20.11_5.0.0", "fixed"},
    {"5415", "CVE-2022-34675", "Tesla", "Linux", "515.86.00", "affected"},
    {"5415", "CVE-2022-34675", "Tesla", "Linux", "515.86.01", "fixed"},
    {"5415", "CVE-2022-42254", "gpu-driver", "Linux", "520.56.06", "ambiguous"},
    {"5415", "CVE-2022-42254", "gpu-driver", "Linux", "525.53", "ambiguous"},
    {"5415", "CVE-2022-42254", "gpu-driver", "Linux", "525.60.11", "fixed"},
    {"5415", "CVE-2022-42254", "gpu-driver", "Linux", "495.46", "affected"},
    {"5415", "CVE-2022-42261", "vgpu-guest", "Linux", "470.161.03", "ambiguous"},
    {"5415", "CVE-2022-42261", "vgpu-guest", "Linux", "13.6", "ambiguous"},
    {"5415", "CVE-2022-42261", "vgpu-guest", "Linux", "14.3", "affected"},
    {"5415", "CVE-2022-42261", "vgpu-guest", "Linux", "14.4", "fixed"},
    {"5415", "CVE-2022-42265", "Tesla", "Linux", "515.86.01", "fixed"},
    {"5415", "CVE-2022-42265", "Tesla", "Linux", "470.161.03", "ambiguous"},
    {"5520", "CVE-2022-42265", "Tesla", "Linux", "470.161.03", "affected"},
    {nullptr, "CVE-2022-42265", "Tesla", "Linux", "470.161.03", "affected"},
    {nullptr, "CVE-2022-42265", "Tesla", "Linux", "535.161.07", "fixed"},
    {"5417", "CVE-2022-42269", "Jetson AGX Xavier", "Linux", "32.7.1", "affected"},
    {"5417", "CVE-2022-42269", "Jetson AGX Xavier", "Linux", "32.7.2", "ambiguous"},
    {"5435", "CVE-2022-42271", "DGX A100 BMC", "Linux", "00.19.06", "affected"},
    {"5435", "CVE-2022-42271", "DGX A100 BMC", "Linux", "00.19.07", "fixed"},
    {"5449", "CVE-2023-0202", "DGX A100 SBIOS", "Linux", "1.17", "affected"},
    {"5449", "CVE-2023-0202", "DGX A100 SBIOS", "Linux", "1.18", "fixed"},
    {"5452", "CVE-2023-0184", "Tesla", "Linux", "525.105.16", "affected"},
    {"5452", "CVE-2023-0184", "Tesla", "Linux", "525.105.17", "fixed"},
    {"5453", "CVE-2023-0208", "Data Center GPU Manager", "Linux", "3.1.6", "affected"},
    {"5453", "CVE-2023-0208", "dcgm", "Linux", "3.1.7", "fixed"},
    {"5456", "CVE-2023-25513", "cuda-toolkit", "Linux", "12.0", "affected"},
    {"5456", "CVE-2023-25513", "cuda-toolkit", "Linux", "12.0U1", "fixed"},
    {"5458", "CVE-2023-0209", "DGX-1 SBIOS", "Linux", "S2W_3A12", "affected"},
    {"5458", "CVE-2023-0209", "DGX-1 SBIOS", "Linux", "S2W_3A13", "fixed"},
    {"5468", "CVE-2023-25515", "Studio", "Windows", "536.40", "affected"},
    {"5468", "CVE-2023-25515", "Tesla", "Linux", "535.54.02", "affected"},
    {"5468", "CVE-2023-25515", "Tesla", "Linux", "450.248.02", "fixed"},
    {"5476", "CVE-2023-31014", "GeForce NOW", "Android", "6.04.33108832", "affected"},
    {"5476", "CVE-2023-31014", "GeForce NOW", "Android", "6.05.33200069", "fixed"},
    {"5479", "CVE-2023-25519", "BlueField 1", "Linux", "18.33.1000", "affected"},
    {"5491", "CVE-2023-31022", "Tesla", "Linux", "535.129.02", "affected"},
    {"5491", "CVE-2023-31022", "Tesla", "Linux", "535.129.03", "fixed"},
    {"5491", "CVE-2023-31022", "vgpu-manager", "Azure Stack HCI", "537.13", "affected"},
    {"5491", "CVE-2023-31022", "vgpu-manager", "Azure Stack HCI", "16.2", "fixed"},
    {"5491", "CVE-2023-31022", "Tesla", "Linux", "550.54.14", "fixed"},
    {"5509", "CVE-2023-31036", "triton", "Linux", "2.39.0", "affected"},
    {"5509", "CVE-2023-31036", "triton", "Linux", "2.40.0", "fixed"},
    {"5509", "CVE-2023-31036", "triton", "Linux", "23.05", "ambiguous"},
    {"5511", "CVE-2023-31037", "BlueField 2 DPU BMC", "Linux", "23.09", "affected"},
    {"5517", "CVE-2024-0072", "cuda-toolkit", "Linux", "12.3U2", "affected"},
    {"5517", "CVE-2024-0072", "cuda-toolkit", "Linux", "12.4", "ambiguous"},
    {"5517", "CVE-2024-0072", "cuda-toolkit", "Linux", "12.4U1", "fixed"},
    {"5520", "CVE-2024-0074", "gpu-driver", "Linux", "545.29.06", "affected"},
    {"5520", "CVE-2024-0074", "gpu-driver", "Linux", "550.54.14", "fixed"},
    {"5535", "CVE-2024-0087", "triton", "Linux", "22.08", "not_affected"},
    {"5535", "CVE-2024-0087", "triton", "Linux", "22.09", "affected"},
    {"5535", "CVE-2024-0088", "triton", "Linux", "22.08", "affected"},
    {"5535", "CVE-2024-0087", "triton", "Linux", "24.04", "fixed"},
    {"5546", "CVE-2024-0095", "triton", "Linux", "24.04", "affected"},
    {"5551", "CVE-2024-0090", "gpu-driver", "Linux", "535.161.07", "affected"},
    {"5551", "CVE-2024-0090", "gpu-driver", "Linux", "535.183.01", "fixed"},
    {"5551", "CVE-2024-0090", "gpu-driver", "Linux", "545.29.06", "affected"},
    {"5551", "CVE-2024-0090", "gpu-driver", "Linux", "525.147.05", "affected"},
    {"5551", "CVE-2024-0090", "gpu-driver", "Linux", "390.157", "ambiguous"},
    {"5551", "CVE-2024-0090", "gpu-driver", "Linux", "580.65.06", "fixed"},
    {"5551", "CVE-2024-0091", "Tesla", "Linux", "535.183.01", "ambiguous"},
    {"5551", "CVE-2024-0099", "vgpu-manager", "Linux", "535.183.03", "affected"},
    {"5551", "CVE-2024-0099", "vgpu-manager", "Linux", "535.183.04", "fixed"},
    {"5557", "CVE-2024-0107", "vgpu-guest", "Windows", "475.06", "affected"},
    {"5557", "CVE-2024-0107", "vgpu-guest", "Windows", "475.14", "fixed"},
    {"5557", "CVE-2024-0107", "gpu-driver", "Linux", "535.161.07", "not_affected"},
    {"5560", "CVE-2024-0115", "CV-CUDA", "Linux", "0.9.0", "affected"},
    {"5560", "CVE-2024-0115", "CV-CUDA", "Linux", "0.10.0", "fixed"},
    {"5564", "CVE-2024-0109", "cuda-toolkit", "Linux", "12.6", "affected"},
    {"5564", "CVE-2024-0109", "cuda-toolkit", "Linux", "12.6U1", "fixed"},
    {"5565", "CVE-2024-0116", "triton", "Linux", "24.08", "affected"},
    {"5565", "CVE-2024-0116", "triton", "Linux", "24.09", "fixed"},
    {"5570", "CVE-2024-0122", "DLS component of NVIDIA License System", "Linux", "3.1.3",
     "affected"},
    {"5570", "CVE-2024-0122", "DLS component of NVIDIA License System", "Linux", "3.1.4", "fixed"},
    {"5570", "CVE-2024-0122", "DLS component of NVIDIA License System", "Linux", "3.2.1",
     "ambiguous"},
    {"5580", "CVE-2024-0129", "NeMo", "Linux", "1.23.0", "affected"},
    {"5580", "CVE-2024-0129", "NeMo", "Linux", "2.0.0rc0", "fixed"},
    {"5582", "CVE-2024-0132", "container-toolkit", "Linux", "1.16.1", "affected"},
    {"5582", "CVE-2024-0132", "container-toolkit", "Linux", "1.16.2", "fixed"},
    {"5582", "CVE-2024-0132", "gpu-operator", "Linux", "24.6.1", "affected"},
    {"5582", "CVE-2024-0132", "gpu-operator", "Linux", "24.6.2", "fixed"},
    {"5585", "CVE-2024-0134", "container-toolkit", "Linux", "1.16.2", "affected"},
    {"5585", "CVE-2024-0134", "container-toolkit", "Linux", "1.17.0", "fixed"},
    {"5585", "CVE-2024-0134", "gpu-operator", "Linux", "v24.9.0", "fixed"},
    {"5586", "CVE-2024-0126", "gpu-driver", "Linux", "550.127.04", "affected"},
    {"5586", "CVE-2024-0126", "gpu-driver", "Linux", "550.127.05", "fixed"},
    {"5586", "CVE-2024-0126", "gpu-driver", "Linux", "560.35.03", "affected"},
    {"5586", "CVE-2024-0126", "gpu-driver", "Linux", "570.86.10", "ambiguous"},
    {"5595", "CVE-2024-0138", "Base Command Manager", "Linux", "10.24.09", "affected"},
    {"5595", "CVE-2024-0138", "Base Command Manager", "Linux", "10.24.09a", "fixed"},
};

TEST(AdvisoryMatchTest, TheRealBulletins) {
  const char* shared = std::getenv("RINGFENCE_SHARED");
  if (shared == nullptr || *shared == '\0') {
    return;  // the made-up ones above are all that can be tried without them
  }
  const Bulletins bulletins(std::string(shared) + "/data/bulletins");
  EXPECT_EQ(bulletins.set().bulletins.size(), 66U);
  for (const Truth& truth : kReal) {
    bulletins.Expect(truth);
  }
}

}  // namespace
}  // namespace ringfence::assure

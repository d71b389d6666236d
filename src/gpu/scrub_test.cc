// Goal: a scrub counts what was left, leaves nothing, and never calls a card clean that is not.
// Method: residue planted in a simulated card's memory file; bad memory on and off the chip;
// kernels that fail, stop early or are never put on a multiprocessor; every CUDA call that a scrub
// makes fails on its first, second, third... use until a run makes fewer of them.

#include "gpu/scrub.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/kernel_image.h"
#include "gpu/scenario.h"
#include "gpu/simulated_test_root.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

constexpr std::size_t kCardBytes = std::size_t{8} << 20U;

Bytes MemoryOf(const SimulatedTestRoot& root) {
  return *os::ReadFile(MemoryPath(root.path(), kSmallUuid), kCardBytes);
}

bool Says(const std::vector<std::string>& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(words) != std::string::npos;
  });
}

TEST(Scrub, ACleanCardHasNoResidue) {
  const SimulatedTestRoot root(OneSmallGpu());
  const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->simulated);
  EXPECT_EQ(report->driver_version, "13.0");
  EXPECT_TRUE(report->library_digest.starts_with("sha256:"));
  EXPECT_TRUE(report->kernel_driver.ends_with("(simulated)"));
  ASSERT_EQ(report->gpus.size(), 1U);
  const ScrubResult& result = report->gpus[0];
  EXPECT_EQ(result.uuid, kSmallUuid);
  EXPECT_EQ(result.memory_bytes, kCardBytes);
  EXPECT_EQ(result.reached_bytes, kCardBytes);
  EXPECT_EQ(result.residue_bytes, 0U);
  EXPECT_EQ(result.mismatch_bytes, 0U);
  EXPECT_EQ(report->kernels_digest, KernelDigest());
  EXPECT_TRUE(Says(report->not_covered, ": 0 bytes of memory that the driver holds back"));
  EXPECT_TRUE(Says(report->covered, ": 8388608 bytes of memory, overwritten and read back"));
  ASSERT_EQ(result.passes.size(), 5U);
  EXPECT_EQ(result.passes[0].name, "count residue");
  EXPECT_EQ(result.passes[4].name, "read zeros");
}

TEST(Scrub, EachScrubHasItsOwnPattern) {
  const SimulatedTestRoot root(OneSmallGpu());
  EXPECT_NE(Scrub(root.path(), {kSmallUuid})->pattern, Scrub(root.path(), {kSmallUuid})->pattern);
}

TEST(Scrub, AccountsForWhatIsOnTheChip) {
  const SimulatedTestRoot root(OneSmallGpu(R"(,"shared_residue_bytes":77)"));
  const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  const OnChipScrub& chip = report->gpus[0].on_chip;
  EXPECT_EQ(chip.multiprocessors, 132U);
  EXPECT_EQ(chip.multiprocessors_reached, 132U);
  EXPECT_EQ(chip.shared_bytes, 132U * 233472);
  EXPECT_EQ(chip.shared_reached_bytes, 132U * 232448);
  EXPECT_EQ(chip.shared_residue_bytes, 77U);
  EXPECT_EQ(chip.register_bytes, 132U * 262144);
  EXPECT_EQ(chip.register_reached_bytes, 132U * 232 * 4 * 256);
  EXPECT_EQ(chip.l2_bytes, 62914560U);
  EXPECT_EQ(report->gpus[0].mismatch_bytes, 0U);
  EXPECT_EQ(report->gpus[0].residue_bytes, 0U);  // of memory
  EXPECT_TRUE(Says(report->not_covered, ": 135168 bytes of shared memory that no kernel reaches"));
  EXPECT_TRUE(Says(report->not_covered, "62914560 bytes of L2 cache"));  // a card of 8 MiB
}

TEST(Scrub, AccountsForWhatNoKernelCameTo) {
  const SimulatedTestRoot hidden(OneSmallGpu(R"(,"hidden_multiprocessors":2)"));
  const Result<ScrubReport> some = Scrub(hidden.path(), {kSmallUuid});
  ASSERT_TRUE(some.has_value()) << some.error().message;
  EXPECT_EQ(some->gpus[0].on_chip.multiprocessors_reached, 130U);
  EXPECT_EQ(some->gpus[0].on_chip.shared_reached_bytes, 130U * 232448);
  EXPECT_TRUE(Says(some->not_covered, "2 of 132 multiprocessors"));
  const SimulatedTestRoot spilling(OneSmallGpu(R"(,"kernels_spill":true)"));
  const Result<ScrubReport> none = Scrub(spilling.path(), {kSmallUuid});
  ASSERT_TRUE(none.has_value()) << none.error().message;
  EXPECT_EQ(none->gpus[0].on_chip.register_reached_bytes, 0U);
  EXPECT_FALSE(Says(none->covered, "registers"));
  EXPECT_TRUE(Says(none->not_covered, "34603008 bytes of registers"));
}

TEST(Scrub, SharedMemoryThatKeepsNothingIsAMismatch) {
  const SimulatedTestRoot root(OneSmallGpu(R"(,"shared_bad_bytes":4)"));
  const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->gpus[0].mismatch_bytes, 8U);  // first and last
}

TEST(Scrub, AKernelThatStopsEarlyIsAnError) {
  const SimulatedTestRoot root(OneSmallGpu(R"(,"kernel_skip_bytes":16)"));
  const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, Code::kCorrupt);
  EXPECT_NE(report.error().message.find("came to 65520 of 65536 bytes"), std::string::npos)
      << report.error().message;
}

TEST(Scrub, ADriverThatIsTooOldForTheKernelsIsAnError) {
  std::string scenario = OneSmallGpu();
  scenario.insert(1, R"("cuda_version":"10.2",)");
  const SimulatedTestRoot root(scenario);
  const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
  ASSERT_FALSE(report.has_value());
  EXPECT_NE(report.error().message.find("CUDA_ERROR_UNSUPPORTED_PTX_VERSION"), std::string::npos)
      << report.error().message;
  EXPECT_NE(report.error().hint.find("branch 450"), std::string::npos);
}

TEST(Scrub, CountsEveryByteLeftAndLeavesNone) {
  const SimulatedTestRoot root(OneSmallGpu());
  Bytes memory(kCardBytes);
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{70000}, kCardBytes / 2, kCardBytes - 1}) {
    memory[at] = std::byte{0x80};
  }
  ASSERT_TRUE(os::WriteFile(MemoryPath(root.path(), kSmallUuid), memory, 0600).has_value());
  const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->gpus.at(0).residue_bytes, 4U);
  EXPECT_EQ(MemoryOf(root), Bytes(kCardBytes));
  const Result<ScrubReport> again = Scrub(root.path(), {kSmallUuid});
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->gpus.at(0).residue_bytes, 0U);
}

TEST(Scrub, SaysHowMuchTheDriverHoldsBack) {
  const SimulatedTestRoot root(R"({"gpus":[{}]})");
  const std::string uuid = "GPU-00000000-0000-4000-8000-000000000001";
  const Result<ScrubReport> report = Scrub(root.path(), {uuid});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->gpus[0].reached_bytes, 63U << 20U);
  EXPECT_TRUE(
      Says(report->not_covered, uuid + ": 1048576 bytes of memory that the driver holds back"));
}

TEST(Scrub, BadMemoryIsAMismatch) {
  // Bits that cannot be set (the pattern, whatever its seed, has a one in one of two places that
  // are eight bytes apart), one that cannot be cleared, and both.
  for (const char* bad : {R"([{"offset":4096,"and":254},{"offset":4104,"and":254}])",
                          R"([{"offset":8388607,"or":1}])",
                          R"([{"offset":0,"and":254},{"offset":1048576,"or":255}])"}) {
    const SimulatedTestRoot root(OneSmallGpu(R"(,"bad_memory":)" + std::string(bad)));
    const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_GT(report->gpus[0].mismatch_bytes, 0U) << bad;
  }
}

TEST(Scrub, RefusesTooLittleReach) {
  const SimulatedTestRoot root(R"({"gpus":[{"uuid":"GPU-0a0b0c0d-0000-4000-8000-000000000001",
      "memory_mib":64,"reserved_mib":3}]})");
  const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, Code::kFailedPrecondition);
}

TEST(Scrub, RefusesWrongQuestions) {
  const SimulatedTestRoot root(OneSmallGpu());
  EXPECT_EQ(Scrub(root.path(), {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Scrub(root.path(), {kSmallUuid, kSmallUuid}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Scrub(root.path(), {"GPU-ffffffff-0000-4000-8000-000000000001"}).error().code,
            Code::kNotFound);
  EXPECT_EQ(Scrub(root.path() + "/nowhere", {kSmallUuid}).error().code, Code::kNotFound);
}

TEST(Scrub, RefusesACardInMigModeALostOneAndOneWithoutItsDeviceFile) {
  const SimulatedTestRoot mig(OneSmallGpu(R"(,"mig":true)"));
  EXPECT_EQ(Scrub(mig.path(), {kSmallUuid}).error().code, Code::kFailedPrecondition);
  const SimulatedTestRoot lost(OneSmallGpu(R"(,"lost":true)"));
  EXPECT_FALSE(Scrub(lost.path(), {kSmallUuid}).has_value());
  const SimulatedTestRoot hidden(OneSmallGpu());
  ASSERT_TRUE(os::RemoveFile(hidden.path() + "/dev/nvidia0").has_value());
  EXPECT_EQ(Scrub(hidden.path(), {kSmallUuid}).error().code, Code::kNotFound);
  const SimulatedTestRoot no_uvm(OneSmallGpu());
  ASSERT_TRUE(os::RemoveFile(no_uvm.path() + "/dev/nvidia-uvm").has_value());
  EXPECT_FALSE(Scrub(no_uvm.path(), {kSmallUuid}).has_value());
}

TEST(Scrub, EveryFailingCallIsAnError) {
  constexpr int kCallsMax = 200;
  for (const std::string function : {"cuInit",
                                     "cuDriverGetVersion",
                                     "cuDeviceGetCount",
                                     "cuDeviceGet",
                                     "cuDeviceGetUuid_v2",
                                     "cuDeviceGetAttribute",
                                     "cuCtxCreate_v2",
                                     "cuCtxDestroy_v2",
                                     "cuCtxSynchronize",
                                     "cuMemGetInfo_v2",
                                     "cuMemAlloc_v2",
                                     "cuMemFree_v2",
                                     "cuMemHostAlloc",
                                     "cuMemFreeHost",
                                     "cuModuleLoadData",
                                     "cuModuleUnload",
                                     "cuModuleGetFunction",
                                     "cuFuncGetAttribute",
                                     "cuFuncSetAttribute",
                                     "cuLaunchKernel"}) {
    SimulatedTestRoot root(OneSmallGpu());
    int after = 0;
    for (; after < kCallsMax; ++after) {
      // As a failure of the library as a whole: some of these functions name no GPU.
      std::string scenario = OneSmallGpu();
      scenario.insert(1, R"("fail":{")" + function + R"(":{"result":999,"times":1,"after":)" +
                             std::to_string(after) + "}},");
      root.Make(scenario);
      const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
      if (report.has_value()) {
        break;
      }
      EXPECT_NE(report.error().message.find("CUDA_ERROR_UNKNOWN"), std::string::npos)
          << report.error().message;
    }
    EXPECT_GT(after, 0) << function << " is never called";
    EXPECT_LT(after, kCallsMax) << function;
  }
}

TEST(Scrub, NoMemoryAtAllIsAnError) {
  const SimulatedTestRoot root(OneSmallGpu(R"(,"fail":{"cuMemAlloc_v2":{"result":2,"after":1}})"));
  const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
  ASSERT_FALSE(report.has_value());
  EXPECT_NE(report.error().message.find("no memory can be allocated"), std::string::npos);
}

TEST(ScrubJson, ComesBackAndRefusesCuts) {
  ScrubReport report;
  report.simulated = true;
  report.driver_version = "13.0";
  report.kernel_driver = "NVRM";
  report.library_digest = "sha256:00";
  report.kernels_digest = "sha256:01";
  report.pattern = "x";
  report.gpus = {{"GPU-1", 10, 9, 8, 7, 6}, {"GPU-2", 1, 2, 3, 4, 5}};
  report.gpus[0].on_chip = {1, 2, 3, 4, 5, 6, 7, 8};
  report.gpus[0].passes = {{"one", 1}, {"two", 2}};
  report.covered = {"memory"};
  report.not_covered = {"caches"};
  const std::string text = ScrubReportToJson(report);
  const Result<ScrubReport> again = ScrubReportFromJson(text);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(ScrubReportToJson(*again), text);
  EXPECT_EQ(again->gpus[0].mismatch_bytes, 7U);
  EXPECT_EQ(again->gpus[0].on_chip.l2_bytes, 8U);
  EXPECT_EQ(again->gpus[0].passes[1].duration_us, 2U);
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    EXPECT_FALSE(ScrubReportFromJson(std::string_view(text).substr(0, cut)).has_value());
  }
  EXPECT_FALSE(ScrubReportFromJson(R"({"error":{"code":"x","message":"y"}})").has_value());
}

}  // namespace
}  // namespace ringfence::gpu

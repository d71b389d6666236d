// Any bytes as a file of checks, and what comes out run on an empty machine and on one that holds
// the same bytes: no crash, and every result says why.

#include "assure/assess_report.h"
#include "assure/check_run.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence::assure;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::vector<CheckSpec> checks = ParseChecks(text, "fuzz");
  const auto empty = MakeMachine({}, 0);
  const auto full = MakeMachine({{"/etc/ssh/sshd_config", {.text = text}},
                                 {"/proc/net/tcp", {.text = text}},
                                 {"/proc/mounts", {.text = text}},
                                 {"/etc/x", {.text = text}}},
                                0);
  for (const MachineView* machine : {empty.get(), full.get()}) {
    const Assessment assessment = Assess(checks, {*machine, nullptr, {}}, {});
    for (const CheckResult& result : assessment.results) {
      RINGFENCE_CHECK(!result.why.empty());
    }
    RINGFENCE_CHECK(assessment.score >= 0 && assessment.score <= 100);
    (void)Html(assessment, {});
  }
  return 0;
}

// Any bytes as a register, as an assessment and as proofs: no crash; what is read can be written,
// read again and shown.

#include "assure/risk_register.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence::assure;
  using ringfence::Timestamp;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const RiskModel model;
  if (auto reg = ParseRegister(text); reg.has_value()) {
    const std::string written = RegisterText(*reg);
    const auto again = ParseRegister(written);
    RINGFENCE_CHECK(again.has_value() && RegisterText(*again) == written);
    for (const NodeScore& score : ScoreNodes(*reg, model, Timestamp{})) {
      RINGFENCE_CHECK(score.score() >= 0 && score.score() <= 100);
    }
    (void)RiskHtml(*reg, model, Timestamp{});
  }
  if (const auto found = ParseFindings(text); found.has_value()) {
    Register reg;
    (void)UpdateRegister(reg, model, *found, {}, found->when);
  }
  Exposure exposure;
  (void)ParseProofs(text, exposure);
  return 0;
}

// Any bytes as a file of controls: no crash; what is refused says why; what is taken has ids in
// their plain form and something for a person to show, and can be judged.

#include "assure/comply_report.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence::assure;
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)PlainControlId(text);
  const auto framework = ParseFramework(text, "fuzz");
  if (!framework.has_value()) {
    RINGFENCE_CHECK(!framework.error().message.empty());
    return 0;
  }
  for (const ControlSpec& control : framework->controls) {
    RINGFENCE_CHECK(PlainControlId(control.id) == control.id);
    RINGFENCE_CHECK(!control.person.empty());
  }
  const Evidence evidence;
  const FrameworkStatus status = JudgeFramework(*framework, evidence);
  for (const ControlStatus& one : status.controls) {
    RINGFENCE_CHECK(!one.why.empty() && one.state != ControlState::kProven);
  }
  (void)ComplianceJson({status}, evidence, {});
  return 0;
}

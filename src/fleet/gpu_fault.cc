#include "fleet/gpu_fault.h"

#include <algorithm>
#include <array>

namespace ringfence::fleet {
namespace {

struct Xid {
  std::uint32_t number;
  bool quarantines;  // memory, firmware or bus cannot be trusted until somebody has looked
  const char* what;
};

constexpr std::array<Xid, 37> kXids = {{
    {13, false, "the job's kernel raised an exception"},
    {31, false, "the job touched memory that is not its own"},
    {32, false, "the job's command stream was invalid"},
    {33, true, "the firmware's own command stream failed"},
    {43, false, "the job stopped processing"},
    {45, false, "the job was ended before its work was done"},
    {48, true, "memory lost bits that could not be corrected"},
    {60, true, "the video processor's firmware failed"},
    {62, true, "the GPU's own processor halted"},
    {63, false, "a memory row was replaced by a spare"},
    {64, true, "a bad memory row could not be replaced"},
    {69, false, "the job used a graphics engine wrongly"},
    {73, false, "a video engine failed"},
    {74, true, "an NVLink failed"},
    {79, true, "the GPU has fallen off the bus"},
    {92, false, "memory corrects an unusual number of errors"},
    {94, false, "a memory error stayed within the job"},
    {95, true, "a memory error did not stay within the job"},
    {109, false, "the job's context could not be switched away"},
    {110, true, "the security processor reported a fault"},
    {119, true, "the GPU's system processor does not answer"},
    {120, true, "the GPU's system processor failed"},
    {121, false, "the link to the processor reported an error"},
    {125, true, "the board's own settings (InfoROM) failed"},
    {137, false, "a job touched another GPU's memory over NVLink without right"},
    {140, true, "unrecovered memory error"},
    {143, true, "the GPU could not be initialised"},
    {144, true, "an NVLink engine failed"},
    {150, true, "an NVLink engine failed"},
    {151, true, "keys of confidential computing could not be changed"},
    {154, false, "the driver recommends another way to recover"},
    {155, true, "an NVLink went down"},
    {166, true, "a secured NVLink failed"},
    {169, true, "the security processor halted"},
    {170, true, "a secured NVLink failed"},
    {171, false, "memory error in on-chip memory"},
    {172, false, "memory error in on-chip memory"},
}};

std::string With(const std::string& what, const std::string& evidence) {
  return evidence.empty() ? what : what + ": " + evidence;
}

}  // namespace

FaultVerdict Judge(const gpu::GpuFault& fault) {
  if (fault.kind == gpu::FaultKind::kLost) {
    return {true, With("the GPU is lost", fault.why)};
  }
  if (fault.kind == gpu::FaultKind::kHung) {
    return {true, With("the GPU hangs", fault.why)};
  }
  if (fault.kind == gpu::FaultKind::kBack) {
    return {false, With("the GPU is back", fault.why)};
  }
  const auto known = std::find_if(kXids.begin(), kXids.end(),
                                  [&](const Xid& xid) { return xid.number == fault.xid; });
  const std::string name = "Xid " + std::to_string(fault.xid);
  if (known == kXids.end()) {
    return {false, With(name + " (not known to us)", fault.why)};
  }
  return {known->quarantines, With(name + " (" + known->what + ")", fault.why)};
}

}  // namespace ringfence::fleet

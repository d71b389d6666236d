#include "isolate/capabilities.h"

#include "isolate/controls.h"
#include "isolate/runtime.h"
#include "os/file.h"
#include "os/identity.h"

namespace ringfence::isolate {

std::vector<std::string> MissingForBoxes(const NeededFiles& files) {
  std::vector<std::string> missing;
  if (!os::IsRoot()) {
    missing.emplace_back("not root: start the node's jailer as root (sudo)");
    return missing;  // without it the trials below would fail for that reason alone
  }
  constexpr Wearer kWearers[] = {Wearer::kJailer, Wearer::kBox};
  missing = MissingControls(kWearers, ProbeKernel());
  if (const auto runtime = FindRuntime(); !runtime.has_value()) {
    missing.push_back(runtime.error().message + ": " + runtime.error().hint);
  }
  for (const std::string& file : {files.init, files.worker}) {
    if (!os::Exists(file)) {
      missing.push_back("the program " + file + " is not there: build or install all of Ringfence");
    }
  }
  return missing;
}

}  // namespace ringfence::isolate

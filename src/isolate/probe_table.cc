#include "isolate/probe_table.h"

#include <algorithm>

#include "isolate/probe_families.h"

namespace ringfence::isolate {
namespace {

std::vector<Probe> Make() {
  std::vector<Probe> all;
  for (const auto& family : {KernelProbes(), ProcessProbes(), FileProbes(), SocketProbes(),
                             MountProbes(), RuntimeProbes(), DeviceProbes(), GpuProbes()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

}  // namespace

const std::vector<model::IsolationClass>& EveryClass() {
  using model::IsolationClass;
  static const std::vector<IsolationClass> all = {IsolationClass::kNode, IsolationClass::kGpu,
                                                  IsolationClass::kMig, IsolationClass::kTime,
                                                  IsolationClass::kMps};
  return all;
}

std::span<const Probe> Probes() {
  static const std::vector<Probe> probes = Make();
  return probes;
}

const Probe* FindProbe(std::string_view name) {
  const std::span<const Probe> probes = Probes();
  const auto found = std::find_if(probes.begin(), probes.end(),
                                  [&](const Probe& probe) { return probe.name == name; });
  return found == probes.end() ? nullptr : &*found;
}

}  // namespace ringfence::isolate

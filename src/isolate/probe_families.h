#pragma once

// The parts of the table of probes.

#include <vector>

#include "isolate/probe_table.h"

namespace ringfence::isolate {

// A wall of the kernel stands around a box whatever its GPU.
const std::vector<model::IsolationClass>& EveryClass();

std::vector<Probe> KernelProbes();
std::vector<Probe> ProcessProbes();
std::vector<Probe> FileProbes();
std::vector<Probe> SocketProbes();
std::vector<Probe> MountProbes();
std::vector<Probe> RuntimeProbes();
std::vector<Probe> DeviceProbes();
std::vector<Probe> GpuProbes();

}  // namespace ringfence::isolate

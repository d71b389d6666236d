#pragma once

// What NVML says of a machine's GPUs: asked of its driver, or kept in a captured root as
// /ringfence/nvml.json.

#include <optional>
#include <string>

#include "assure/machine_view.h"
#include "base/json.h"
#include "gpu/firmware.h"

namespace ringfence::assure {

inline constexpr const char* kNvmlFile = "/ringfence/nvml.json";

struct NvmlView {
  std::optional<gpu::FirmwareReport> report;
  std::string problem;  // why there is no report, where there is a driver; else empty
};

// Loads the driver's library: as nvidia-smi does, and like it with whatever the driver does then.
NvmlView AskNvml(const std::string& driver_root);
// From the captured file; neither report nor problem: there is none.
NvmlView CapturedNvml(const MachineView& machine);

Json NvmlJson(const gpu::FirmwareReport& report);
Result<gpu::FirmwareReport> ParseNvml(std::string_view text);

// One fact of a card by its name in the document ("vbios", "ecc"), as text: "on", "off", "n/a".
std::string NvmlFact(const gpu::Firmware& card, std::string_view name);

}  // namespace ringfence::assure

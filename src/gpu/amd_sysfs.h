#pragma once

// What the kernel says of AMD's GPUs: /sys/bus/pci, /sys/module/amdgpu and the compute driver's
// (KFD's) topology. Pure files, beneath a driver's root where that has them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/inventory.h"

namespace ringfence::gpu {

struct AmdCard {
  std::uint32_t render_minor = 0;  // /dev/dri/renderD<minor>
  std::uint32_t kfd_id = 0;        // KFD's number for it
  std::string model;
  std::string serial;         // may be empty
  std::string vbios;          // may be empty
  std::string pci_device_id;  // device and vendor, "74a11002", as NVML writes them
  std::uint32_t compute_units = 0;
  std::uint64_t local_bytes = 0;  // of LDS, on the chip, all of it
  std::vector<GpuProcess> processes;
};

// "0000:0f:00.0": the card's folder in /sys/bus/pci/devices.
std::string AmdFolderName(std::uint64_t bdf);

// Whether the kernel has AMD's driver with its compute part.
bool HasAmdDriver(const std::string& driver_root);
// "6.12.12"; "in-tree" for the one that came with the kernel, which has no number of its own.
Result<std::string> AmdDriverVersion(const std::string& driver_root);
// Render nodes of the cards that the compute driver has.
std::vector<std::uint32_t> AmdMinors(const std::string& driver_root);
// kNotFound: the compute driver has no such card, so it is for a display and no work.
Result<AmdCard> ReadAmdCard(const std::string& driver_root, const std::string& folder_name);

}  // namespace ringfence::gpu

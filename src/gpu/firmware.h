#pragma once

// What NVML says of a card's firmware and settings, beyond the inventory. Read where a machine is
// assessed, and nowhere in the way of a lease: a question that a card does not answer is no error.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::gpu {

struct Firmware {
  std::string uuid;
  std::string model;
  std::string serial;       // may be empty
  std::string pci_address;  // "00000000:00:06.0"
  std::string vbios;
  std::string gsp;
  std::string inforom;                // image version; empty: the card does not say
  std::optional<bool> inforom_valid;  // nullopt: it does not say
  std::optional<bool> ecc;
  std::optional<bool> mig;
  std::optional<bool> persistence;
  std::optional<std::uint64_t> uncorrected_errors;  // of memory, since they are counted
  std::string problem;  // why the card could not be read; then the rest may be empty
};

struct FirmwareReport {
  bool simulated = false;
  std::string driver;
  std::vector<Firmware> gpus;
};

// kNotFound: no driver there. A card that fails has `problem`, and the others are read.
Result<FirmwareReport> ReadFirmware(const std::string& driver_root);

}  // namespace ringfence::gpu

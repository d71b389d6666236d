// NVML stand-in: what one GPU says of itself.

#include <algorithm>
#include <cstring>
#include <map>

#include "memory.h"
#include "mig_state.h"
#include "nvml_state.h"

using ringfence::gpu::nvml::Return;
namespace nvml = ringfence::gpu::nvml;
namespace sim = ringfence::sim;

namespace ringfence::sim {
namespace {

using Card = nvml::DeviceOpaque;

std::vector<Held> HeldOn(const Card& card, std::uint64_t start, std::uint64_t end) {
  const int fd = InformationFd(State().driver->root, card.gpu);
  return fd < 0 ? std::vector<Held>() : ListHeld(fd, start, end, Whose::kAll);
}

std::uint64_t AllocatedBytes(const Card& card) {
  std::uint64_t bytes = 0;
  for (const Held& held : HeldOn(card, 0, card.gpu.usable_bytes())) {
    bytes += held.end - held.start;
  }
  return bytes;
}

// Processes with a context, and what each has allocated. Those that this pid namespace cannot
// name are left out.
std::map<unsigned int, unsigned long long> Processes(const Card& card) {
  std::map<unsigned int, unsigned long long> processes;
  for (const Held& held : HeldOn(card, kContextBase, kContextBase + kContextsMax)) {
    if (held.pid != 0) {
      processes.emplace(held.pid, 0);
    }
  }
  for (const Held& held : HeldOn(card, 0, card.gpu.usable_bytes())) {
    if (const auto found = processes.find(held.pid); found != processes.end()) {
      found->second += held.end - held.start;
    }
  }
  return processes;
}

// With which instance each is on; a card that is cut has those of all its instances.
std::vector<nvml::ProcessInfo> ProcessesOf(const Card& card) {
  constexpr unsigned int kNoInstance = 0xffffffffU;
  std::vector<nvml::ProcessInfo> found;
  const auto add = [&](const Card& one) {
    const auto& slice = one.gpu.slice;
    for (const auto& [pid, bytes] : Processes(one)) {
      found.push_back({pid, bytes, slice ? slice->gpu_instance : kNoInstance,
                       slice ? slice->compute_instance : kNoInstance});
    }
  };
  add(card);
  for (const Card* slice :
       card.parent == nullptr ? ListSlices(State(), &card) : std::vector<Card*>()) {
    add(*slice);
  }
  return found;
}

Return PutMode(const std::optional<bool>& mode, unsigned int* current, unsigned int* pending) {
  if (current == nullptr || pending == nullptr) {
    return nvml::kInvalidArgument;
  }
  if (!mode.has_value()) {
    return nvml::kNotSupported;
  }
  *current = *pending = *mode ? 1 : 0;
  return nvml::kSuccess;
}

}  // namespace
}  // namespace ringfence::sim

using sim::Card;

RINGFENCE_EXPORT Return nvmlDeviceGetIndex(nvml::Device device, unsigned int* index) {
  return sim::OnDevice("nvmlDeviceGetIndex", device,
                       [&](const Card& card) { return sim::Put(index, card.index); });
}

RINGFENCE_EXPORT Return nvmlDeviceGetUUID(nvml::Device device, char* text, unsigned int bytes) {
  return sim::OnDevice("nvmlDeviceGetUUID", device,
                       [&](const Card& card) { return sim::CopyText(card.gpu.uuid, text, bytes); });
}

RINGFENCE_EXPORT Return nvmlDeviceGetName(nvml::Device device, char* text, unsigned int bytes) {
  return sim::OnDevice("nvmlDeviceGetName", device, [&](const Card& card) {
    return sim::CopyText(card.gpu.model, text, bytes);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetSerial(nvml::Device device, char* text, unsigned int bytes) {
  return sim::OnDevice("nvmlDeviceGetSerial", device, [&](const Card& card) {
    return card.gpu.serial.empty() ? nvml::kNotSupported
                                   : sim::CopyText(card.gpu.serial, text, bytes);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetVbiosVersion(nvml::Device device, char* text,
                                                  unsigned int bytes) {
  return sim::OnDevice("nvmlDeviceGetVbiosVersion", device, [&](const Card& card) {
    return sim::CopyText(card.gpu.vbios, text, bytes);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetGspFirmwareVersion(nvml::Device device, char* text) {
  return sim::OnDevice("nvmlDeviceGetGspFirmwareVersion", device, [&](const Card& card) {
    return card.gpu.gsp_firmware.empty()
               ? nvml::kNotSupported
               : sim::CopyText(card.gpu.gsp_firmware, text, nvml::kGspVersionBytes);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetMinorNumber(nvml::Device device, unsigned int* minor) {
  return sim::OnDevice("nvmlDeviceGetMinorNumber", device,
                       [&](const Card& card) { return sim::Put(minor, card.gpu.minor); });
}

RINGFENCE_EXPORT Return nvmlDeviceGetPciInfo_v3(nvml::Device device, nvml::PciInfo* pci) {
  return sim::OnDevice("nvmlDeviceGetPciInfo_v3", device, [&](const Card& card) {
    if (pci == nullptr) {
      return nvml::kInvalidArgument;
    }
    *pci = {};
    const std::string& address = card.gpu.pci_address;
    (void)std::sscanf(address.c_str(), "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    (void)std::snprintf(pci->bus_id, sizeof pci->bus_id, "%s", address.c_str());
    (void)std::snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%s",
                        address.substr(4).c_str());
    pci->pci_device_id = card.gpu.pci_device_id;
    pci->pci_subsystem_id = card.gpu.pci_subsystem_id;
    return nvml::kSuccess;
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* memory) {
  return sim::OnDevice("nvmlDeviceGetMemoryInfo", device, [&](const Card& card) {
    const std::uint64_t total = card.gpu.memory_bytes();
    const std::uint64_t used = total - card.gpu.usable_bytes() + sim::AllocatedBytes(card);
    return sim::Put(memory, {total, total - used, used});
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetMemoryInfo_v2(nvml::Device device, nvml::MemoryV2* memory) {
  return sim::OnDevice("nvmlDeviceGetMemoryInfo_v2", device, [&](const Card& card) {
    if (memory == nullptr) {
      return nvml::kInvalidArgument;
    }
    if (memory->version != nvml::StructVersion<nvml::MemoryV2>(2)) {
      return nvml::kFunctionNotFound;  // as the real one answers (driver 580)
    }
    memory->total = card.gpu.memory_bytes();
    memory->reserved = card.gpu.memory_bytes() - card.gpu.usable_bytes();
    memory->used = sim::AllocatedBytes(card);
    memory->free = card.gpu.usable_bytes() - memory->used;
    return nvml::kSuccess;
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetEccMode(nvml::Device device, unsigned int* current,
                                             unsigned int* pending) {
  return sim::OnDevice("nvmlDeviceGetEccMode", device, [&](const Card& card) {
    return sim::PutMode(card.gpu.ecc, current, pending);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetTotalEccErrors(nvml::Device device, int type, int counter,
                                                    unsigned long long* errors) {
  return sim::OnDevice("nvmlDeviceGetTotalEccErrors", device, [&](const Card& card) {
    if (type < 0 || type > 1 || counter < 0 || counter > 1) {
      return nvml::kInvalidArgument;
    }
    if (!card.gpu.ecc.value_or(false)) {
      return nvml::kNotSupported;
    }
    return sim::Put<unsigned long long>(
        errors, type == 0 ? card.gpu.ecc_errors_corrected : card.gpu.ecc_errors_uncorrected);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetMigMode(nvml::Device device, unsigned int* current,
                                             unsigned int* pending) {
  return sim::OnDevice("nvmlDeviceGetMigMode", device, [&](const Card& card) {
    std::optional<bool> mode = card.gpu.mig;
    if (mode.has_value()) {
      mode = sim::ReadMigState(sim::State().driver->root, card.gpu).enabled;
    }
    return sim::PutMode(mode, current, pending);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetUtilizationRates(nvml::Device device,
                                                      nvml::Utilization* rates) {
  return sim::OnDevice("nvmlDeviceGetUtilizationRates", device, [&](const Card& card) {
    return sim::Put(rates, {card.gpu.utilization_percent, card.gpu.signals.memory_busy_percent});
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetPowerUsage(nvml::Device device, unsigned int* milliwatts) {
  return sim::OnDevice("nvmlDeviceGetPowerUsage", device,
                       [&](const Card& card) { return sim::Put(milliwatts, card.gpu.power_mw); });
}

RINGFENCE_EXPORT Return nvmlDeviceGetEnforcedPowerLimit(nvml::Device device,
                                                        unsigned int* milliwatts) {
  return sim::OnDevice("nvmlDeviceGetEnforcedPowerLimit", device, [&](const Card& card) {
    return sim::Put(milliwatts, card.gpu.power_limit_mw);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetTemperature(nvml::Device device, int sensor,
                                                 unsigned int* celsius) {
  return sim::OnDevice("nvmlDeviceGetTemperature", device, [&](const Card& card) {
    return sensor != 0 ? nvml::kInvalidArgument : sim::Put(celsius, card.gpu.temperature_c);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetComputeRunningProcesses_v3(nvml::Device device,
                                                                unsigned int* count,
                                                                nvml::ProcessInfo* processes) {
  return sim::OnDevice("nvmlDeviceGetComputeRunningProcesses_v3", device, [&](const Card& card) {
    if (count == nullptr || (*count > 0 && processes == nullptr)) {
      return nvml::kInvalidArgument;
    }
    const std::vector<nvml::ProcessInfo> found = sim::ProcessesOf(card);
    const unsigned int room = *count;
    *count = static_cast<unsigned int>(found.size());
    if (room < found.size()) {
      return nvml::kInsufficientSize;
    }
    std::copy(found.begin(), found.end(), processes);
    return nvml::kSuccess;
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetGraphicsRunningProcesses_v3(nvml::Device device,
                                                                 unsigned int* count,
                                                                 nvml::ProcessInfo* /*processes*/) {
  return sim::OnDevice("nvmlDeviceGetGraphicsRunningProcesses_v3", device,
                       [&](const Card&) { return sim::Put(count, 0U); });
}

#pragma once

// What a simulated driver's GPUs are, as a JSON file: read by the stand-ins of sim/ at run time
// and by MakeSimulatedRoot. Docs of the fields: sim/README.md.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/mig_board.h"
#include "gpu/scenario_signals.h"

namespace ringfence::gpu {

inline constexpr std::size_t kScenarioBytesMax = 1U << 20U;
inline constexpr std::size_t kSimulatedGpusMax = 64;

// Makes a function of the vendor's answer `result` from its call number `after` (from 0) on, for so
// many `times`.
struct FailureSwitch {
  int result = 0;
  std::uint64_t after = 0;
  std::uint64_t times = kAlways;
  static constexpr std::uint64_t kAlways = 0x7fffffff;
};
using FailureSwitches = std::map<std::string, FailureSwitch, std::less<>>;

// A byte of memory with stuck bits: whatever is written, (value & and_mask) | or_mask stays.
struct BadByte {
  std::uint64_t offset = 0;
  std::uint8_t and_mask = 0xff;
  std::uint8_t or_mask = 0;
};

struct SimulatedGpu {
  std::string vendor = "nvidia";  // or "amd"
  std::string model;
  std::string uuid;
  std::string serial;
  std::string pci_address;  // "00000000:0F:00.0", as NVML writes it
  std::uint32_t pci_device_id = 0;
  std::uint32_t pci_subsystem_id = 0;
  std::string vbios;
  std::string gsp_firmware;  // empty: not supported
  std::uint32_t minor = 0;
  std::uint64_t memory_mib = 0;
  std::uint64_t reserved_mib = 0;  // of these, what the driver keeps for itself
  std::optional<bool> ecc;
  std::optional<bool> mig;
  std::string mig_slices;  // what it is cut into when its root is made: "1g.18gb x2, 4g.71gb@0"
  std::uint32_t temperature_c = 0;
  std::uint32_t power_mw = 0;
  std::uint32_t power_limit_mw = 0;
  std::uint32_t utilization_percent = 0;
  std::uint64_t ecc_errors_corrected = 0;
  std::uint64_t ecc_errors_uncorrected = 0;
  bool lost = false;  // fallen off the bus
  SimulatedSignals signals;
  std::vector<TimelineStep> timeline;
  FailureSwitches cuda_failures;
  FailureSwitches nvml_failures;
  std::vector<BadByte> bad_memory;
  // What our own kernels meet (sim/cuda_kernels.cc).
  std::uint64_t kernel_skip_bytes = 0;       // at the end of each launch's memory: never come to
  std::uint64_t shared_residue_bytes = 0;    // in on-chip shared memory, for each process's first
  std::uint64_t shared_bad_bytes = 0;        // of it that keep nothing
  std::uint32_t hidden_multiprocessors = 0;  // that no block is put on
  bool kernels_spill = false;                // the driver's compiler finds too few registers
  bool mig_lies = false;                     // reports places for instances that it does not have
  // Of AMD's; empty: cannot be divided.
  std::string compute_partition;
  std::string memory_partition;

  bool scrubs_on_free = false;  // as its driver does; said once for all of its GPUs

  // Of a MIG device, which is a GPU of its own to CUDA; no scenario says these.
  struct Slice {
    std::string parent;  // UUID of the GPU
    std::uint32_t gpu_instance = 0;
    std::uint32_t compute_instance = 0;
    std::uint32_t multiprocessors = 0;
  };
  std::optional<Slice> slice = {};

  bool is_amd() const { return vendor == "amd"; }
  std::uint64_t memory_bytes() const { return memory_mib << 20U; }
  std::uint64_t usable_bytes() const { return (memory_mib - reserved_mib) << 20U; }
};

struct Scenario {
  std::string driver_version;
  std::string amdgpu_version;
  int cuda_version = 0;  // 13000
  std::string nvml_version;
  std::optional<std::string> confidential_computing;  // "off", "on", "devtools"; none: unsupported
  // Whether memory is cleared when it is given back, and what the driver's settings say of it.
  // None: they say that it is, and it is not, so that a scrub has something to find.
  std::optional<bool> scrub_on_free;
  FailureSwitches cuda_failures;  // of functions that name no GPU too
  FailureSwitches nvml_failures;
  std::vector<SimulatedGpu> gpus;  // in order of PCI address

  bool has_amd() const;
  bool has_nvidia() const;  // with no GPUs at all too
};

// Errors name the field ("gpus[2].memory_mib").
Result<Scenario> ParseScenario(std::string_view text);
// With every default written out; ParseScenario gives the same scenario back.
std::string ScenarioToJson(const Scenario& scenario);

// "0000:0f:00.0": the GPU's folder in /proc/driver/nvidia/gpus.
std::string ProcName(const std::string& pci_address);
// Its `information` file beneath a driver root, of AMD's the `uevent` in /sys. Processes with a
// context on a simulated GPU hold record locks on it (sim/memory.h).
std::string InformationPath(const std::string& root, const SimulatedGpu& gpu);
// "sys/bus/pci/devices/0000:0f:00.0", beneath a root: what the kernel says of one of AMD's.
std::string AmdFolder(const std::string& root, const SimulatedGpu& gpu);
// Its place in the compute driver's topology.
std::string AmdNodeFolder(const std::string& root, const SimulatedGpu& gpu);
std::string MemoryPath(const std::string& root, const std::string& uuid);
std::string MemoryPath(const std::string& root, const SimulatedGpu& gpu);
// What its MIG mode and instances are, and the instances' own files: `state`, gi<N>/.
std::string MigFolder(const std::string& root, const std::string& uuid);
std::string MigInstanceFolder(const std::string& root, const std::string& uuid,
                              std::uint32_t gpu_instance);

// The minors of nvidia-caps, as the driver numbers them for every instance that there could be.
inline constexpr std::uint32_t kMigConfigMinor = 1;
inline constexpr std::uint32_t kMigMonitorMinor = 2;
inline constexpr std::uint32_t kMigGpuInstancesMax = 15;
inline constexpr std::uint32_t kMigComputeInstancesMax = 8;
// The id of the instance at a place follows from the place, as on real boards.
std::uint32_t SimulatedInstanceId(const MigBoard& board, const MigProfile& profile,
                                  std::uint32_t start);
std::uint64_t SimulatedSliceMib(const SimulatedGpu& gpu, const MigBoard& board,
                                const MigProfile& profile);
std::uint32_t SimulatedCapMinor(std::uint32_t gpu_minor, std::uint32_t gpu_instance,
                                std::optional<std::uint32_t> compute_instance);

}  // namespace ringfence::gpu

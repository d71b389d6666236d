#pragma once

// The part of NVML's binary interface that we call and that sim/ answers: our own declarations,
// so that no vendor header is needed to build. tests/gpu/abi_check.cc holds them against the
// vendor's header on a machine that has it.

namespace ringfence::gpu::nvml {

enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kInUse = 19,
  kInsufficientResources = 23,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

inline constexpr unsigned kUuidBytes = 96;
inline constexpr unsigned kNameBytes = 96;
inline constexpr unsigned kSerialBytes = 30;
inline constexpr unsigned kVbiosBytes = 32;
inline constexpr unsigned kVersionBytes = 80;
inline constexpr unsigned kGspVersionBytes = 64;

struct DeviceOpaque;
using Device = DeviceOpaque*;
struct GpuInstanceOpaque;
using GpuInstance = GpuInstanceOpaque*;
struct ComputeInstanceOpaque;
using ComputeInstance = ComputeInstanceOpaque*;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pci_device_id;
  unsigned int pci_subsystem_id;
  char bus_id[32];
};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;  // with what the driver reserves
};

struct MemoryV2 {
  unsigned int version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;  // without what the driver reserves
};

struct Utilization {
  unsigned int gpu;
  unsigned int memory;
};

struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_memory;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

struct ConfComputeState {
  unsigned int environment;
  unsigned int feature;
  unsigned int devtools;
};

struct ConfComputeCaps {
  unsigned int cpu;
  unsigned int gpus;
};

struct GpuInstanceProfile {
  unsigned int id;
  unsigned int p2p;
  unsigned int slices;
  unsigned int instances;
  unsigned int multiprocessors;
  unsigned int copy_engines;
  unsigned int decoders;
  unsigned int encoders;
  unsigned int jpegs;
  unsigned int ofas;
  unsigned long long memory_mb;
};

struct GpuInstanceProfileV2 {
  unsigned int version;
  unsigned int id;
  unsigned int p2p;
  unsigned int slices;
  unsigned int instances;
  unsigned int multiprocessors;
  unsigned int copy_engines;
  unsigned int decoders;
  unsigned int encoders;
  unsigned int jpegs;
  unsigned int ofas;
  unsigned long long memory_mb;
  char name[96];
};

struct GpuInstanceProfileV3 {
  unsigned int version;
  unsigned int id;
  unsigned int slices;
  unsigned int instances;
  unsigned int multiprocessors;
  unsigned int copy_engines;
  unsigned int decoders;
  unsigned int encoders;
  unsigned int jpegs;
  unsigned int ofas;
  unsigned long long memory_mb;
  char name[96];
  unsigned int capabilities;
};

struct GpuInstancePlacement {
  unsigned int start;
  unsigned int size;
};

struct GpuInstanceInfo {
  Device device;
  unsigned int id;
  unsigned int profile_id;
  GpuInstancePlacement placement;
};

struct ComputeInstanceProfile {
  unsigned int id;
  unsigned int slices;
  unsigned int instances;
  unsigned int multiprocessors;
  unsigned int shared_copy_engines;
  unsigned int shared_decoders;
  unsigned int shared_encoders;
  unsigned int shared_jpegs;
  unsigned int shared_ofas;
};

struct ComputeInstancePlacement {
  unsigned int start;
  unsigned int size;
};

struct ComputeInstanceInfo {
  Device device;
  GpuInstance gpu_instance;
  unsigned int id;
  unsigned int profile_id;
  ComputeInstancePlacement placement;
};

// Profiles are looked up by numbers below these, and then go by their `id`.
inline constexpr unsigned kGpuInstanceProfiles = 17;
inline constexpr unsigned kComputeInstanceProfiles = 8;

// What the vendor's versioned structs carry in `version`.
template <typename Struct>
constexpr unsigned int StructVersion(unsigned int version) {
  return static_cast<unsigned int>(sizeof(Struct)) | (version << 24U);
}

// Every function, with its vendor's name; nvmlErrorString alone returns text.
// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define RINGFENCE_NVML_FUNCTIONS(X)                                                             \
  X(nvmlInit_v2, ())                                                                            \
  X(nvmlShutdown, ())                                                                           \
  X(nvmlSystemGetDriverVersion, (char* text, unsigned int bytes))                               \
  X(nvmlSystemGetNVMLVersion, (char* text, unsigned int bytes))                                 \
  X(nvmlSystemGetCudaDriverVersion, (int* version))                                             \
  X(nvmlSystemGetCudaDriverVersion_v2, (int* version))                                          \
  X(nvmlSystemGetConfComputeState, (nvml::ConfComputeState * state))                            \
  X(nvmlSystemGetConfComputeCapabilities, (nvml::ConfComputeCaps * caps))                       \
  X(nvmlDeviceGetCount_v2, (unsigned int* count))                                               \
  X(nvmlDeviceGetHandleByIndex_v2, (unsigned int index, nvml::Device* device))                  \
  X(nvmlDeviceGetHandleByUUID, (const char* uuid, nvml::Device* device))                        \
  X(nvmlDeviceGetHandleByPciBusId_v2, (const char* address, nvml::Device* device))              \
  X(nvmlDeviceGetIndex, (nvml::Device device, unsigned int* index))                             \
  X(nvmlDeviceGetUUID, (nvml::Device device, char* text, unsigned int bytes))                   \
  X(nvmlDeviceGetName, (nvml::Device device, char* text, unsigned int bytes))                   \
  X(nvmlDeviceGetSerial, (nvml::Device device, char* text, unsigned int bytes))                 \
  X(nvmlDeviceGetVbiosVersion, (nvml::Device device, char* text, unsigned int bytes))           \
  X(nvmlDeviceGetGspFirmwareVersion, (nvml::Device device, char* text))                         \
  X(nvmlDeviceGetMinorNumber, (nvml::Device device, unsigned int* minor))                       \
  X(nvmlDeviceGetPciInfo_v3, (nvml::Device device, nvml::PciInfo * pci))                        \
  X(nvmlDeviceGetMemoryInfo, (nvml::Device device, nvml::Memory * memory))                      \
  X(nvmlDeviceGetMemoryInfo_v2, (nvml::Device device, nvml::MemoryV2 * memory))                 \
  X(nvmlDeviceGetEccMode, (nvml::Device device, unsigned int* current, unsigned int* pending))  \
  X(nvmlDeviceGetTotalEccErrors,                                                                \
    (nvml::Device device, int type, int counter, unsigned long long* errors))                   \
  X(nvmlDeviceGetMigMode, (nvml::Device device, unsigned int* current, unsigned int* pending))  \
  X(nvmlDeviceGetMaxMigDeviceCount, (nvml::Device device, unsigned int* count))                 \
  X(nvmlDeviceGetGpuInstanceProfileInfo,                                                        \
    (nvml::Device device, unsigned int profile, nvml::GpuInstanceProfile* info))                \
  X(nvmlDeviceGetGpuInstanceProfileInfoV,                                                       \
    (nvml::Device device, unsigned int profile, nvml::GpuInstanceProfileV2* info))              \
  X(nvmlDeviceGetGpuInstancePossiblePlacements_v2,                                              \
    (nvml::Device device, unsigned int profile_id, nvml::GpuInstancePlacement* placements,      \
     unsigned int* count))                                                                      \
  X(nvmlDeviceSetMigMode, (nvml::Device device, unsigned int mode, nvml::Return* activation))   \
  X(nvmlDeviceGetGpuInstanceRemainingCapacity,                                                  \
    (nvml::Device device, unsigned int profile_id, unsigned int* count))                        \
  X(nvmlDeviceCreateGpuInstance,                                                                \
    (nvml::Device device, unsigned int profile_id, nvml::GpuInstance* instance))                \
  X(nvmlDeviceCreateGpuInstanceWithPlacement,                                                   \
    (nvml::Device device, unsigned int profile_id, const nvml::GpuInstancePlacement* placement, \
     nvml::GpuInstance* instance))                                                              \
  X(nvmlGpuInstanceDestroy, (nvml::GpuInstance instance))                                       \
  X(nvmlDeviceGetGpuInstances, (nvml::Device device, unsigned int profile_id,                   \
                                nvml::GpuInstance* instances, unsigned int* count))             \
  X(nvmlDeviceGetGpuInstanceById,                                                               \
    (nvml::Device device, unsigned int id, nvml::GpuInstance* instance))                        \
  X(nvmlGpuInstanceGetInfo, (nvml::GpuInstance instance, nvml::GpuInstanceInfo * info))         \
  X(nvmlGpuInstanceGetComputeInstanceProfileInfo,                                               \
    (nvml::GpuInstance instance, unsigned int profile, unsigned int engines,                    \
     nvml::ComputeInstanceProfile* info))                                                       \
  X(nvmlGpuInstanceCreateComputeInstance,                                                       \
    (nvml::GpuInstance instance, unsigned int profile_id, nvml::ComputeInstance* compute))      \
  X(nvmlComputeInstanceDestroy, (nvml::ComputeInstance compute))                                \
  X(nvmlGpuInstanceGetComputeInstances, (nvml::GpuInstance instance, unsigned int profile_id,   \
                                         nvml::ComputeInstance* computes, unsigned int* count)) \
  X(nvmlComputeInstanceGetInfo_v2,                                                              \
    (nvml::ComputeInstance compute, nvml::ComputeInstanceInfo * info))                          \
  X(nvmlDeviceGetMigDeviceHandleByIndex,                                                        \
    (nvml::Device device, unsigned int index, nvml::Device* slice))                             \
  X(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, (nvml::Device slice, nvml::Device * device))  \
  X(nvmlDeviceIsMigDeviceHandle, (nvml::Device device, unsigned int* is))                       \
  X(nvmlDeviceGetGpuInstanceId, (nvml::Device slice, unsigned int* id))                         \
  X(nvmlDeviceGetComputeInstanceId, (nvml::Device slice, unsigned int* id))                     \
  X(nvmlDeviceGetUtilizationRates, (nvml::Device device, nvml::Utilization * rates))            \
  X(nvmlDeviceGetPowerUsage, (nvml::Device device, unsigned int* milliwatts))                   \
  X(nvmlDeviceGetEnforcedPowerLimit, (nvml::Device device, unsigned int* milliwatts))           \
  X(nvmlDeviceGetTemperature, (nvml::Device device, int sensor, unsigned int* celsius))         \
  X(nvmlDeviceGetComputeRunningProcesses_v3,                                                    \
    (nvml::Device device, unsigned int* count, nvml::ProcessInfo* processes))                   \
  X(nvmlDeviceGetGraphicsRunningProcesses_v3,                                                   \
    (nvml::Device device, unsigned int* count, nvml::ProcessInfo* processes))
// NOLINTEND(cppcoreguidelines-macro-usage)

// The functions of one opened library; a pointer is null where the library does not export it.
struct Api {
#define RINGFENCE_MEMBER(name, arguments) nvml::Return(*name) arguments = nullptr;
  RINGFENCE_NVML_FUNCTIONS(RINGFENCE_MEMBER)
#undef RINGFENCE_MEMBER
  const char* (*nvmlErrorString)(nvml::Return code) = nullptr;
};

}  // namespace ringfence::gpu::nvml

#pragma once

// The part of AMD SMI's binary interface that we call and that sim/ answers: our own declarations,
// as in nvml_abi.h. Most of AMD SMI's structs grow from one ROCm release to the next, so only
// functions are here whose arguments were the same in the releases of ROCm 6 and 7 that were looked
// at; what else an inventory says comes from the kernel (gpu/amd_sysfs.h). Never run on hardware.

#include <cstdint>

namespace ringfence::gpu::amdsmi {

enum Return : std::uint32_t {
  kSuccess = 0,
  kInvalid = 1,
  kNotSupported = 2,
  kNotYetImplemented = 3,
  kNoPermission = 10,
  kNotFound = 31,
  kNotInitialized = 32,
  kDriverNotLoaded = 34,
  kInsufficientSize = 41,
  kUnknown = 0xffffffffU,
};

inline constexpr std::uint64_t kInitGpus = 2;
inline constexpr std::uint32_t kTypeGpu = 1;  // of a processor
inline constexpr std::uint32_t kMemoryVram = 0;
inline constexpr std::uint64_t kBlockMemory = 1;  // UMC, of the blocks that ECC can be on for
inline constexpr unsigned kUuidBytes = 38;
inline constexpr unsigned kPartitionBytes = 64;

using Socket = void*;
using Processor = void*;

// Of a PCI address as one number: from the lowest bit on, 3 of function, 5 of device, 8 of bus, 48
// of domain.
using Bdf = std::uint64_t;

// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define RINGFENCE_AMDSMI_FUNCTIONS(X)                                                           \
  X(amdsmi_init, (std::uint64_t flags))                                                         \
  X(amdsmi_shut_down, ())                                                                       \
  X(amdsmi_status_code_to_string, (amdsmi::Return code, const char** text))                     \
  X(amdsmi_get_socket_handles, (std::uint32_t* count, amdsmi::Socket* sockets))                 \
  X(amdsmi_get_processor_handles,                                                               \
    (amdsmi::Socket socket, std::uint32_t* count, amdsmi::Processor* processors))               \
  X(amdsmi_get_processor_type, (amdsmi::Processor processor, std::uint32_t* type))              \
  X(amdsmi_get_gpu_device_bdf, (amdsmi::Processor processor, amdsmi::Bdf * address))            \
  X(amdsmi_get_gpu_device_uuid, (amdsmi::Processor processor, unsigned int* bytes, char* text)) \
  X(amdsmi_get_gpu_memory_total,                                                                \
    (amdsmi::Processor processor, std::uint32_t type, std::uint64_t* bytes))                    \
  X(amdsmi_get_gpu_memory_usage,                                                                \
    (amdsmi::Processor processor, std::uint32_t type, std::uint64_t* bytes))                    \
  X(amdsmi_get_gpu_ecc_enabled, (amdsmi::Processor processor, std::uint64_t* blocks))           \
  X(amdsmi_get_gpu_compute_partition,                                                           \
    (amdsmi::Processor processor, char* text, std::uint32_t bytes))                             \
  X(amdsmi_get_gpu_memory_partition, (amdsmi::Processor processor, char* text, std::uint32_t bytes))
// NOLINTEND(cppcoreguidelines-macro-usage)

// The functions of one opened library; a pointer is null where the library does not export it.
struct Api {
#define RINGFENCE_MEMBER(name, arguments) amdsmi::Return(*name) arguments = nullptr;
  RINGFENCE_AMDSMI_FUNCTIONS(RINGFENCE_MEMBER)
#undef RINGFENCE_MEMBER
};

}  // namespace ringfence::gpu::amdsmi

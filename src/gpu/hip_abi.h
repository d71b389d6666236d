#pragma once

// The part of HIP's binary interface that we call and that sim/ answers: our own declarations, as
// in cuda_abi.h. Functions whose arguments have not changed in the releases that were looked at;
// attributes are not here, as their numbers changed. Never run on hardware.

#include <cstddef>

namespace ringfence::gpu::hip {

enum Error : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kOperatingSystem = 304,
  kUnknown = 999,
};

using Pointer = void*;

// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define RINGFENCE_HIP_FUNCTIONS(X)                                         \
  X(hipInit, (unsigned int flags))                                         \
  X(hipRuntimeGetVersion, (int* version))                                  \
  X(hipGetDeviceCount, (int* count))                                       \
  X(hipDeviceGetByPCIBusId, (int* device, const char* address))            \
  X(hipSetDevice, (int device))                                            \
  X(hipDeviceReset, ())                                                    \
  X(hipDeviceSynchronize, ())                                              \
  X(hipMemGetInfo, (std::size_t* free, std::size_t* total))                \
  X(hipMalloc, (hip::Pointer * pointer, std::size_t bytes))                \
  X(hipFree, (hip::Pointer pointer))                                       \
  X(hipHostMalloc, (void** memory, std::size_t bytes, unsigned int flags)) \
  X(hipHostFree, (void* memory))                                           \
  X(hipMemcpyHtoD, (hip::Pointer to, const void* from, std::size_t bytes)) \
  X(hipMemcpyDtoH, (void* to, hip::Pointer from, std::size_t bytes))       \
  X(hipMemsetD32, (hip::Pointer to, int value, std::size_t count))
// NOLINTEND(cppcoreguidelines-macro-usage)

// The functions of one opened library; a pointer is null where the library does not export it.
struct Api {
#define RINGFENCE_MEMBER(name, arguments) hip::Error(*name) arguments = nullptr;
  RINGFENCE_HIP_FUNCTIONS(RINGFENCE_MEMBER)
#undef RINGFENCE_MEMBER
  const char* (*hipGetErrorName)(hip::Error code) = nullptr;
  const char* (*hipGetErrorString)(hip::Error code) = nullptr;
};

}  // namespace ringfence::gpu::hip

#pragma once

// The part of the CUDA driver's binary interface that we call and that sim/ answers: our own
// declarations, as in nvml_abi.h.

#include <cstddef>

namespace ringfence::gpu::cuda {

enum CuResult : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kOperatingSystem = 304,
  kInvalidHandle = 400,
  kNotFound = 500,
  kIllegalAddress = 700,
  kLaunchFailed = 719,
  kNotSupported = 801,
  kUnknown = 999,
};

enum Attribute : int {
  kMaxThreadsPerBlock = 1,
  kWarpSize = 10,
  kMultiprocessors = 16,
  kEccEnabled = 32,
  kPciBus = 33,
  kPciDevice = 34,
  kL2Bytes = 38,
  kPciDomain = 50,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kSharedBytesPerMultiprocessor = 81,
  kRegistersPerMultiprocessor = 82,  // of 32 bits
  kSharedBytesPerBlockOptIn = 97,
};

enum FunctionAttribute : int {
  kLocalBytes = 3,  // of a thread: where registers are spilled to
  kRegisters = 4,   // of a thread
  kDynamicSharedBytesMax = 8,
};

using Device = int;
using DevicePointer = unsigned long long;
struct ContextOpaque;
using Context = ContextOpaque*;
struct ModuleOpaque;
using Module = ModuleOpaque*;
struct FunctionOpaque;
using Function = FunctionOpaque*;
struct StreamOpaque;
using Stream = StreamOpaque*;

struct Uuid {
  char bytes[16];
};

// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define RINGFENCE_CUDA_FUNCTIONS(X)                                                                \
  X(cuInit, (unsigned int flags))                                                                  \
  X(cuDriverGetVersion, (int* version))                                                            \
  X(cuGetErrorName, (cuda::CuResult code, const char** text))                                      \
  X(cuGetErrorString, (cuda::CuResult code, const char** text))                                    \
  X(cuGetProcAddress, (const char* name, void** function, int version, unsigned long long flags))  \
  X(cuGetProcAddress_v2,                                                                           \
    (const char* name, void** function, int version, unsigned long long flags, int* status))       \
  X(cuDeviceGetCount, (int* count))                                                                \
  X(cuDeviceGet, (cuda::Device * device, int ordinal))                                             \
  X(cuDeviceGetName, (char* text, int bytes, cuda::Device device))                                 \
  X(cuDeviceGetUuid, (cuda::Uuid * uuid, cuda::Device device))                                     \
  X(cuDeviceGetUuid_v2, (cuda::Uuid * uuid, cuda::Device device))                                  \
  X(cuDeviceTotalMem_v2, (std::size_t* bytes, cuda::Device device))                                \
  X(cuDeviceGetAttribute, (int* value, int attribute, cuda::Device device))                        \
  X(cuDeviceGetByPCIBusId, (cuda::Device * device, const char* address))                           \
  X(cuDeviceGetPCIBusId, (char* text, int bytes, cuda::Device device))                             \
  X(cuDevicePrimaryCtxRetain, (cuda::Context * context, cuda::Device device))                      \
  X(cuDevicePrimaryCtxRelease_v2, (cuda::Device device))                                           \
  X(cuCtxCreate_v2, (cuda::Context * context, unsigned int flags, cuda::Device device))            \
  X(cuCtxDestroy_v2, (cuda::Context context))                                                      \
  X(cuCtxSetCurrent, (cuda::Context context))                                                      \
  X(cuCtxGetCurrent, (cuda::Context * context))                                                    \
  X(cuCtxPushCurrent_v2, (cuda::Context context))                                                  \
  X(cuCtxPopCurrent_v2, (cuda::Context * context))                                                 \
  X(cuCtxGetDevice, (cuda::Device * device))                                                       \
  X(cuCtxSynchronize, ())                                                                          \
  X(cuMemGetInfo_v2, (std::size_t* free, std::size_t* total))                                      \
  X(cuMemAlloc_v2, (cuda::DevicePointer * pointer, std::size_t bytes))                             \
  X(cuMemFree_v2, (cuda::DevicePointer pointer))                                                   \
  X(cuMemcpyHtoD_v2, (cuda::DevicePointer to, const void* from, std::size_t bytes))                \
  X(cuMemcpyDtoH_v2, (void* to, cuda::DevicePointer from, std::size_t bytes))                      \
  X(cuMemcpyDtoD_v2, (cuda::DevicePointer to, cuda::DevicePointer from, std::size_t bytes))        \
  X(cuMemsetD8_v2, (cuda::DevicePointer to, unsigned char value, std::size_t count))               \
  X(cuMemsetD32_v2, (cuda::DevicePointer to, unsigned int value, std::size_t count))               \
  X(cuMemHostAlloc, (void** memory, std::size_t bytes, unsigned int flags))                        \
  X(cuMemFreeHost, (void* memory))                                                                 \
  X(cuModuleLoadData, (cuda::Module * module, const void* image))                                  \
  X(cuModuleUnload, (cuda::Module module))                                                         \
  X(cuModuleGetFunction, (cuda::Function * function, cuda::Module module, const char* name))       \
  X(cuFuncGetAttribute, (int* value, int attribute, cuda::Function function))                      \
  X(cuFuncSetAttribute, (cuda::Function function, int attribute, int value))                       \
  X(cuLaunchKernel,                                                                                \
    (cuda::Function function, unsigned int blocks_x, unsigned int blocks_y, unsigned int blocks_z, \
     unsigned int threads_x, unsigned int threads_y, unsigned int threads_z,                       \
     unsigned int shared_bytes, cuda::Stream stream, void** arguments, void** extra))
// NOLINTEND(cppcoreguidelines-macro-usage)

// The functions of one opened library; a pointer is null where the library does not export it.
struct Api {
#define RINGFENCE_MEMBER(name, arguments) cuda::CuResult(*name) arguments = nullptr;
  RINGFENCE_CUDA_FUNCTIONS(RINGFENCE_MEMBER)
#undef RINGFENCE_MEMBER
};

}  // namespace ringfence::gpu::cuda

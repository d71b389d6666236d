// Compiles only if our declarations agree with the vendor's headers: sizes, offsets, values, and
// the shape of every function's arguments. Built by tests/gpu/run.sh alone, on a machine that has
// those headers, once with CHECK_NVML and once with CHECK_CUDA; nothing of them is shipped.

#include <cstddef>
#include <type_traits>

#include "gpu/cuda_abi.h"
#include "gpu/nvml_abi.h"
#include "gpu/nvml_readings_abi.h"

namespace ours {
namespace nvml = ringfence::gpu::nvml;
namespace cuda = ringfence::gpu::cuda;

// Named before the vendor's headers come, whose macros rename functions.
#define KEEP_NVML(name, arguments) using Type_##name = decltype(nvml::Api::name);
RINGFENCE_NVML_FUNCTIONS(KEEP_NVML)
#define KEEP_NVML_READING(name, arguments) using Type_##name = decltype(nvml::ReadingsApi::name);
RINGFENCE_NVML_READING_FUNCTIONS(KEEP_NVML_READING)
#define KEEP_CUDA(name, arguments) using Type_##name = decltype(cuda::Api::name);
RINGFENCE_CUDA_FUNCTIONS(KEEP_CUDA)
}  // namespace ours

template <typename A, typename B>
constexpr bool kSameSlot = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;

template <typename A, typename B>
struct SameShape : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
  requires(sizeof...(A) == sizeof...(B))
struct SameShape<R (*)(A...), S (*)(B...)>
    : std::bool_constant<(kSameSlot<A, B> && ...) && sizeof(R) == sizeof(S)> {};

#define SIZE(mine, theirs) static_assert(sizeof(ours::mine) == sizeof(theirs), #theirs)
#define OFFSET(mine, my_field, theirs, their_field)                                \
  static_assert(offsetof(ours::mine, my_field) == offsetof(theirs, their_field) && \
                    sizeof(ours::mine::my_field) == sizeof(theirs::their_field),   \
                #theirs "." #their_field)
#define VALUE(mine, theirs) \
  static_assert(static_cast<long>(ours::mine) == static_cast<long>(theirs), #theirs)

#ifdef CHECK_NVML
#include <nvml.h>

#define SHAPE(name, arguments) \
  static_assert(SameShape<ours::Type_##name, decltype(&::name)>::value, #name);
RINGFENCE_NVML_FUNCTIONS(SHAPE)
RINGFENCE_NVML_READING_FUNCTIONS(SHAPE)

SIZE(nvml::PciInfo, nvmlPciInfo_t);
OFFSET(nvml::PciInfo, bus_id_legacy, nvmlPciInfo_t, busIdLegacy);
OFFSET(nvml::PciInfo, domain, nvmlPciInfo_t, domain);
OFFSET(nvml::PciInfo, bus, nvmlPciInfo_t, bus);
OFFSET(nvml::PciInfo, device, nvmlPciInfo_t, device);
OFFSET(nvml::PciInfo, pci_device_id, nvmlPciInfo_t, pciDeviceId);
OFFSET(nvml::PciInfo, pci_subsystem_id, nvmlPciInfo_t, pciSubSystemId);
OFFSET(nvml::PciInfo, bus_id, nvmlPciInfo_t, busId);
SIZE(nvml::Memory, nvmlMemory_t);
OFFSET(nvml::Memory, total, nvmlMemory_t, total);
OFFSET(nvml::Memory, free, nvmlMemory_t, free);
OFFSET(nvml::Memory, used, nvmlMemory_t, used);
SIZE(nvml::MemoryV2, nvmlMemory_v2_t);
OFFSET(nvml::MemoryV2, total, nvmlMemory_v2_t, total);
OFFSET(nvml::MemoryV2, reserved, nvmlMemory_v2_t, reserved);
OFFSET(nvml::MemoryV2, free, nvmlMemory_v2_t, free);
OFFSET(nvml::MemoryV2, used, nvmlMemory_v2_t, used);
static_assert(ours::nvml::StructVersion<ours::nvml::MemoryV2>(2) == nvmlMemory_v2);
SIZE(nvml::Utilization, nvmlUtilization_t);
OFFSET(nvml::Utilization, gpu, nvmlUtilization_t, gpu);
OFFSET(nvml::Utilization, memory, nvmlUtilization_t, memory);
SIZE(nvml::ProcessInfo, nvmlProcessInfo_t);
OFFSET(nvml::ProcessInfo, pid, nvmlProcessInfo_t, pid);
OFFSET(nvml::ProcessInfo, used_memory, nvmlProcessInfo_t, usedGpuMemory);
OFFSET(nvml::ProcessInfo, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
OFFSET(nvml::ProcessInfo, compute_instance, nvmlProcessInfo_t, computeInstanceId);
SIZE(nvml::ConfComputeState, nvmlConfComputeSystemState_t);
OFFSET(nvml::ConfComputeState, environment, nvmlConfComputeSystemState_t, environment);
OFFSET(nvml::ConfComputeState, feature, nvmlConfComputeSystemState_t, ccFeature);
OFFSET(nvml::ConfComputeState, devtools, nvmlConfComputeSystemState_t, devToolsMode);
SIZE(nvml::ConfComputeCaps, nvmlConfComputeSystemCaps_t);
OFFSET(nvml::ConfComputeCaps, cpu, nvmlConfComputeSystemCaps_t, cpuCaps);
OFFSET(nvml::ConfComputeCaps, gpus, nvmlConfComputeSystemCaps_t, gpusCaps);
SIZE(nvml::GpuInstanceInfo, nvmlGpuInstanceInfo_t);
OFFSET(nvml::GpuInstanceInfo, device, nvmlGpuInstanceInfo_t, device);
OFFSET(nvml::GpuInstanceInfo, id, nvmlGpuInstanceInfo_t, id);
OFFSET(nvml::GpuInstanceInfo, profile_id, nvmlGpuInstanceInfo_t, profileId);
OFFSET(nvml::GpuInstanceInfo, placement, nvmlGpuInstanceInfo_t, placement);
SIZE(nvml::ComputeInstanceProfile, nvmlComputeInstanceProfileInfo_t);
OFFSET(nvml::ComputeInstanceProfile, id, nvmlComputeInstanceProfileInfo_t, id);
OFFSET(nvml::ComputeInstanceProfile, slices, nvmlComputeInstanceProfileInfo_t, sliceCount);
OFFSET(nvml::ComputeInstanceProfile, instances, nvmlComputeInstanceProfileInfo_t, instanceCount);
OFFSET(nvml::ComputeInstanceProfile, multiprocessors, nvmlComputeInstanceProfileInfo_t,
       multiprocessorCount);
SIZE(nvml::ComputeInstanceInfo, nvmlComputeInstanceInfo_t);
OFFSET(nvml::ComputeInstanceInfo, gpu_instance, nvmlComputeInstanceInfo_t, gpuInstance);
OFFSET(nvml::ComputeInstanceInfo, id, nvmlComputeInstanceInfo_t, id);
OFFSET(nvml::ComputeInstanceInfo, profile_id, nvmlComputeInstanceInfo_t, profileId);
OFFSET(nvml::ComputeInstanceInfo, placement, nvmlComputeInstanceInfo_t, placement);
VALUE(nvml::kInUse, NVML_ERROR_IN_USE);
VALUE(nvml::kInsufficientResources, NVML_ERROR_INSUFFICIENT_RESOURCES);
SIZE(nvml::GpuInstancePlacement, nvmlGpuInstancePlacement_t);
OFFSET(nvml::GpuInstancePlacement, start, nvmlGpuInstancePlacement_t, start);
OFFSET(nvml::GpuInstancePlacement, size, nvmlGpuInstancePlacement_t, size);

#define PROFILE(mine, theirs)                                 \
  SIZE(mine, theirs);                                         \
  OFFSET(mine, id, theirs, id);                               \
  OFFSET(mine, slices, theirs, sliceCount);                   \
  OFFSET(mine, instances, theirs, instanceCount);             \
  OFFSET(mine, multiprocessors, theirs, multiprocessorCount); \
  OFFSET(mine, copy_engines, theirs, copyEngineCount);        \
  OFFSET(mine, decoders, theirs, decoderCount);               \
  OFFSET(mine, encoders, theirs, encoderCount);               \
  OFFSET(mine, jpegs, theirs, jpegCount);                     \
  OFFSET(mine, ofas, theirs, ofaCount);                       \
  OFFSET(mine, memory_mb, theirs, memorySizeMB)
PROFILE(nvml::GpuInstanceProfile, nvmlGpuInstanceProfileInfo_t);
PROFILE(nvml::GpuInstanceProfileV2, nvmlGpuInstanceProfileInfo_v2_t);
PROFILE(nvml::GpuInstanceProfileV3, nvmlGpuInstanceProfileInfo_v3_t);
OFFSET(nvml::GpuInstanceProfileV2, name, nvmlGpuInstanceProfileInfo_v2_t, name);
OFFSET(nvml::GpuInstanceProfileV3, name, nvmlGpuInstanceProfileInfo_v3_t, name);
OFFSET(nvml::GpuInstanceProfileV3, capabilities, nvmlGpuInstanceProfileInfo_v3_t, capabilities);

VALUE(nvml::kSuccess, NVML_SUCCESS);
VALUE(nvml::kUninitialized, NVML_ERROR_UNINITIALIZED);
VALUE(nvml::kInvalidArgument, NVML_ERROR_INVALID_ARGUMENT);
VALUE(nvml::kNotSupported, NVML_ERROR_NOT_SUPPORTED);
VALUE(nvml::kNoPermission, NVML_ERROR_NO_PERMISSION);
VALUE(nvml::kNotFound, NVML_ERROR_NOT_FOUND);
VALUE(nvml::kInsufficientSize, NVML_ERROR_INSUFFICIENT_SIZE);
VALUE(nvml::kDriverNotLoaded, NVML_ERROR_DRIVER_NOT_LOADED);
VALUE(nvml::kFunctionNotFound, NVML_ERROR_FUNCTION_NOT_FOUND);
VALUE(nvml::kGpuIsLost, NVML_ERROR_GPU_IS_LOST);
VALUE(nvml::kArgumentVersionMismatch, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
VALUE(nvml::kUnknown, NVML_ERROR_UNKNOWN);
VALUE(nvml::kUuidBytes, NVML_DEVICE_UUID_V2_BUFFER_SIZE);
VALUE(nvml::kNameBytes, NVML_DEVICE_NAME_V2_BUFFER_SIZE);
VALUE(nvml::kSerialBytes, NVML_DEVICE_SERIAL_BUFFER_SIZE);
VALUE(nvml::kVbiosBytes, NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE);
VALUE(nvml::kVersionBytes, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);
VALUE(nvml::kGspVersionBytes, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE);

// Readings: fields, events, performance monitoring.
VALUE(nvml::kTimedOut, NVML_ERROR_TIMEOUT);
VALUE(nvml::kSmClock, NVML_CLOCK_SM);
VALUE(nvml::kMemoryClock, NVML_CLOCK_MEM);
VALUE(nvml::kPcieTx, NVML_PCIE_UTIL_TX_BYTES);
VALUE(nvml::kPcieRx, NVML_PCIE_UTIL_RX_BYTES);
VALUE(nvml::kFieldNvlinkTx, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
VALUE(nvml::kFieldNvlinkRx, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX);
SIZE(nvml::Value, nvmlValue_t);
SIZE(nvml::FieldValue, nvmlFieldValue_t);
OFFSET(nvml::FieldValue, field, nvmlFieldValue_t, fieldId);
OFFSET(nvml::FieldValue, scope, nvmlFieldValue_t, scopeId);
OFFSET(nvml::FieldValue, timestamp, nvmlFieldValue_t, timestamp);
OFFSET(nvml::FieldValue, latency_us, nvmlFieldValue_t, latencyUsec);
OFFSET(nvml::FieldValue, type, nvmlFieldValue_t, valueType);
OFFSET(nvml::FieldValue, result, nvmlFieldValue_t, nvmlReturn);
OFFSET(nvml::FieldValue, value, nvmlFieldValue_t, value);
static_assert(NVML_VALUE_TYPE_DOUBLE == 0 && NVML_VALUE_TYPE_UNSIGNED_INT == 1 &&
              NVML_VALUE_TYPE_UNSIGNED_LONG == 2 && NVML_VALUE_TYPE_UNSIGNED_LONG_LONG == 3 &&
              NVML_VALUE_TYPE_SIGNED_LONG_LONG == 4);
SIZE(nvml::EventSet, nvmlEventSet_t);
VALUE(nvml::kEventXid, nvmlEventTypeXidCriticalError);
SIZE(nvml::EventData, nvmlEventData_t);
OFFSET(nvml::EventData, device, nvmlEventData_t, device);
OFFSET(nvml::EventData, type, nvmlEventData_t, eventType);
OFFSET(nvml::EventData, data, nvmlEventData_t, eventData);
OFFSET(nvml::EventData, gpu_instance, nvmlEventData_t, gpuInstanceId);
OFFSET(nvml::EventData, compute_instance, nvmlEventData_t, computeInstanceId);
SIZE(nvml::GpmSample, nvmlGpmSample_t);
SIZE(nvml::GpmMetric, nvmlGpmMetric_t);
OFFSET(nvml::GpmMetric, id, nvmlGpmMetric_t, metricId);
OFFSET(nvml::GpmMetric, result, nvmlGpmMetric_t, nvmlReturn);
OFFSET(nvml::GpmMetric, value, nvmlGpmMetric_t, value);
OFFSET(nvml::GpmMetric, info, nvmlGpmMetric_t, metricInfo);
OFFSET(nvml::GpmMetrics, version, nvmlGpmMetricsGet_t, version);
OFFSET(nvml::GpmMetrics, count, nvmlGpmMetricsGet_t, numMetrics);
OFFSET(nvml::GpmMetrics, first, nvmlGpmMetricsGet_t, sample1);
OFFSET(nvml::GpmMetrics, second, nvmlGpmMetricsGet_t, sample2);
static_assert(offsetof(ours::nvml::GpmMetrics, metrics) == offsetof(nvmlGpmMetricsGet_t, metrics));
// The list grows with each header; the library goes by the count that it is given.
static_assert(ours::nvml::kGpmMetricsMax >= NVML_GPM_METRIC_MAX);
static_assert(NVML_GPM_METRICS_GET_VERSION == 1 && NVML_GPM_SUPPORT_VERSION == 1);
VALUE(nvml::kGpmSmBusy, NVML_GPM_METRIC_SM_UTIL);
VALUE(nvml::kGpmTensorBusy, NVML_GPM_METRIC_ANY_TENSOR_UTIL);
VALUE(nvml::kGpmDramBusy, NVML_GPM_METRIC_DRAM_BW_UTIL);
VALUE(nvml::kGpmPcieTx, NVML_GPM_METRIC_PCIE_TX_PER_SEC);
VALUE(nvml::kGpmPcieRx, NVML_GPM_METRIC_PCIE_RX_PER_SEC);
SIZE(nvml::GpmSupport, nvmlGpmSupport_t);
OFFSET(nvml::GpmSupport, version, nvmlGpmSupport_t, version);
OFFSET(nvml::GpmSupport, supported, nvmlGpmSupport_t, isSupportedDevice);
#endif

#ifdef CHECK_CUDA
#include <cuda.h>

// By the vendor's own names: its macros map the plain ones to the newest version. cuCtxCreate,
// cuCtxGetDevice and cuCtxSynchronize are left out: later headers rename them; the program asks
// the library for them by name.
#define CUDA_SHAPE(mine, theirs) \
  static_assert(SameShape<ours::Type_##mine, decltype(&::theirs)>::value, #theirs)
CUDA_SHAPE(cuInit, cuInit);
CUDA_SHAPE(cuDriverGetVersion, cuDriverGetVersion);
CUDA_SHAPE(cuGetErrorName, cuGetErrorName);
CUDA_SHAPE(cuGetErrorString, cuGetErrorString);
CUDA_SHAPE(cuGetProcAddress_v2, cuGetProcAddress);
CUDA_SHAPE(cuDeviceGetCount, cuDeviceGetCount);
CUDA_SHAPE(cuDeviceGet, cuDeviceGet);
CUDA_SHAPE(cuDeviceGetName, cuDeviceGetName);
CUDA_SHAPE(cuDeviceGetUuid_v2, cuDeviceGetUuid);
CUDA_SHAPE(cuDeviceTotalMem_v2, cuDeviceTotalMem);
CUDA_SHAPE(cuDeviceGetAttribute, cuDeviceGetAttribute);
CUDA_SHAPE(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId);
CUDA_SHAPE(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId);
CUDA_SHAPE(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain);
CUDA_SHAPE(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease);
CUDA_SHAPE(cuCtxDestroy_v2, cuCtxDestroy);
CUDA_SHAPE(cuCtxSetCurrent, cuCtxSetCurrent);
CUDA_SHAPE(cuCtxGetCurrent, cuCtxGetCurrent);
CUDA_SHAPE(cuCtxPushCurrent_v2, cuCtxPushCurrent);
CUDA_SHAPE(cuCtxPopCurrent_v2, cuCtxPopCurrent);
CUDA_SHAPE(cuMemGetInfo_v2, cuMemGetInfo);
CUDA_SHAPE(cuMemAlloc_v2, cuMemAlloc);
CUDA_SHAPE(cuMemFree_v2, cuMemFree);
CUDA_SHAPE(cuMemcpyHtoD_v2, cuMemcpyHtoD);
CUDA_SHAPE(cuMemcpyDtoH_v2, cuMemcpyDtoH);
CUDA_SHAPE(cuMemcpyDtoD_v2, cuMemcpyDtoD);
CUDA_SHAPE(cuMemsetD8_v2, cuMemsetD8);
CUDA_SHAPE(cuMemsetD32_v2, cuMemsetD32);
CUDA_SHAPE(cuMemHostAlloc, cuMemHostAlloc);
CUDA_SHAPE(cuMemFreeHost, cuMemFreeHost);
CUDA_SHAPE(cuModuleLoadData, cuModuleLoadData);
CUDA_SHAPE(cuModuleUnload, cuModuleUnload);
CUDA_SHAPE(cuModuleGetFunction, cuModuleGetFunction);
CUDA_SHAPE(cuFuncGetAttribute, cuFuncGetAttribute);
CUDA_SHAPE(cuFuncSetAttribute, cuFuncSetAttribute);
CUDA_SHAPE(cuLaunchKernel, cuLaunchKernel);

SIZE(cuda::Uuid, CUuuid);
SIZE(cuda::Device, CUdevice);
SIZE(cuda::DevicePointer, CUdeviceptr);
SIZE(cuda::Context, CUcontext);
SIZE(cuda::Module, CUmodule);
SIZE(cuda::Function, CUfunction);
SIZE(cuda::Stream, CUstream);
SIZE(cuda::CuResult, CUresult);
VALUE(cuda::kSuccess, CUDA_SUCCESS);
VALUE(cuda::kInvalidValue, CUDA_ERROR_INVALID_VALUE);
VALUE(cuda::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
VALUE(cuda::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
VALUE(cuda::kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
VALUE(cuda::kNoDevice, CUDA_ERROR_NO_DEVICE);
VALUE(cuda::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
VALUE(cuda::kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
VALUE(cuda::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
VALUE(cuda::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
VALUE(cuda::kInvalidPtx, CUDA_ERROR_INVALID_PTX);
VALUE(cuda::kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
VALUE(cuda::kOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM);
VALUE(cuda::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
VALUE(cuda::kNotFound, CUDA_ERROR_NOT_FOUND);
VALUE(cuda::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
VALUE(cuda::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
VALUE(cuda::kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
VALUE(cuda::kUnknown, CUDA_ERROR_UNKNOWN);
VALUE(cuda::kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
VALUE(cuda::kWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
VALUE(cuda::kMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
VALUE(cuda::kEccEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
VALUE(cuda::kPciBus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
VALUE(cuda::kPciDevice, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
VALUE(cuda::kL2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
VALUE(cuda::kPciDomain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
VALUE(cuda::kSharedBytesPerMultiprocessor,
      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
VALUE(cuda::kRegistersPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
VALUE(cuda::kSharedBytesPerBlockOptIn, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
VALUE(cuda::kLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
VALUE(cuda::kRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
VALUE(cuda::kDynamicSharedBytesMax, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
VALUE(cuda::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
VALUE(cuda::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
#endif

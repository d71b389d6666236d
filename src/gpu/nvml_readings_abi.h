#pragma once

// The part of NVML's binary interface that measures: our own declarations, as in nvml_abi.h.

#include "gpu/nvml_abi.h"

namespace ringfence::gpu::nvml {

inline constexpr Return kTimedOut = static_cast<Return>(10);

enum Clock : int { kSmClock = 1, kMemoryClock = 2 };
enum PcieCounter : int { kPcieTx = 0, kPcieRx = 1 };

inline constexpr unsigned int kFieldNvlinkTx = 138;  // KiB, of all links with kAllLinks
inline constexpr unsigned int kFieldNvlinkRx = 139;
inline constexpr unsigned int kAllLinks = 0xffffffffU;

union Value {
  double d;
  unsigned int ui;
  unsigned long ul;
  unsigned long long ull;
  long long ll;
};

struct FieldValue {
  unsigned int field;
  unsigned int scope;
  long long timestamp;
  long long latency_us;
  unsigned int type;  // 0: f64, 1: u32, 2 and 3: u64, 4: i64
  Return result;
  Value value;
};

struct EventSetOpaque;
using EventSet = EventSetOpaque*;
inline constexpr unsigned long long kEventXid = 0x8;
struct EventData {
  Device device;
  unsigned long long type;
  unsigned long long data;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

// Performance monitoring: two samples, and what happened between them.
struct GpmSampleOpaque;
using GpmSample = GpmSampleOpaque*;
struct GpmMetric {
  unsigned int id;
  Return result;
  double value;
  struct {
    char* short_name;
    char* long_name;
    char* unit;
  } info;
};
inline constexpr unsigned int kGpmMetricsMax = 333;
inline constexpr unsigned int kGpmSmBusy = 2;      // percent
inline constexpr unsigned int kGpmTensorBusy = 5;  // percent
inline constexpr unsigned int kGpmDramBusy = 10;   // percent
inline constexpr unsigned int kGpmPcieTx = 20;     // MiB/s
inline constexpr unsigned int kGpmPcieRx = 21;
struct GpmMetrics {
  unsigned int version;  // 1
  unsigned int count;
  GpmSample first;
  GpmSample second;
  GpmMetric metrics[kGpmMetricsMax];
};
struct GpmSupport {
  unsigned int version;  // 1
  unsigned int supported;
};

// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define RINGFENCE_NVML_READING_FUNCTIONS(X)                                                        \
  X(nvmlDeviceGetClockInfo, (nvml::Device device, int clock, unsigned int* mhz))                   \
  X(nvmlDeviceGetPcieThroughput, (nvml::Device device, int counter, unsigned int* kbps))           \
  X(nvmlDeviceGetTotalEnergyConsumption, (nvml::Device device, unsigned long long* millijoules))   \
  X(nvmlDeviceGetRemappedRows,                                                                     \
    (nvml::Device device, unsigned int* corrected, unsigned int* uncorrected,                      \
     unsigned int* pending, unsigned int* failed))                                                 \
  X(nvmlDeviceGetFieldValues, (nvml::Device device, int count, nvml::FieldValue* values))          \
  X(nvmlEventSetCreate, (nvml::EventSet * set))                                                    \
  X(nvmlDeviceRegisterEvents, (nvml::Device device, unsigned long long types, nvml::EventSet set)) \
  X(nvmlEventSetWait_v2, (nvml::EventSet set, nvml::EventData * data, unsigned int timeout_ms))    \
  X(nvmlEventSetFree, (nvml::EventSet set))                                                        \
  X(nvmlGpmQueryDeviceSupport, (nvml::Device device, nvml::GpmSupport * support))                  \
  X(nvmlGpmSampleAlloc, (nvml::GpmSample * sample))                                                \
  X(nvmlGpmSampleFree, (nvml::GpmSample sample))                                                   \
  X(nvmlGpmSampleGet, (nvml::Device device, nvml::GpmSample sample))                               \
  X(nvmlGpmMetricsGet, (nvml::GpmMetrics * metrics))
// NOLINTEND(cppcoreguidelines-macro-usage)

// A pointer is null where the library does not export it.
struct ReadingsApi {
#define RINGFENCE_MEMBER(name, arguments) nvml::Return(*name) arguments = nullptr;
  RINGFENCE_NVML_READING_FUNCTIONS(RINGFENCE_MEMBER)
#undef RINGFENCE_MEMBER
};

}  // namespace ringfence::gpu::nvml

// NVML stand-in: what a GPU measures of itself.

#include <chrono>
#include <limits>

#include "gpu/nvml_readings_abi.h"
#include "nvml_state.h"

using ringfence::gpu::nvml::Return;
namespace nvml = ringfence::gpu::nvml;
namespace sim = ringfence::sim;
using Card = nvml::DeviceOpaque;

namespace ringfence::gpu::nvml {

// What a sample remembers: the card as it was.
struct GpmSampleOpaque {
  SimulatedSignals signals;
  bool taken = false;
};

}  // namespace ringfence::gpu::nvml

RINGFENCE_EXPORT Return nvmlDeviceGetClockInfo(nvml::Device device, int clock, unsigned int* mhz) {
  return sim::OnDevice("nvmlDeviceGetClockInfo", device, [&](const Card& card) {
    if (clock == nvml::kSmClock) {
      return sim::Put(mhz, card.gpu.signals.sm_clock_mhz);
    }
    return clock == nvml::kMemoryClock ? sim::Put(mhz, card.gpu.signals.memory_clock_mhz)
                                       : nvml::kNotSupported;
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetPcieThroughput(nvml::Device device, int counter,
                                                    unsigned int* kbps) {
  return sim::OnDevice("nvmlDeviceGetPcieThroughput", device, [&](const Card& card) {
    if (counter == nvml::kPcieTx) {
      return sim::Put(kbps, card.gpu.signals.pcie_tx_kbps);
    }
    return counter == nvml::kPcieRx ? sim::Put(kbps, card.gpu.signals.pcie_rx_kbps)
                                    : nvml::kInvalidArgument;
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetTotalEnergyConsumption(nvml::Device device,
                                                            unsigned long long* millijoules) {
  return sim::OnDevice("nvmlDeviceGetTotalEnergyConsumption", device, [&](const Card& card) {
    return sim::Put<unsigned long long>(millijoules, card.gpu.signals.energy_mj);
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetRemappedRows(nvml::Device device, unsigned int* corrected,
                                                  unsigned int* uncorrected, unsigned int* pending,
                                                  unsigned int* failed) {
  return sim::OnDevice("nvmlDeviceGetRemappedRows", device, [&](const Card& card) {
    const auto& signals = card.gpu.signals;
    for (const Return put : {sim::Put(corrected, signals.remapped_corrected),
                             sim::Put(uncorrected, signals.remapped_uncorrected),
                             sim::Put(pending, signals.remap_pending ? 1U : 0U),
                             sim::Put(failed, signals.remap_failed ? 1U : 0U)}) {
      if (put != nvml::kSuccess) {
        return put;
      }
    }
    return nvml::kSuccess;
  });
}

RINGFENCE_EXPORT Return nvmlDeviceGetFieldValues(nvml::Device device, int count,
                                                 nvml::FieldValue* values) {
  return sim::OnDevice("nvmlDeviceGetFieldValues", device, [&](const Card& card) {
    if (count <= 0 || values == nullptr) {
      return nvml::kInvalidArgument;
    }
    for (nvml::FieldValue* one = values; one != values + count; ++one) {
      const bool sent = one->field == nvml::kFieldNvlinkTx;
      const bool known = sent || one->field == nvml::kFieldNvlinkRx;
      one->result = known && one->scope == nvml::kAllLinks ? nvml::kSuccess : nvml::kNotSupported;
      one->type = 3;
      one->value.ull = sent ? card.gpu.signals.nvlink_tx_kib : card.gpu.signals.nvlink_rx_kib;
    }
    return nvml::kSuccess;
  });
}

RINGFENCE_EXPORT Return nvmlGpmQueryDeviceSupport(nvml::Device device, nvml::GpmSupport* support) {
  return sim::OnDevice("nvmlGpmQueryDeviceSupport", device, [&](const Card& card) {
    if (support == nullptr || support->version != 1) {
      return nvml::kInvalidArgument;
    }
    support->supported = card.gpu.signals.gpm ? 1 : 0;
    return nvml::kSuccess;
  });
}

RINGFENCE_EXPORT Return nvmlGpmSampleAlloc(nvml::GpmSample* sample) {
  return sim::OnSystem("nvmlGpmSampleAlloc", [&](sim::NvmlState&) {
    return sample == nullptr ? nvml::kInvalidArgument
                             : sim::Put(sample, new nvml::GpmSampleOpaque());
  });
}

RINGFENCE_EXPORT Return nvmlGpmSampleFree(nvml::GpmSample sample) {
  delete sample;
  return nvml::kSuccess;
}

RINGFENCE_EXPORT Return nvmlGpmSampleGet(nvml::Device device, nvml::GpmSample sample) {
  return sim::OnDevice("nvmlGpmSampleGet", device, [&](const Card& card) {
    if (!card.gpu.signals.gpm) {
      return nvml::kNotSupported;
    }
    return sample == nullptr ? nvml::kInvalidArgument : sim::Put(sample, {card.gpu.signals, true});
  });
}

RINGFENCE_EXPORT Return nvmlGpmMetricsGet(nvml::GpmMetrics* metrics) {
  return sim::OnSystem("nvmlGpmMetricsGet", [&](sim::NvmlState&) {
    if (metrics == nullptr || metrics->version != 1 || metrics->count > nvml::kGpmMetricsMax ||
        metrics->first == nullptr || metrics->second == nullptr || !metrics->first->taken ||
        !metrics->second->taken) {
      return nvml::kInvalidArgument;
    }
    constexpr double kKbPerMib = 1048.576;
    const auto& now = metrics->second->signals;
    for (nvml::GpmMetric* one = metrics->metrics; one != metrics->metrics + metrics->count; ++one) {
      one->result = nvml::kSuccess;
      if (one->id == nvml::kGpmSmBusy) {
        one->value = now.sm_active_percent;
      } else if (one->id == nvml::kGpmTensorBusy) {
        one->value = now.tensor_active_percent;
      } else if (one->id == nvml::kGpmDramBusy) {
        one->value = now.dram_active_percent;
      } else if (one->id == nvml::kGpmPcieTx) {
        one->value = now.pcie_tx_kbps / kKbPerMib;
      } else if (one->id == nvml::kGpmPcieRx) {
        one->value = now.pcie_rx_kbps / kKbPerMib;
      } else {
        one->value = std::numeric_limits<double>::quiet_NaN();
        one->result = nvml::kNotSupported;
      }
    }
    return nvml::kSuccess;
  });
}

// The declarations that our callers use are these functions'.
#define RINGFENCE_SAME(name, arguments) \
  extern "C" Return name arguments;     \
  static_assert(std::is_same_v<decltype(&::name), decltype(nvml::ReadingsApi::name)>);
RINGFENCE_NVML_READING_FUNCTIONS(RINGFENCE_SAME)

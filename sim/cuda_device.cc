// CUDA stand-in: what one GPU says of itself.

#include <array>
#include <cstdio>

#include "cuda_state.h"

using ringfence::gpu::cuda::CuResult;
namespace cuda = ringfence::gpu::cuda;
namespace sim = ringfence::sim;

namespace ringfence::sim {
namespace {

struct Fact {
  int attribute;
  int value;
};

// An H200's, as the CUDA driver numbers them.
constexpr std::array kFacts = {
    Fact{1, 1024},
    Fact{2, 1024},
    Fact{3, 1024},
    Fact{4, 64},
    Fact{5, 2147483647},
    Fact{6, 65535},
    Fact{7, 65535},
    Fact{8, 49152},
    Fact{9, 65536},
    Fact{10, 32},
    Fact{12, 65536},
    Fact{13, 1980000},
    Fact{17, 0},
    Fact{18, 0},
    Fact{19, 1},
    Fact{20, 0},
    Fact{31, 1},
    Fact{36, 3201000},
    Fact{37, 6144},
    Fact{38, 62914560},
    Fact{39, 2048},
    Fact{40, 3},
    Fact{41, 1},
    Fact{75, 9},
    Fact{76, 0},
    Fact{81, 233472},
    Fact{82, 65536},
    Fact{83, 1},
    Fact{97, kBlockSharedBytesMax},
};

struct PciAddress {
  unsigned int domain = 0;
  unsigned int bus = 0;
  unsigned int slot = 0;
  bool operator==(const PciAddress&) const = default;
};

std::optional<PciAddress> ParsePci(const char* text) {
  PciAddress address;
  if (std::sscanf(text, "%x:%x:%x", &address.domain, &address.bus, &address.slot) != 3) {
    return std::nullopt;
  }
  return address;
}

CuResult PutAttribute(const gpu::SimulatedGpu& gpu, int attribute, int* value) {
  const PciAddress pci = ParsePci(gpu.pci_address.c_str()).value_or(PciAddress{});
  switch (attribute) {
    case cuda::kEccEnabled:
      *value = gpu.ecc.value_or(false) ? 1 : 0;
      return cuda::kSuccess;
    case cuda::kMultiprocessors:
      *value = static_cast<int>(MultiprocessorsOf(gpu));
      return cuda::kSuccess;
    case cuda::kPciBus:
      *value = static_cast<int>(pci.bus);
      return cuda::kSuccess;
    case cuda::kPciDevice:
      *value = static_cast<int>(pci.slot);
      return cuda::kSuccess;
    case cuda::kPciDomain:
      *value = static_cast<int>(pci.domain);
      return cuda::kSuccess;
    default:
      break;
  }
  for (const Fact& fact : kFacts) {
    if (fact.attribute == attribute) {
      *value = fact.value;
      return cuda::kSuccess;
    }
  }
  return cuda::kInvalidValue;
}

CuResult PutUuid(const gpu::SimulatedGpu& gpu, cuda::Uuid* uuid) {
  std::size_t digits = 0;
  *uuid = {};
  for (const char c : gpu.uuid.substr(4)) {
    if (c == '-') {
      continue;
    }
    const int value = c <= '9' ? c - '0' : c - 'a' + 10;
    char& byte = uuid->bytes[digits++ / 2];
    byte = static_cast<char>((byte << 4) | value);
  }
  return cuda::kSuccess;
}

}  // namespace
}  // namespace ringfence::sim

RINGFENCE_EXPORT CuResult cuDeviceGetCount(int* count) {
  return sim::OnDriver("cuDeviceGetCount", [&](sim::CudaState& state) {
    if (count == nullptr) {
      return cuda::kInvalidValue;
    }
    *count = static_cast<int>(state.gpus.size());
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuDeviceGet(cuda::Device* device, int ordinal) {
  return sim::OnDriver("cuDeviceGet", [&](sim::CudaState& state) {
    if (device == nullptr) {
      return cuda::kInvalidValue;
    }
    if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= state.gpus.size()) {
      return cuda::kInvalidDevice;
    }
    *device = ordinal;
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuDeviceGetName(char* text, int bytes, cuda::Device device) {
  return sim::OnDevice("cuDeviceGetName", device, [&](sim::CudaState&, sim::CudaGpu& gpu) {
    if (text == nullptr || bytes <= 0) {
      return cuda::kInvalidValue;
    }
    (void)std::snprintf(text, static_cast<std::size_t>(bytes), "%s", gpu.gpu.model.c_str());
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuDeviceGetUuid_v2(cuda::Uuid* uuid, cuda::Device device) {
  return sim::OnDevice("cuDeviceGetUuid_v2", device, [&](sim::CudaState&, sim::CudaGpu& gpu) {
    return uuid == nullptr ? cuda::kInvalidValue : sim::PutUuid(gpu.gpu, uuid);
  });
}

RINGFENCE_EXPORT CuResult cuDeviceGetUuid(cuda::Uuid* uuid, cuda::Device device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

RINGFENCE_EXPORT CuResult cuDeviceTotalMem_v2(std::size_t* bytes, cuda::Device device) {
  return sim::OnDevice("cuDeviceTotalMem_v2", device, [&](sim::CudaState&, sim::CudaGpu& gpu) {
    if (bytes == nullptr) {
      return cuda::kInvalidValue;
    }
    *bytes = gpu.gpu.usable_bytes();
    return cuda::kSuccess;
  });
}

RINGFENCE_EXPORT CuResult cuDeviceGetAttribute(int* value, int attribute, cuda::Device device) {
  return sim::OnDevice("cuDeviceGetAttribute", device, [&](sim::CudaState&, sim::CudaGpu& gpu) {
    return value == nullptr ? cuda::kInvalidValue : sim::PutAttribute(gpu.gpu, attribute, value);
  });
}

RINGFENCE_EXPORT CuResult cuDeviceGetByPCIBusId(cuda::Device* device, const char* address) {
  return sim::OnDriver("cuDeviceGetByPCIBusId", [&](sim::CudaState& state) {
    if (device == nullptr || address == nullptr) {
      return cuda::kInvalidValue;
    }
    const auto wanted = sim::ParsePci(address);
    for (std::size_t i = 0; wanted.has_value() && i < state.gpus.size(); ++i) {
      if (sim::ParsePci(state.gpus[i].gpu.pci_address.c_str()) == wanted) {
        *device = static_cast<cuda::Device>(i);
        return cuda::kSuccess;
      }
    }
    return wanted.has_value() ? cuda::kInvalidDevice : cuda::kInvalidValue;
  });
}

RINGFENCE_EXPORT CuResult cuDeviceGetPCIBusId(char* text, int bytes, cuda::Device device) {
  return sim::OnDevice("cuDeviceGetPCIBusId", device, [&](sim::CudaState&, sim::CudaGpu& gpu) {
    const std::string address = gpu.gpu.pci_address.substr(4);
    if (text == nullptr || bytes <= static_cast<int>(address.size())) {
      return cuda::kInvalidValue;
    }
    (void)std::snprintf(text, static_cast<std::size_t>(bytes), "%s", address.c_str());
    return cuda::kSuccess;
  });
}

// What NVML answers, right and wrong calls alike. One list for the vendor's library and for the
// stand-in: where a row is expected, both must answer the same.

#include <array>

#include "questions.h"

namespace ringfence::gpu {
namespace {

constexpr const char* kNobody = "GPU-ffffffff-ffff-4fff-8fff-ffffffffffff";

void AskBeforeInit(const nvml::Api& api, Table& table) {
  std::array<char, 96> text{};
  unsigned int number = 0;
  nvml::Device device = nullptr;
  table.Want("nvmlShutdown before init", api.nvmlShutdown(), 1);
  table.Want("nvmlDeviceGetCount_v2 before init", api.nvmlDeviceGetCount_v2(&number), 1);
  table.Want("nvmlDeviceGetCount_v2(NULL) before init", api.nvmlDeviceGetCount_v2(nullptr), 1);
  table.Want("nvmlDeviceGetHandleByIndex_v2 before init",
             api.nvmlDeviceGetHandleByIndex_v2(0, &device), 1);
  table.Want("nvmlSystemGetDriverVersion before init",
             api.nvmlSystemGetDriverVersion(text.data(), 80), 1);
  table.Want("nvmlDeviceGetUUID before init", api.nvmlDeviceGetUUID(nullptr, text.data(), 96), 1);
  int version = 0;
  table.Note("nvmlSystemGetCudaDriverVersion_v2 before init",
             api.nvmlSystemGetCudaDriverVersion_v2(&version));
}

void AskWords(const nvml::Api& api, Table& table) {
  const std::pair<int, const char*> words[] = {
      {0, "Success"},
      {1, "Uninitialized"},
      {2, "Invalid Argument"},
      {3, "Not Supported"},
      {4, "Insufficient Permissions"},
      {6, "Not Found"},
      {7, "Insufficient Size"},
      {9, "Driver Not Loaded"},
      {15, "GPU is lost"},
      {999, "Unknown Error"},
      {12345, "Unknown Error"},
  };
  for (const auto& [code, expected] : words) {
    table.Want("nvmlErrorString(" + std::to_string(code) + ")",
               api.nvmlErrorString(static_cast<nvml::Return>(code)), expected);
  }
  for (const int code : {5, 8, 10, 13, 14, 16, 18, 19, 20, 25}) {
    table.Note("nvmlErrorString(" + std::to_string(code) + ")",
               api.nvmlErrorString(static_cast<nvml::Return>(code)));
  }
}

void AskSystem(const nvml::Api& api, Table& table) {
  std::array<char, 96> text{};
  nvml::Device device = nullptr;
  table.Want("nvmlSystemGetDriverVersion(NULL)", api.nvmlSystemGetDriverVersion(nullptr, 80), 2);
  table.Want("nvmlSystemGetDriverVersion, 1 byte", api.nvmlSystemGetDriverVersion(text.data(), 1),
             7);
  table.Want("nvmlSystemGetNVMLVersion, 1 byte", api.nvmlSystemGetNVMLVersion(text.data(), 1), 7);
  table.Want("nvmlSystemGetCudaDriverVersion_v2(NULL)",
             api.nvmlSystemGetCudaDriverVersion_v2(nullptr), 2);
  table.Want("nvmlDeviceGetCount_v2(NULL)", api.nvmlDeviceGetCount_v2(nullptr), 2);
  table.Want("nvmlDeviceGetHandleByIndex_v2(9999)",
             api.nvmlDeviceGetHandleByIndex_v2(9999, &device), 2);
  table.Want("nvmlDeviceGetHandleByIndex_v2(0, NULL)",
             api.nvmlDeviceGetHandleByIndex_v2(0, nullptr), 2);
  table.Want("nvmlDeviceGetHandleByUUID(NULL)", api.nvmlDeviceGetHandleByUUID(nullptr, &device), 2);
  table.Want("nvmlDeviceGetHandleByUUID of nobody", api.nvmlDeviceGetHandleByUUID(kNobody, &device),
             6);
  table.Want("nvmlDeviceGetHandleByPciBusId_v2 of nobody",
             api.nvmlDeviceGetHandleByPciBusId_v2("00000000:FE:1F.0", &device), 6);
  table.Note("nvmlDeviceGetHandleByPciBusId_v2(\"garbage\")",
             api.nvmlDeviceGetHandleByPciBusId_v2("garbage", &device));
  table.Want("nvmlSystemGetConfComputeState(NULL)", api.nvmlSystemGetConfComputeState(nullptr), 2);
  nvml::ConfComputeState state{9, 9, 9};
  table.Note("nvmlSystemGetConfComputeState", api.nvmlSystemGetConfComputeState(&state));
  table.Note("confidential computing feature", state.feature);
}

void AskTexts(const nvml::Api& api, nvml::Device device, Table& table) {
  std::array<char, 96> text{};
  table.Want("nvmlDeviceGetUUID(NULL device)", api.nvmlDeviceGetUUID(nullptr, text.data(), 96), 2);
  table.Want("nvmlDeviceGetUUID(NULL text)", api.nvmlDeviceGetUUID(device, nullptr, 96), 2);
  table.Want("nvmlDeviceGetUUID, 40 bytes", api.nvmlDeviceGetUUID(device, text.data(), 40), 7);
  table.Want("nvmlDeviceGetUUID, 41 bytes", api.nvmlDeviceGetUUID(device, text.data(), 41), 0);
  nvml::Device again = nullptr;
  table.Want("nvmlDeviceGetHandleByUUID of it", api.nvmlDeviceGetHandleByUUID(text.data(), &again),
             0);
  table.Want("is the same handle", again == device, true);
  table.Want("nvmlDeviceGetName, 1 byte", api.nvmlDeviceGetName(device, text.data(), 1), 7);
  table.Want("nvmlDeviceGetName", api.nvmlDeviceGetName(device, text.data(), 96), 0);
  table.Note("name", text.data());
  table.Want("nvmlDeviceGetSerial, 1 byte", api.nvmlDeviceGetSerial(device, text.data(), 1), 7);
  table.Want("nvmlDeviceGetVbiosVersion, 1 byte",
             api.nvmlDeviceGetVbiosVersion(device, text.data(), 1), 7);
  table.Want("nvmlDeviceGetGspFirmwareVersion(NULL)",
             api.nvmlDeviceGetGspFirmwareVersion(device, nullptr), 2);
}

void AskNumbers(const nvml::Api& api, nvml::Device device, Table& table) {
  table.Want("nvmlDeviceGetMinorNumber(NULL)", api.nvmlDeviceGetMinorNumber(device, nullptr), 2);
  table.Want("nvmlDeviceGetPciInfo_v3(NULL)", api.nvmlDeviceGetPciInfo_v3(device, nullptr), 2);
  table.Want("nvmlDeviceGetMemoryInfo(NULL)", api.nvmlDeviceGetMemoryInfo(device, nullptr), 2);
  nvml::PciInfo pci{};
  table.Want("nvmlDeviceGetPciInfo_v3", api.nvmlDeviceGetPciInfo_v3(device, &pci), 0);
  nvml::Device again = nullptr;
  table.Want("nvmlDeviceGetHandleByPciBusId_v2 of it",
             api.nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id, &again), 0);
  table.Want("is the same handle", again == device, true);
  nvml::Memory memory{};
  table.Want("nvmlDeviceGetMemoryInfo", api.nvmlDeviceGetMemoryInfo(device, &memory), 0);
  table.Want("free + used = total", memory.free + memory.used == memory.total, true);
  nvml::MemoryV2 second{};
  table.Want("nvmlDeviceGetMemoryInfo_v2, version 0",
             api.nvmlDeviceGetMemoryInfo_v2(device, &second), 13);
  second.version = nvml::StructVersion<nvml::MemoryV2>(2);
  table.Want("nvmlDeviceGetMemoryInfo_v2", api.nvmlDeviceGetMemoryInfo_v2(device, &second), 0);
  table.Want("both totals agree", second.total == memory.total, true);
  table.Note("total bytes", static_cast<long long>(memory.total));
  table.Note("reserved bytes", static_cast<long long>(second.reserved));
  table.Note("used bytes, version 1", static_cast<long long>(memory.used));
  unsigned int one = 0;
  unsigned int two = 0;
  table.Want("nvmlDeviceGetEccMode(NULL)", api.nvmlDeviceGetEccMode(device, nullptr, &two), 2);
  table.Want("nvmlDeviceGetMigMode(NULL)", api.nvmlDeviceGetMigMode(device, &one, nullptr), 2);
  table.Want("nvmlDeviceGetTemperature(NULL)", api.nvmlDeviceGetTemperature(device, 0, nullptr), 2);
  table.Note("nvmlDeviceGetTemperature, sensor 7", api.nvmlDeviceGetTemperature(device, 7, &one));
  table.Want("nvmlDeviceGetPowerUsage(NULL)", api.nvmlDeviceGetPowerUsage(device, nullptr), 2);
  table.Want("nvmlDeviceGetUtilizationRates(NULL)",
             api.nvmlDeviceGetUtilizationRates(device, nullptr), 2);
  unsigned long long errors = 0;
  table.Want("nvmlDeviceGetTotalEccErrors", api.nvmlDeviceGetTotalEccErrors(device, 0, 0, &errors),
             0);
  table.Want("nvmlDeviceGetTotalEccErrors(NULL)",
             api.nvmlDeviceGetTotalEccErrors(device, 0, 0, nullptr), 2);
  unsigned int count = 0;
  table.Want("nvmlDeviceGetComputeRunningProcesses_v3, room 0, idle",
             api.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, nullptr), 0);
  table.Want("processes", count, 0);
  table.Want("nvmlDeviceGetComputeRunningProcesses_v3(NULL)",
             api.nvmlDeviceGetComputeRunningProcesses_v3(device, nullptr, nullptr), 2);
}

// As tests/vectors/h200/nvml.txt has them.
void AskMig(const nvml::Api& api, nvml::Device device, Table& table) {
  const int ids[] = {19, 14, 9, 5, 0, -1, -1, 20, -1, 15};
  for (unsigned int lookup = 0; lookup < std::size(ids); ++lookup) {
    nvml::GpuInstanceProfileV3 info{};
    info.version = nvml::StructVersion<nvml::GpuInstanceProfileV3>(3);
    const nvml::Return code = api.nvmlDeviceGetGpuInstanceProfileInfoV(
        device, lookup, reinterpret_cast<nvml::GpuInstanceProfileV2*>(&info));
    const std::string what = "GPU instance profile " + std::to_string(lookup);
    table.Want(what, code, ids[lookup] < 0 ? 3 : 0);
    if (code == nvml::kSuccess) {
      table.Want(what + " id", info.id, ids[lookup]);
      table.Note(what + " name", info.name);
      unsigned int count = 0;
      table.Want(
          what + " placements, NULL",
          api.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, info.id, nullptr, &count), 0);
      table.Note(what + " placements", count);
    }
  }
  nvml::GpuInstanceProfileV2 info{};
  table.Want("GPU instance profile, struct version 0",
             api.nvmlDeviceGetGpuInstanceProfileInfoV(device, 0, &info), 2);
  nvml::GpuInstanceProfile first{};
  table.Want("GPU instance profile 17", api.nvmlDeviceGetGpuInstanceProfileInfo(device, 17, &first),
             2);
  table.Want("GPU instance profile, NULL",
             api.nvmlDeviceGetGpuInstanceProfileInfo(device, 0, nullptr), 2);
  unsigned int count = 8;
  nvml::GpuInstancePlacement placements[8];
  table.Note("placements of profile id 4711",
             api.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, 4711, placements, &count));
}

}  // namespace

bool AskNvml(const nvml::Api& api, Table& table) {
  bool complete = true;
#define RINGFENCE_PRESENT(name, arguments)                     \
  table.Want(#name " is exported", api.name != nullptr, true); \
  complete = complete && api.name != nullptr;
  RINGFENCE_NVML_FUNCTIONS(RINGFENCE_PRESENT)
#undef RINGFENCE_PRESENT
  if (!complete || api.nvmlErrorString == nullptr) {
    return false;
  }
  AskBeforeInit(api, table);
  AskWords(api, table);
  table.Want("nvmlInit_v2", api.nvmlInit_v2(), 0);
  table.Want("nvmlInit_v2 again", api.nvmlInit_v2(), 0);
  AskSystem(api, table);
  nvml::Device device = nullptr;
  table.Want("nvmlDeviceGetHandleByIndex_v2(0)", api.nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
  if (device == nullptr) {
    return false;
  }
  AskTexts(api, device, table);
  AskNumbers(api, device, table);
  std::array<char, 96> name{};
  (void)api.nvmlDeviceGetName(device, name.data(), 96);
  if (name.data() == std::string("NVIDIA H200")) {
    AskMig(api, device, table);
  }
  table.Want("nvmlShutdown", api.nvmlShutdown(), 0);
  table.Want("nvmlShutdown again", api.nvmlShutdown(), 0);
  table.Want("nvmlShutdown once too often", api.nvmlShutdown(), 1);
  return true;
}

}  // namespace ringfence::gpu

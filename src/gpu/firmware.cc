#include "gpu/firmware.h"

#include <algorithm>
#include <array>

#include "gpu/library.h"
#include "gpu/limits.h"

namespace ringfence::gpu {
namespace {

using nvml::Return;

constexpr unsigned kInforomBytes = 16;
constexpr Return kCorruptedInforom = static_cast<Return>(14);

// Functions that only this file calls; null where the library does not export them.
struct MoreApi {
  Return (*inforom_version)(nvml::Device, char*, unsigned) = nullptr;
  Return (*validate_inforom)(nvml::Device) = nullptr;
  Return (*persistence)(nvml::Device, unsigned*) = nullptr;
};

template <typename Function>
void Find(const Library& library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(library.Find(name));
}

// What a driver says goes into JSON and to terminals.
std::string Plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return out;
}

class FirmwareReader {
 public:
  FirmwareReader(const nvml::Api& api, const MoreApi& more) : api_(api), more_(more) {}

  Firmware Read(unsigned index) {
    Firmware card;
    Return code = api_.nvmlDeviceGetHandleByIndex_v2(index, &device_);
    if (code != nvml::kSuccess) {
      card.problem = "GPU " + std::to_string(index) + ": " + Words(code);
      return card;
    }
    card.uuid = Text<nvml::kUuidBytes>(api_.nvmlDeviceGetUUID);
    card.model = Text<nvml::kNameBytes>(api_.nvmlDeviceGetName);
    card.serial = Text<nvml::kSerialBytes>(api_.nvmlDeviceGetSerial);
    card.vbios = Text<nvml::kVbiosBytes>(api_.nvmlDeviceGetVbiosVersion);
    card.inforom = Text<kInforomBytes>(more_.inforom_version);
    std::array<char, nvml::kGspVersionBytes + 1> gsp{};
    if (api_.nvmlDeviceGetGspFirmwareVersion != nullptr &&
        Kept(api_.nvmlDeviceGetGspFirmwareVersion(device_, gsp.data()))) {
      card.gsp = Plain(gsp.data());
    }
    nvml::PciInfo pci{};
    if (api_.nvmlDeviceGetPciInfo_v3 != nullptr &&
        Kept(api_.nvmlDeviceGetPciInfo_v3(device_, &pci))) {
      pci.bus_id[sizeof pci.bus_id - 1] = '\0';
      card.pci_address = Plain(pci.bus_id);
    }
    card.ecc = Mode(api_.nvmlDeviceGetEccMode);
    card.mig = Mode(api_.nvmlDeviceGetMigMode);
    ReadInforom(card);
    unsigned on = 0;
    if (more_.persistence != nullptr && Kept(more_.persistence(device_, &on))) {
      card.persistence = on != 0;
    }
    unsigned long long errors = 0;
    constexpr int kUncorrected = 1;
    constexpr int kLifetime = 1;
    if (api_.nvmlDeviceGetTotalEccErrors != nullptr &&
        Kept(api_.nvmlDeviceGetTotalEccErrors(device_, kUncorrected, kLifetime, &errors))) {
      card.uncorrected_errors = errors;
    }
    card.problem =
        problem_.empty() ? "" : "GPU " + std::to_string(index) + " " + card.uuid + ": " + problem_;
    return card;
  }

 private:
  std::string Words(Return code) const {
    const char* words = api_.nvmlErrorString == nullptr ? nullptr : api_.nvmlErrorString(code);
    return Plain(words == nullptr ? "no words" : words) + " (" +
           std::to_string(static_cast<int>(code)) + ")";
  }
  // Whether there is an answer. "Not supported" is none, and no problem either.
  bool Kept(Return code) {
    if (code != nvml::kSuccess && code != nvml::kNotSupported && problem_.empty()) {
      problem_ = Words(code);
    }
    return code == nvml::kSuccess;
  }
  template <unsigned kBytes>
  std::string Text(Return (*call)(nvml::Device, char*, unsigned)) {
    std::array<char, kBytes + 1> text{};
    return call != nullptr && Kept(call(device_, text.data(), kBytes)) ? Plain(text.data()) : "";
  }
  std::optional<bool> Mode(Return (*call)(nvml::Device, unsigned*, unsigned*)) {
    unsigned current = 0;
    unsigned pending = 0;
    return call != nullptr && Kept(call(device_, &current, &pending))
               ? std::optional<bool>(current != 0)
               : std::nullopt;
  }
  void ReadInforom(Firmware& card) {
    if (more_.validate_inforom == nullptr) {
      return;
    }
    const Return code = more_.validate_inforom(device_);
    if (code == kCorruptedInforom) {
      card.inforom_valid = false;
    } else if (Kept(code)) {
      card.inforom_valid = true;
    }
  }

  const nvml::Api& api_;
  const MoreApi& more_;
  nvml::Device device_ = nullptr;
  std::string problem_;
};

}  // namespace

Result<FirmwareReport> ReadFirmware(const std::string& driver_root) {
  RINGFENCE_ASSIGN(const Library library, Library::Open(driver_root, kNvmlName));
  const nvml::Api api = LoadNvml(library);
  MoreApi more;
  Find(library, "nvmlDeviceGetInforomImageVersion", more.inforom_version);
  Find(library, "nvmlDeviceValidateInforom", more.validate_inforom);
  Find(library, "nvmlDeviceGetPersistenceMode", more.persistence);
  if (api.nvmlInit_v2 == nullptr || api.nvmlShutdown == nullptr ||
      api.nvmlDeviceGetCount_v2 == nullptr || api.nvmlDeviceGetHandleByIndex_v2 == nullptr ||
      api.nvmlSystemGetDriverVersion == nullptr) {
    return Error{Code::kFailedPrecondition, library.path() + " is no NVML of branch 525 or later"};
  }
  if (const Return code = api.nvmlInit_v2(); code != nvml::kSuccess) {
    return Error{code == nvml::kDriverNotLoaded ? Code::kNotFound : Code::kUnavailable,
                 "nvmlInit_v2: " + std::to_string(static_cast<int>(code)),
                 "check that the driver's module is loaded and its device files can be opened"};
  }
  FirmwareReport report;
  report.simulated = library.simulated();
  std::array<char, nvml::kVersionBytes + 1> version{};
  if (api.nvmlSystemGetDriverVersion(version.data(), nvml::kVersionBytes) == nvml::kSuccess) {
    report.driver = Plain(version.data());
  }
  unsigned count = 0;
  const Return counted = api.nvmlDeviceGetCount_v2(&count);
  for (unsigned i = 0; counted == nvml::kSuccess && i < std::min<unsigned>(count, kGpusMax); ++i) {
    report.gpus.push_back(FirmwareReader(api, more).Read(i));
  }
  (void)api.nvmlShutdown();
  if (counted != nvml::kSuccess) {
    return Error{Code::kUnavailable,
                 "nvmlDeviceGetCount_v2: " + std::to_string(static_cast<int>(counted))};
  }
  return report;
}

}  // namespace ringfence::gpu

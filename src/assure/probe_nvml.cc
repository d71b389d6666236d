// The probe `nvml`: what the driver's library says of each GPU.

#include <algorithm>
#include <map>

#include "assure/nvml_view.h"
#include "assure/probe.h"

namespace ringfence::assure {
namespace {

std::string NameOf(std::size_t index, const gpu::Firmware& card) {
  return "GPU " + std::to_string(index) + (card.uuid.empty() ? "" : " " + card.uuid);
}

// "00000000:0F:00.0" as sysfs writes it: "0000:0f:00.0".
std::string SysfsName(const std::string& address) {
  std::string name = address.size() == 16 ? address.substr(4) : address;
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name;
}

// GPUs that the bus shows and NVML does not.
Observed Missing(const gpu::FirmwareReport& report, const ProbeContext& context) {
  const auto devices = context.machine.List("/sys/bus/pci/devices");
  if (!devices.has_value()) {
    return Observed::Unknown("no PCI devices can be seen: " + devices.error().message);
  }
  Observed seen;
  for (const std::string& device : *devices) {
    const std::string folder = "/sys/bus/pci/devices/" + device;
    const auto vendor = context.machine.Read(folder + "/vendor", 64);
    const auto kind = context.machine.Read(folder + "/class", 64);
    if (!vendor.has_value() || !kind.has_value() || Trim(*vendor) != "0x10de" ||
        !Trim(*kind).starts_with("0x03")) {
      continue;
    }
    const bool known = std::any_of(
        report.gpus.begin(), report.gpus.end(),
        [&](const gpu::Firmware& card) { return SysfsName(card.pci_address) == device; });
    if (!known) {
      seen.values.push_back({folder, "NVML does not show it"});
    }
  }
  return seen;
}

// Values that differ from the first card's of the same model.
Observed Mixed(const gpu::FirmwareReport& report, const std::string& key) {
  std::map<std::string, std::string> first;
  Observed seen;
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    const gpu::Firmware& card = report.gpus[i];
    const std::string value = NvmlFact(card, key);
    const auto [known, fresh] = first.emplace(card.model, value);
    if (!fresh && known->second != value) {
      seen.values.push_back({NameOf(i, card), value + ", and " + known->second + " elsewhere"});
    }
  }
  return seen;
}

}  // namespace

Observed ObserveNvml(const ProbeSpec& probe, const ProbeContext& context) {
  const NvmlView captured = context.nvml == nullptr ? CapturedNvml(context.machine) : NvmlView{};
  const NvmlView& view = context.nvml == nullptr ? captured : *context.nvml;
  if (!view.report) {
    return view.problem.empty() ? Observed::Absent("NVML was not asked: there is no driver here")
                                : Observed::Unknown(view.problem);
  }
  const gpu::FirmwareReport& report = *view.report;
  Observed seen;
  if (probe.key == "problem") {
    for (std::size_t i = 0; i < report.gpus.size(); ++i) {
      if (!report.gpus[i].problem.empty()) {
        seen.values.push_back({NameOf(i, report.gpus[i]), report.gpus[i].problem});
      }
    }
    return seen;
  }
  for (const gpu::Firmware& card : report.gpus) {
    if (!card.problem.empty()) {
      return Observed::Unknown(card.problem);
    }
  }
  if (probe.get == "missing") {
    return Missing(report, context);
  }
  if (probe.get == "mixed") {
    return Mixed(report, probe.key);
  }
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    const std::string value = NvmlFact(report.gpus[i], probe.key);
    // A card that does not know the question has nothing to be judged.
    if (value != "n/a" || probe.each) {
      seen.values.push_back({NameOf(i, report.gpus[i]), value});
    }
  }
  return seen;
}

}  // namespace ringfence::assure

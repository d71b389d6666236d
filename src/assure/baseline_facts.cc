// What a machine is made of, read from its files and from NVML.

#include <algorithm>

#include "assure/baseline.h"
#include "assure/probe.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kSmallBytesMax = 4'096;
constexpr std::size_t kListBytesMax = std::size_t{1} << 20U;
constexpr std::size_t kValueMax = 512;
constexpr std::size_t kNameMax = 128;

constexpr std::pair<const char*, const char*> kFiles[] = {
    {"kernel.release", "/proc/sys/kernel/osrelease"},
    {"kernel.build", "/proc/sys/kernel/version"},
    {"kernel.lockdown", "/sys/kernel/security/lockdown"},
    {"module.signatures", "/sys/module/module/parameters/sig_enforce"},
    {"firmware.vendor", "/sys/class/dmi/id/bios_vendor"},
    {"firmware.version", "/sys/class/dmi/id/bios_version"},
    {"firmware.date", "/sys/class/dmi/id/bios_date"},
    {"board.name", "/sys/class/dmi/id/board_name"},
    {"board.serial", "/sys/class/dmi/id/board_serial"},
    {"chassis.serial", "/sys/class/dmi/id/chassis_serial"},
    {"product.serial", "/sys/class/dmi/id/product_serial"},
    {"bmc.firmware", "/sys/devices/platform/ipmi_bmc.0/firmware_revision"},
    {"driver.module", "/sys/module/nvidia/version"},
    {"driver.source", "/sys/module/nvidia/srcversion"},
};

// It goes into JSON and to terminals.
std::string Clean(std::string_view text, std::size_t bytes_max) {
  std::string clean;
  for (const char c : text.substr(0, bytes_max)) {
    clean += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return clean;
}

class Sight {
 public:
  explicit Sight(const MachineView& machine) : machine_(machine) {}

  void Note(const std::string& fact, std::string_view value) {
    std::string clean = Clean(Trim(value), kValueMax);
    if (!clean.empty() && sight_.facts.size() < kBaselineFactsMax) {
      sight_.facts.emplace(Clean(fact, kNameMax), std::move(clean));
    } else if (!clean.empty() && !full_) {
      full_ = true;
      sight_.unread.push_back("there are more than 2000 facts");
    }
  }
  void Unread(std::string why) { sight_.unread.push_back(std::move(why)); }

  void File(const std::string& fact, const std::string& path) {
    const auto text = machine_.Read(path, kSmallBytesMax);
    if (text.has_value()) {
      Note(fact, *text);
    } else if (text.error().code != Code::kNotFound) {
      Unread(fact + ": " + text.error().message);
    }
  }

  // Four bytes of attributes, then 1 or 0.
  void SecureBoot() {
    const Found found =
        FindPaths(machine_, "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-*");
    for (const std::string& path : found.paths) {
      const auto bytes = machine_.Read(path, kSmallBytesMax);
      if (bytes.has_value() && bytes->size() == 5) {
        Note("boot.secure", bytes->back() == 1 ? "on" : "off");
      } else if (!bytes.has_value()) {
        Unread("boot.secure: " + bytes.error().message);
      }
    }
    if (!found.problem.empty()) {
      Unread("boot.secure: " + found.problem);
    }
  }

  void Modules() {
    const auto text = machine_.Read("/proc/modules", kListBytesMax);
    if (!text.has_value()) {
      if (text.error().code != Code::kNotFound) {
        Unread("modules: " + text.error().message);
      }
      return;
    }
    for (const std::string_view line : SplitLines(*text)) {
      const auto fields = SplitFields(line);
      if (fields.empty() || fields[0].find('/') != std::string_view::npos) {
        continue;
      }
      const std::string name(fields[0]);
      const auto source = machine_.Read("/sys/module/" + name + "/srcversion", kSmallBytesMax);
      const auto taint = machine_.Read("/sys/module/" + name + "/taint", kSmallBytesMax);
      const std::string flags(taint.has_value() ? Trim(*taint) : "");
      Note("module." + name, "source " +
                                 std::string(source.has_value() ? Trim(*source) : "unknown") +
                                 (flags.empty() ? "" : ", taints " + flags));
    }
  }

  // NVIDIA's devices: GPUs, NVSwitches and their slots.
  void Devices() {
    const auto devices = machine_.List("/sys/bus/pci/devices");
    if (!devices.has_value()) {
      if (devices.error().code != Code::kNotFound) {
        Unread("pci: " + devices.error().message);
      }
      return;
    }
    for (const std::string& device : *devices) {
      const std::string folder = "/sys/bus/pci/devices/" + device;
      if (Read(folder + "/vendor") == "0x10de") {
        Note("pci." + device,
             "class " + Read(folder + "/class") + " device " + Read(folder + "/device") +
                 " subsystem " + Read(folder + "/subsystem_device") + " numa " +
                 Read(folder + "/numa_node") + " link " + Read(folder + "/max_link_width"));
      }
    }
  }

  void Gpus(const NvmlView& view) {
    if (!view.report) {
      if (!view.problem.empty()) {
        Unread("gpu: " + view.problem);
      }
      return;
    }
    Note("driver.version", view.report->driver);
    Note("driver.simulated", view.report->simulated ? "yes" : "");
    for (const gpu::Firmware& card : view.report->gpus) {
      if (!card.problem.empty()) {
        Unread("gpu: " + card.problem);
      }
      for (const char* fact :
           {"model", "serial", "pci_address", "vbios", "gsp", "inforom", "ecc", "mig"}) {
        const std::string value = NvmlFact(card, fact);
        if (!card.uuid.empty() && value != "n/a") {
          Note("gpu." + card.uuid + "." + fact, value);
        }
      }
    }
  }

  BaselineSight Take() { return std::move(sight_); }

 private:
  std::string Read(const std::string& path) const {
    const auto text = machine_.Read(path, kSmallBytesMax);
    return text.has_value() ? std::string(Trim(*text)) : "-";
  }

  const MachineView& machine_;
  BaselineSight sight_;
  bool full_ = false;
};

}  // namespace

BaselineSight SeeBaseline(const MachineView& machine, const NvmlView* nvml) {
  Sight sight(machine);
  for (const auto& [fact, path] : kFiles) {
    sight.File(fact, path);
  }
  sight.SecureBoot();
  sight.Devices();
  sight.Gpus(nvml == nullptr ? CapturedNvml(machine) : *nvml);
  sight.Modules();
  return sight.Take();
}

}  // namespace ringfence::assure

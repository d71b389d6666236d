#include "gpu/simulated_amd.h"

#include <array>
#include <cstdio>
#include <utility>

#include "os/file.h"

namespace ringfence::gpu {
namespace {

Status Put(const std::string& path, const std::string& text, unsigned mode = 0644) {
  const auto before = os::ReadText(path, 65536);
  if (!before.has_value() || *before != text) {  // others may hold locks on what is there
    RINGFENCE_TRY(os::WriteFile(path, AsBytes(text), mode));
  }
  return os::ChangeMode(path, mode);
}

std::string Hex4(std::uint32_t number) {
  std::array<char, 16> text{};
  (void)std::snprintf(text.data(), text.size(), "0x%04x\n", number & 0xffffU);
  return text.data();
}

Status PutCard(const std::string& root, const SimulatedGpu& gpu) {
  const std::string folder = AmdFolder(root, gpu);
  const std::string render = std::to_string(gpu.minor);
  RINGFENCE_TRY(os::MakeDirs(folder + "/drm/renderD" + render));
  for (const auto& [name, text] :
       {std::pair<const char*, std::string>{
            "uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=" + ProcName(gpu.pci_address) + "\n"},
        {"device", Hex4(gpu.pci_device_id >> 16U)},
        {"vendor", Hex4(gpu.pci_device_id)},
        {"product_name", gpu.model + "\n"},
        {"serial_number", gpu.serial + "\n"},
        {"vbios_version", gpu.vbios + "\n"}}) {
    RINGFENCE_TRY(Put(folder + "/" + name, text));
  }
  // As an MI300X has them: 304 compute units of 4 SIMDs, 64 KiB of LDS each.
  const std::string node = AmdNodeFolder(root, gpu);
  RINGFENCE_TRY(os::MakeDirs(node));
  RINGFENCE_TRY(Put(node + "/gpu_id", std::to_string(20000 + gpu.minor) + "\n"));
  return Put(
      node + "/properties",
      "simd_count 1216\nlds_size_in_kb 64\nsimd_per_cu 4\ndrm_render_minor " + render + "\n");
}

}  // namespace

Status PutSimulatedAmd(const std::string& root, const Scenario& scenario) {
  // Of cards that are no more; locks are on files of those that stay.
  const auto names = os::ListDir(root + "/sys/bus/pci/devices");
  for (const std::string& name : names.has_value() ? *names : std::vector<std::string>()) {
    bool known = false;
    for (const SimulatedGpu& gpu : scenario.gpus) {
      known = known || (gpu.is_amd() && ProcName(gpu.pci_address) == name);
    }
    if (!known) {
      RINGFENCE_TRY(os::RemoveTree(root + "/sys/bus/pci/devices/" + name));
    }
  }
  RINGFENCE_TRY(os::RemoveTree(root + "/sys/class/kfd/kfd/topology"));
  RINGFENCE_TRY(os::RemoveTree(root + "/dev/dri"));
  if (!scenario.has_amd()) {
    return os::RemoveTree(root + "/sys");
  }
  RINGFENCE_TRY(os::MakeDirs(root + "/sys/module/amdgpu"));
  RINGFENCE_TRY(Put(root + "/sys/module/amdgpu/version", scenario.amdgpu_version + "\n"));
  RINGFENCE_TRY(os::MakeDirs(root + "/dev/dri"));
  RINGFENCE_TRY(Put(root + "/dev/kfd", "", 0600));
  for (const SimulatedGpu& gpu : scenario.gpus) {
    if (gpu.is_amd()) {
      RINGFENCE_TRY(PutCard(root, gpu));
      RINGFENCE_TRY(Put(root + "/dev/dri/renderD" + std::to_string(gpu.minor), "", 0600));
    }
  }
  return {};
}

}  // namespace ringfence::gpu

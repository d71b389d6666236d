#include "gpu/amd_sysfs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <span>

#include "gpu/library.h"
#include "gpu/limits.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

constexpr std::size_t kFileBytesMax = 65536;
constexpr std::size_t kNodesMax = 1024;  // of the topology: processors and GPUs
constexpr const char* kTopology = "sys/class/kfd/kfd/topology/nodes";
constexpr const char* kProcesses = "sys/class/kfd/kfd/proc";

// A driver in its own root still runs in this kernel.
std::string KernelPath(const std::string& driver_root, const std::string& path) {
  const std::string beneath = Beneath(driver_root, path);
  return os::Exists(beneath) ? beneath : "/" + path;
}

// The first line, which goes into JSON and to terminals.
Result<std::string> ReadLine(const std::string& path) {
  RINGFENCE_ASSIGN(std::string text, os::ReadText(path, kFileBytesMax));
  text.resize(std::min(text.find('\n'), text.size()));
  text.erase(text.find_last_not_of(" \t\r") + 1);
  if (std::any_of(text.begin(), text.end(), [](char c) { return c < 0x20 || c == 0x7f; })) {
    return Error{Code::kCorrupt, path + " holds unprintable text"};
  }
  return text;
}

std::string ReadLineOr(const std::string& path, const std::string& fallback) {
  const Result<std::string> line = ReadLine(path);
  return line.has_value() && !line->empty() ? *line : fallback;
}

std::optional<std::uint64_t> NumberOf(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(number) : std::nullopt;
}

// "name value" lines.
std::optional<std::uint64_t> Property(const std::string& text, const std::string& name) {
  const std::string wanted = "\n" + name + " ";
  const std::string all = "\n" + text;
  const std::size_t at = all.find(wanted);
  if (at == std::string::npos) {
    return std::nullopt;
  }
  const std::size_t from = at + wanted.size();
  return NumberOf(
      std::string_view(all).substr(from, std::min(all.find('\n', from), all.size()) - from));
}

Result<std::uint32_t> RenderMinor(const std::string& folder) {
  constexpr std::string_view kPrefix = "renderD";
  const auto names = os::ListDir(folder + "/drm");
  std::vector<std::uint64_t> minors;
  for (const std::string& name : names.has_value() ? *names : std::vector<std::string>()) {
    const auto minor = name.starts_with(kPrefix) ? NumberOf(name.substr(kPrefix.size()))
                                                 : std::optional<std::uint64_t>();
    if (minor.has_value() && *minor <= UINT32_MAX) {
      minors.push_back(*minor);
    }
  }
  if (minors.size() != 1) {
    return Error{Code::kFailedPrecondition,
                 folder + "/drm names " + std::to_string(minors.size()) + " render nodes, not one",
                 "check that amdgpu drives the card"};
  }
  return static_cast<std::uint32_t>(minors.front());
}

Status ReadTopology(const std::string& driver_root, AmdCard& card) {
  const std::string nodes = KernelPath(driver_root, kTopology);
  RINGFENCE_ASSIGN(const auto names, os::ListDir(nodes));
  for (const std::string& name : std::span(names).first(std::min(names.size(), kNodesMax))) {
    // The kernel hides nodes of cards that this process may not open.
    const auto text = os::ReadText(nodes + "/" + name + "/properties", kFileBytesMax);
    const auto id = ReadLine(nodes + "/" + name + "/gpu_id");
    if (!text.has_value() || !id.has_value() ||
        Property(*text, "drm_render_minor") != std::uint64_t{card.render_minor}) {
      continue;
    }
    const auto number = NumberOf(*id);
    const std::uint64_t simds = Property(*text, "simd_count").value_or(0);
    const std::uint64_t each = Property(*text, "simd_per_cu").value_or(0);
    const std::uint64_t local_kib = Property(*text, "lds_size_in_kb").value_or(0);
    constexpr std::uint64_t kMost = 1U << 20U;
    if (!number.has_value() || *number == 0 || *number > UINT32_MAX || simds > kMost ||
        local_kib > kMost) {
      return Error{Code::kCorrupt, nodes + "/" + name + " makes no sense"};
    }
    card.kfd_id = static_cast<std::uint32_t>(*number);
    card.compute_units = static_cast<std::uint32_t>(each == 0 ? 0 : simds / each);
    card.local_bytes = (local_kib << 10U) * card.compute_units;
    return {};
  }
  return Error{Code::kNotFound, "the compute driver (KFD) knows no card with render node " +
                                    std::to_string(card.render_minor)};
}

// A process that has opened the compute driver has a folder; what it holds of a card is a file.
Result<std::vector<GpuProcess>> ReadProcesses(const std::string& driver_root,
                                              std::uint32_t kfd_id) {
  std::vector<GpuProcess> processes;
  const std::string folder = KernelPath(driver_root, kProcesses);
  if (!os::Exists(folder)) {
    return processes;
  }
  RINGFENCE_ASSIGN(const auto names, os::ListDir(folder));
  for (const std::string& name : names) {
    const auto pid = NumberOf(name);
    // It may have ended since.
    const auto held = ReadLine(folder + "/" + name + "/vram_" + std::to_string(kfd_id));
    const auto bytes = held.has_value() ? NumberOf(*held) : std::nullopt;
    if (pid.has_value() && *pid <= UINT32_MAX && bytes.value_or(0) > 0 &&
        processes.size() < kProcessesMax) {
      processes.push_back({static_cast<std::uint32_t>(*pid), *bytes});
    }
  }
  return processes;
}

std::string FourDigits(const std::string& path) {
  const std::string text = ReadLineOr(path, "0x0000");  // "0x74a1"
  return text.size() == 6 ? text.substr(2) : "0000";
}

}  // namespace

std::string AmdFolderName(std::uint64_t bdf) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x",
                      static_cast<unsigned>(bdf >> 16U), static_cast<unsigned>(bdf >> 8U) & 0xffU,
                      static_cast<unsigned>(bdf >> 3U) & 0x1fU, static_cast<unsigned>(bdf) & 7U);
  return text.data();
}

bool HasAmdDriver(const std::string& driver_root) {
  return os::Exists(KernelPath(driver_root, kTopology)) &&
         os::Exists(KernelPath(driver_root, "sys/module/amdgpu"));
}

std::vector<std::uint32_t> AmdMinors(const std::string& driver_root) {
  std::vector<std::uint32_t> minors;
  const std::string nodes = KernelPath(driver_root, kTopology);
  const auto names = os::ListDir(nodes);
  for (const std::string& name : names.has_value() ? *names : std::vector<std::string>()) {
    const auto text = os::ReadText(nodes + "/" + name + "/properties", kFileBytesMax);
    const auto minor = text.has_value() ? Property(*text, "drm_render_minor") : std::nullopt;
    if (minor.value_or(0) > 0 && *minor <= UINT32_MAX && minors.size() < kGpusMax) {
      minors.push_back(static_cast<std::uint32_t>(*minor));
    }
  }
  return minors;
}

Result<std::string> AmdDriverVersion(const std::string& driver_root) {
  const std::string path = KernelPath(driver_root, "sys/module/amdgpu/version");
  return os::Exists(path) ? ReadLine(path) : Result<std::string>("in-tree");
}

Result<AmdCard> ReadAmdCard(const std::string& driver_root, const std::string& folder_name) {
  const std::string folder = KernelPath(driver_root, "sys/bus/pci/devices/" + folder_name);
  AmdCard card;
  RINGFENCE_ASSIGN(card.render_minor, RenderMinor(folder));
  RINGFENCE_TRY(ReadTopology(driver_root, card));
  const std::string device = FourDigits(folder + "/device");
  card.pci_device_id = device + FourDigits(folder + "/vendor");
  card.model = ReadLineOr(folder + "/product_name", "AMD GPU " + device);
  card.serial = ReadLineOr(folder + "/serial_number", "");
  card.vbios = ReadLineOr(folder + "/vbios_version", "");
  RINGFENCE_ASSIGN(card.processes, ReadProcesses(driver_root, card.kfd_id));
  return card;
}

}  // namespace ringfence::gpu

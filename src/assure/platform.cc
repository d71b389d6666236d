// Platforms as bulletins write them.

#include <algorithm>
#include <array>

#include "assure/csaf.h"

namespace ringfence::assure {
namespace {

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return out;
}

struct Name {
  std::string_view word;
  unsigned family;
};
constexpr std::array<Name, 30> kNames = {{
    {"linux", kLinux},     {"ubuntu", kLinux},    {"rhel", kLinux},      {"red hat", kLinux},
    {"redhat", kLinux},    {"kvm", kLinux},       {"debian", kLinux},    {"sles", kLinux},
    {"suse", kLinux},      {"centos", kLinux},    {"rocky", kLinux},     {"fedora", kLinux},
    {"jetpack", kLinux},   {"openshift", kLinux}, {"alma", kLinux},      {"dgx os", kLinux},
    {"windows", kWindows}, {"azure", kWindows},   {"hyper-v", kWindows}, {"android", kAndroid},
    {"macos", kMac},       {"mac os", kMac},      {"vmware", kVmware},   {"vsphere", kVmware},
    {"esxi", kVmware},     {"citrix", kXen},      {"xenserver", kXen},   {"xen", kXen},
    {"nutanix", kNutanix}, {"ahv", kNutanix},
}};

std::optional<std::uint32_t> NumberAt(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  std::size_t digits = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && digits < 6; ++at, ++digits) {
    value = value * 10 + static_cast<std::uint32_t>(text[at] - '0');
  }
  return digits > 0 ? std::optional(value) : std::nullopt;
}

// "R535 vGPU 16", "Gaming", "vGPU 19": what stands in brackets at the end.
void ReadLabel(std::string_view label, Platform& platform) {
  const std::string small = Lower(label);
  platform.gaming = small.find("gaming") != std::string::npos;
  for (std::size_t i = 0; i < small.size(); ++i) {
    const bool starts = i == 0 || small[i - 1] == ' ' || small[i - 1] == ',';
    if (starts && small[i] == 'r') {
      if (const auto branch = NumberAt(small, i + 1)) {
        platform.branch = branch;
      }
    }
  }
  if (const std::size_t at = small.find("vgpu"); at != std::string::npos) {
    const std::size_t digit = small.find_first_of("0123456789", at);
    platform.vgpu = digit == std::string::npos ? std::nullopt : NumberAt(small, digit);
  }
}

void ReadReleases(const std::string& small, Platform& platform) {
  const std::size_t at = small.find("windows");
  if (at == std::string::npos) {
    return;
  }
  // "windows 10 and 11", "windows 7 and 8.x", not "windows, linux".
  std::size_t i = at + 7;
  while (i < small.size() && small[i] != ',') {
    if (const auto number = NumberAt(small, i)) {
      platform.releases.push_back(*number);
      while (i < small.size() && small[i] != ' ' && small[i] != ',') {
        ++i;
      }
    } else {
      ++i;
    }
  }
}

}  // namespace

unsigned FamiliesOf(std::string_view platform) {
  const std::string small = Lower(platform);
  unsigned families = 0;
  for (const Name& name : kNames) {
    if (small.find(name.word) != std::string::npos) {
      families |= name.family;
    }
  }
  return families;
}

Platform ReadPlatform(std::string_view text) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  Platform platform;
  platform.text = std::string(text);
  platform.name = platform.text;
  if (text.ends_with(')')) {
    const std::size_t open = text.rfind('(');
    if (open != std::string_view::npos) {
      ReadLabel(text.substr(open + 1, text.size() - open - 2), platform);
      platform.name = std::string(text.substr(0, open));
    }
  }
  platform.families = FamiliesOf(platform.name);
  ReadReleases(Lower(platform.name), platform);
  return platform;
}

}  // namespace ringfence::assure

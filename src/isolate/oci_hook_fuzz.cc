// What ringfence-hook reads: a runtime's state, a container's configuration, mountinfo and cgroup
// texts, leases; and CDI documents, of which root's folder may hold anybody's.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "isolate/cdi_spec.h"
#include "isolate/oci_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringfence;           // NOLINT(google-build-using-namespace)
  using namespace ringfence::isolate;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const std::set<std::uint32_t> majors = {195, 226, 238};
  const auto state = ReadContainerState(text);
  if (state.has_value()) {
    RINGFENCE_CHECK(IsContainerId(state->id) && state->pid > 1);
  }
  const auto config = ReadContainerConfig(text, majors, "/usr/lib/ringfence/ringfence-hook");
  if (config.has_value()) {
    // Whoever asks for anything is refused without a lease.
    RINGFENCE_CHECK(CheckCovered(config->asked, {}).has_value() == config->asked.empty());
  }
  const auto mounts = MountsBeneath(text, "/root");
  if (mounts.has_value()) {
    for (const ContainerMount& mount : *mounts) {
      RINGFENCE_CHECK(!mount.path.empty());
    }
  }
  (void)OwnCgroups(text, "abc");
  (void)GpuMajors(text);
  (void)ParseCdiName(text);
  const auto json = ParseJson(text, kCdiBytesMax);
  if (json.has_value()) {
    const auto document = ReadCdi(*json);
    if (document.has_value()) {
      RINGFENCE_CHECK(!document->devices.empty() && !LeastCdiVersion(*document).empty());
    }
  }
  return 0;
}

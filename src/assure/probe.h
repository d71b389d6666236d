#pragma once

// The probes: each reads one kind of thing from a machine, and judges nothing.

#include <string>
#include <vector>

#include "assure/advisory_match.h"
#include "assure/check_spec.h"
#include "base/time.h"

namespace ringfence::assure {

struct Observation {
  std::string where;  // "/etc/ssh/sshd_config:12", "tcp 0.0.0.0:2375"
  std::string value;
};

struct Observed {
  enum class State { kSeen, kAbsent, kUnknown };
  State state = State::kSeen;
  std::string why;  // for kAbsent and kUnknown
  std::vector<Observation> values;

  static Observed Absent(std::string why) { return {State::kAbsent, std::move(why), {}}; }
  static Observed Unknown(std::string why) { return {State::kUnknown, std::move(why), {}}; }
};

struct NvmlView;

struct ProbeContext {
  const MachineView& machine;
  const AdvisoryIndex* advisories = nullptr;  // null: no bulletins were given
  Timestamp now{};
  const NvmlView* nvml = nullptr;  // null: only what a captured root holds
};

Observed Observe(const ProbeSpec& probe, const ProbeContext& context);

// Shared by the files of probes.
inline constexpr std::size_t kProbeBytesMax = std::size_t{8} << 20U;
std::vector<std::string_view> SplitLines(std::string_view text);
std::string_view Trim(std::string_view text);
std::vector<std::string_view> SplitFields(std::string_view line);
// The text of a file that a probe cannot do without.
struct TextOrSeen {
  std::string text;
  Observed seen;  // when there is none
  bool ok = false;
};
TextOrSeen ReadFor(const ProbeContext& context, const std::string& path);

Observed ObserveFile(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveLines(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveValue(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveJson(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveSshd(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveProcess(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveSocket(const ProbeSpec& probe, const ProbeContext& context);
Observed ObservePackage(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveUnit(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveMount(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveAccount(const ProbeSpec& probe, const ProbeContext& context);
Observed ObservePci(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveKernelArgument(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveKernelConfig(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveNvml(const ProbeSpec& probe, const ProbeContext& context);
Observed ObserveAdvisory(const ProbeSpec& probe, const ProbeContext& context);

}  // namespace ringfence::assure

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

struct Seen {
  enum class State { kSeen, kAbsent, kUnknown };
  State state = State::kSeen;
  std::string why;  // for kAbsent and kUnknown
  std::vector<Observation> values;

  static Seen Absent(std::string why) { return {State::kAbsent, std::move(why), {}}; }
  static Seen Unknown(std::string why) { return {State::kUnknown, std::move(why), {}}; }
};

struct ProbeContext {
  const MachineView& machine;
  const AdvisoryIndex* advisories = nullptr;  // null: no bulletins were given
  Timestamp now{};
};

Seen Observe(const ProbeSpec& probe, const ProbeContext& context);

// Shared by the files of probes.
inline constexpr std::size_t kProbeBytesMax = std::size_t{8} << 20U;
std::vector<std::string_view> SplitLines(std::string_view text);
std::string_view Trim(std::string_view text);
std::vector<std::string_view> SplitFields(std::string_view line);
// The text of a file that a probe cannot do without.
struct TextOrSeen {
  std::string text;
  Seen seen;  // when there is none
  bool ok = false;
};
TextOrSeen ReadFor(const ProbeContext& context, const std::string& path);

Seen ObserveFile(const ProbeSpec& probe, const ProbeContext& context);
Seen ObserveLines(const ProbeSpec& probe, const ProbeContext& context);
Seen ObserveValue(const ProbeSpec& probe, const ProbeContext& context);
Seen ObserveJson(const ProbeSpec& probe, const ProbeContext& context);
Seen ObserveSshd(const ProbeSpec& probe, const ProbeContext& context);
Seen ObserveProcess(const ProbeSpec& probe, const ProbeContext& context);
Seen ObserveSocket(const ProbeSpec& probe, const ProbeContext& context);
Seen ObservePackage(const ProbeSpec& probe, const ProbeContext& context);
Seen ObserveUnit(const ProbeSpec& probe, const ProbeContext& context);
Seen ObserveMount(const ProbeSpec& probe, const ProbeContext& context);
Seen ObserveAccount(const ProbeSpec& probe, const ProbeContext& context);
Seen ObservePci(const ProbeSpec& probe, const ProbeContext& context);
Seen ObserveKernelArgument(const ProbeSpec& probe, const ProbeContext& context);
Seen ObserveKernelConfig(const ProbeSpec& probe, const ProbeContext& context);
Seen ObserveAdvisory(const ProbeSpec& probe, const ProbeContext& context);

}  // namespace ringfence::assure

#include "model/lease.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/encoding.h"

namespace ringfence::model {
namespace {

constexpr std::array<std::string_view, 10> kStateNames = {
    "requested", "admitted", "queued",    "placed", "preparing",
    "active",    "ending",   "scrubbing", "closed", "quarantined",
};

// Bit n: the state numbered n may follow.
constexpr unsigned Bit(LeaseState state) { return 1U << static_cast<unsigned>(state); }

// What may follow `from`. The straight line is the order of the enum; the rest is how a lease
// leaves it: refused, never started, asked to end, or in a state that leaves a slice unsafe.
constexpr unsigned Followers(LeaseState from) {
  switch (from) {
    case LeaseState::kRequested:
      return Bit(LeaseState::kAdmitted) | Bit(LeaseState::kClosed);
    case LeaseState::kAdmitted:
      return Bit(LeaseState::kQueued) | Bit(LeaseState::kPlaced) | Bit(LeaseState::kClosed);
    case LeaseState::kQueued:
      return Bit(LeaseState::kPlaced) | Bit(LeaseState::kClosed);
    case LeaseState::kPlaced:
      return Bit(LeaseState::kPreparing) | Bit(LeaseState::kEnding) | Bit(LeaseState::kClosed) |
             Bit(LeaseState::kQuarantined);
    case LeaseState::kPreparing:
      return Bit(LeaseState::kActive) | Bit(LeaseState::kEnding) | Bit(LeaseState::kQuarantined);
    case LeaseState::kActive:
      return Bit(LeaseState::kEnding) | Bit(LeaseState::kQuarantined);
    case LeaseState::kEnding:
      return Bit(LeaseState::kScrubbing) | Bit(LeaseState::kQuarantined);
    case LeaseState::kScrubbing:
      return Bit(LeaseState::kClosed) | Bit(LeaseState::kQuarantined);
    case LeaseState::kClosed:
      return 0;
    case LeaseState::kQuarantined:
      return Bit(LeaseState::kScrubbing) | Bit(LeaseState::kClosed);
  }
  return 0;
}

Error Wrong(std::string field, std::string message, std::string hint) {
  return Error{Code::kInvalidArgument, std::move(message), std::move(hint), std::move(field)};
}

bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

Status ValidateCommand(const std::vector<std::string>& command) {
  if (command.empty() || command.front().empty()) {
    return Wrong("command", "command is empty", "give the program to run, such as -- nvidia-smi");
  }
  if (command.size() > kCommandWordsMax) {
    return Wrong("command",
                 "command has " + std::to_string(command.size()) + " words, over the limit of " +
                     std::to_string(kCommandWordsMax),
                 "put long argument lists in a file or a script");
  }
  std::size_t bytes = 0;
  for (const std::string& word : command) {
    if (HasNul(word) || !IsUtf8(word)) {
      return Wrong("command", "command has a word with a NUL byte or that is not UTF-8",
                   "write every word of the command as UTF-8 text");
    }
    bytes += word.size() + 1;
  }
  if (bytes > kCommandBytesMax) {
    return Wrong("command",
                 "command has " + std::to_string(bytes) + " bytes, over the limit of " +
                     std::to_string(kCommandBytesMax),
                 "put long arguments in a file or a script");
  }
  return {};
}

bool IsEnvironmentName(std::string_view name) {
  const auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= kEnvironmentNameBytesMax &&
         std::all_of(name.begin(), name.end(), word) && !(name[0] >= '0' && name[0] <= '9');
}

// Why a job may not set this variable; empty where it may.
std::string_view WhyReserved(std::string_view name) {
  if (name.starts_with("LD_")) {
    return "LD_ variables change which libraries the box's own start-up code loads";
  }
  if (name.starts_with("RINGFENCE_")) {
    return "RINGFENCE_ variables are set by Ringfence, so that the job can rely on them";
  }
  if (name == "NVIDIA_VISIBLE_DEVICES" || name == "CUDA_VISIBLE_DEVICES") {
    return "the lease decides which GPUs the job sees";
  }
  return {};
}

Status ValidateEnvironment(const std::vector<std::pair<std::string, std::string>>& environment) {
  if (environment.size() > kEnvironmentMax) {
    return Wrong("env",
                 "env has " + std::to_string(environment.size()) +
                     " variables, over the limit of " + std::to_string(kEnvironmentMax),
                 "pass settings in a file, or fewer of them");
  }
  std::size_t bytes = 0;
  std::set<std::string_view> seen;
  for (const auto& [name, value] : environment) {
    if (!IsEnvironmentName(name)) {
      return Wrong("env", "env has a variable with a name that is not allowed",
                   "names are of A-Z, a-z, 0-9 and '_', do not begin with a digit, and have at "
                   "most " +
                       std::to_string(kEnvironmentNameBytesMax) + " bytes");
    }
    if (const std::string_view why = WhyReserved(name); !why.empty()) {
      return Wrong("env", "env may not set " + name + ": " + std::string(why),
                   "leave " + name + " out");
    }
    if (HasNul(value) || !IsUtf8(value)) {
      return Wrong("env", "env has a value with a NUL byte or that is not UTF-8: " + name,
                   "write the value of " + name + " as UTF-8 text");
    }
    if (!seen.insert(name).second) {
      return Wrong("env", "env sets " + name + " twice", "keep one of the two");
    }
    bytes += name.size() + value.size() + 2;
  }
  if (bytes > kEnvironmentBytesMax) {
    return Wrong("env",
                 "env has " + std::to_string(bytes) + " bytes, over the limit of " +
                     std::to_string(kEnvironmentBytesMax),
                 "pass large settings in a file");
  }
  return {};
}

Status ValidateNumber(std::string_view field, std::uint64_t value, std::uint64_t least,
                      std::uint64_t most, std::string_view unit) {
  if (value >= least && value <= most) {
    return {};
  }
  const std::string range = "from " + std::to_string(least) + " to " + std::to_string(most) +
                            std::string(unit.empty() ? "" : " ") + std::string(unit);
  return Wrong(std::string(field),
               std::string(field) + " is " + std::to_string(value) + ", out of range",
               "ask for a number " + range);
}

Status ValidateSlice(const LeaseRequest& request) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '+';
  };
  if (request.profile.size() > kProfileBytesMax ||
      !std::all_of(request.profile.begin(), request.profile.end(), plain)) {
    return Wrong("profile", "profile is not the name of a MIG profile",
                 "write one such as 1g.18gb; `ringfence mig boards` lists them");
  }
  if (request.gpu_memory_bytes > kGpuMemoryBytesMax) {
    return Wrong("gpu_memory", "gpu_memory is more than any GPU has",
                 "ask for less, such as 16GiB");
  }
  if (request.profile.empty() && request.gpu_memory_bytes == 0) {
    return {};
  }
  if (!request.profile.empty() && request.gpu_memory_bytes != 0) {
    return Wrong("gpu_memory", "a MIG profile says how much memory the slice has",
                 "ask for a profile or for memory, not both");
  }
  if (request.gpus != 1) {
    return Wrong("gpus", "a lease has one slice: CUDA gives a process one MIG device, and no other",
                 "leave --gpus out, and ask for a larger slice, a whole GPU or another lease");
  }
  if (request.probe.has_value()) {
    return Wrong("probe", "a probe's box has whole GPUs", "leave out profile and gpu_memory");
  }
  return {};
}

// The container is another runtime's: whatever is said of it is said there.
Status ValidateHeld(const LeaseRequest& request) {
  const BoxRequest& box = request.box;
  const char* const field = !request.command.empty()       ? "command"
                            : !request.environment.empty() ? "env"
                            : request.probe.has_value()    ? "probe"
                            : !box.image.empty()           ? "image"
                            : !box.mounts.empty()          ? "mounts"
                            : !box.devices.empty()         ? "devices"
                            : !box.exception.empty()       ? "exception"
                            : box.shm_bytes_max + box.tmp_bytes_max + box.huge_bytes_max != 0
                                ? "shm_bytes"
                                : nullptr;
  if (field != nullptr) {
    return Wrong(field,
                 "a lease that is held for another runtime has no command, environment or box",
                 "give them to that runtime, with --device ringfence.dev/lease=LEASE");
  }
  return {};
}

Status ValidateShare(const LeaseRequest& request) {
  if (!request.share.has_value()) {
    return {};
  }
  RINGFENCE_TRY(request.share->Validate());
  if (request.gpus != 1) {
    return Wrong("gpus", "a share is of one GPU, and gpus is " + std::to_string(request.gpus),
                 "leave out --gpus, or ask for whole GPUs without --share");
  }
  if (!request.profile.empty() || request.gpu_memory_bytes != 0) {
    return Wrong("share", "a share is not of a MIG slice, and says itself how much memory it has",
                 "leave out --profile, or --share");
  }
  if (request.probe.has_value()) {
    return Wrong("share", "a probe has whole GPUs", "leave out the share");
  }
  if (request.runtime != LeaseRuntime::kBox) {
    return Wrong("share", "a share needs a box: nothing holds another runtime's containers to it",
                 "use `ringfence run --share`, or hold whole GPUs");
  }
  if (!request.box.exception.empty()) {
    return Wrong("share", "a box with an exception shares its GPU with nobody",
                 "leave out --exception, or ask for a whole GPU");
  }
  return {};
}

}  // namespace

std::string_view Name(LeaseState state) {
  const auto index = static_cast<std::size_t>(state);
  return index < kStateNames.size() ? kStateNames[index] : "unknown";
}

Result<LeaseState> ParseLeaseState(std::string_view text) {
  for (std::size_t i = 0; i < kStateNames.size(); ++i) {
    if (kStateNames[i] == text) {
      return static_cast<LeaseState>(i);
    }
  }
  return Error{Code::kInvalidArgument, "unknown lease state",
               "the states are requested, admitted, queued, placed, preparing, active, ending, "
               "scrubbing, closed, quarantined",
               "state"};
}

std::string_view Name(LeaseRuntime runtime) {
  return runtime == LeaseRuntime::kCdi ? "cdi" : "box";
}

Result<LeaseRuntime> ParseLeaseRuntime(std::string_view text) {
  for (const LeaseRuntime runtime : {LeaseRuntime::kBox, LeaseRuntime::kCdi}) {
    if (Name(runtime) == text) {
      return runtime;
    }
  }
  return Error{Code::kInvalidArgument, "unknown runtime", "the runtimes are box and cdi",
               "runtime"};
}

bool MayFollow(LeaseState from, LeaseState to) { return (Followers(from) & Bit(to)) != 0; }

Status LeaseRequest::Validate() const {
  if (tenant.is_root()) {
    return Wrong("tenant", "a lease needs a tenant; \"/\" is the whole cluster",
                 "name the tenant, such as acme/research/vision");
  }
  RINGFENCE_TRY(ValidateNumber("gpus", gpus, probe.has_value() ? 0 : 1, kGpusPerLeaseMax, ""));
  RINGFENCE_TRY(ValidateSlice(*this));
  if (runtime == LeaseRuntime::kCdi) {
    RINGFENCE_TRY(ValidateHeld(*this));
  } else {
    RINGFENCE_TRY(ValidateCommand(command));
  }
  if (probe.has_value()) {
    RINGFENCE_TRY(probe->Validate());
    if (command != probe->Command() || tenant.text() != probe->Tenant()) {
      return Wrong("probe", "a probe has its own command and tenant",
                   "leave out the command; the tenant is " + std::string(probe->Tenant()));
    }
    if (!environment.empty() || !box.image.empty() || !box.mounts.empty() || !box.devices.empty() ||
        !box.exception.empty()) {
      return Wrong("probe", "a probe's box has no environment, image, mounts, devices or exception",
                   "leave them out");
    }
  }
  RINGFENCE_TRY(ValidateShare(*this));
  RINGFENCE_TRY(ValidateEnvironment(environment));
  RINGFENCE_TRY(box.Validate());
  RINGFENCE_TRY(
      ValidateNumber("memory", memory_bytes_max, kMemoryBytesMin, kMemoryBytesMax, "bytes"));
  RINGFENCE_TRY(
      ValidateNumber("cpu", cpu_millis_max, kCpuMillisMin, kCpuMillisMax, "thousandths of a core"));
  RINGFENCE_TRY(ValidateNumber("pids", pids_max, kPidsMin, kPidsMax, "processes"));
  if (wait > kWaitMax) {
    return Wrong("wait", "wait is longer than " + FormatDuration(kWaitMax),
                 "wait for at most " + FormatDuration(kWaitMax));
  }
  if (timeout < kTimeoutMin || timeout > kTimeoutMax) {
    return Wrong("timeout", "timeout is " + std::to_string(timeout.count()) + " ms, out of range",
                 "ask for a time from " + FormatDuration(kTimeoutMin) + " to " +
                     FormatDuration(kTimeoutMax) + ", such as 2h");
  }
  return {};
}

}  // namespace ringfence::model

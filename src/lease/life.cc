#include "lease/life.h"

#include <charconv>

namespace ringfence::lease {
namespace {

// Longest reason kept; foreign text (a node's) ends here.
constexpr std::size_t kReasonBytesMax = 1024;

constexpr int kTimeoutCode = 124;  // as timeout(1)
constexpr int kOomCode = 137;      // 128 + SIGKILL
constexpr int kFailedCode = 125;   // as the container tools: the job never ran

}  // namespace

Status Step(model::Lease& lease, model::LeaseState to, Timestamp now, std::string_view reason) {
  if (!model::MayFollow(lease.state, to)) {
    return Error{Code::kFailedPrecondition, "lease " + lease.id + " is " +
                                                std::string(Name(lease.state)) + ": " +
                                                std::string(Name(to)) + " cannot follow"};
  }
  lease.state = to;
  if (to == model::LeaseState::kClosed) {  // nobody needs them any more, and they may be secrets
    for (auto& [name, value] : lease.request.environment) {
      value.clear();
    }
  }
  lease.updated = now;
  lease.steps.push_back({to, now, std::string(reason.substr(0, kReasonBytesMax))});
  return {};
}

Result<Ending> ParseEnding(std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string_view word = line.substr(0, space);
  const std::string_view rest = space == std::string_view::npos ? "" : line.substr(space + 1);
  Ending ending{std::string(word), 0, {}};
  if (word == "exited" || word == "signalled") {
    int number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || end != rest.data() + rest.size() || number < 0 || number > 255) {
      return Error{Code::kInvalidArgument, "not an ending: bad number", {}, "ending"};
    }
    ending.exit_code = word == "exited" ? number : 128 + number;
  } else if (word == "timeout") {
    ending.exit_code = kTimeoutCode;
    ending.reason = "its time was over";
  } else if (word == "oom") {
    ending.exit_code = kOomCode;
    ending.reason = "it used more memory than --memory allows";
  } else if (word == "failed") {
    ending.exit_code = kFailedCode;
    ending.reason = std::string(rest.substr(0, kReasonBytesMax));
  } else {
    return Error{Code::kInvalidArgument, "not an ending", {}, "ending"};
  }
  return ending;
}

void Hold(model::Gpu& gpu, const model::Lease& lease) {
  gpu.state = model::GpuState::kLeased;
  gpu.lease = lease.id;
  gpu.tenant = lease.request.tenant.text();
  gpu.reason.clear();
}

void Share(model::Gpu& gpu) {
  gpu.state = model::GpuState::kShared;
  gpu.lease.clear();
  gpu.tenant.clear();
  gpu.reason.clear();
}

void Dirty(model::Gpu& gpu, Timestamp now, std::string_view reason) {
  gpu.state = model::GpuState::kDirty;
  gpu.reason = std::string(reason.substr(0, kReasonBytesMax));
  gpu.dirty_since = now;
}

void Free(model::Gpu& gpu, std::string_view receipt) {
  gpu.state = model::GpuState::kFree;
  gpu.lease.clear();
  gpu.tenant.clear();
  gpu.reason.clear();
  gpu.last_receipt = std::string(receipt);
  if (!gpu.fault.empty()) {  // clean, but not to be trusted
    Quarantine(gpu, gpu.fault);
  }
}

void Quarantine(model::Gpu& gpu, std::string_view reason) {
  gpu.state = model::GpuState::kQuarantined;
  gpu.reason = std::string(reason.substr(0, kReasonBytesMax));
}

}  // namespace ringfence::lease

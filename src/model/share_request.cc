#include "model/share_request.h"

namespace ringfence::model {

Status ShareRequest::Validate() const {
  if (isolation != IsolationClass::kTime && isolation != IsolationClass::kMps) {
    return Error{Code::kInvalidArgument,
                 "share.class is " + std::string(Name(isolation)) + ", which is no share of a GPU",
                 "ask for time or mps; whole GPUs are leased without a share", "share.class"};
  }
  if (memory_bytes < kShareBytesMin || memory_bytes > kShareBytesMax) {
    return Error{Code::kInvalidArgument,
                 "share.memory_bytes is " + std::to_string(memory_bytes) + ", out of range",
                 "say how much of the GPU's memory the job needs, such as --gpu-memory 16GiB",
                 "share.memory_bytes"};
  }
  if (threads_percent != 0 && isolation != IsolationClass::kMps) {
    return Error{Code::kInvalidArgument,
                 "share.threads_percent goes with the class mps alone: jobs that take turns have "
                 "all threads in theirs",
                 "leave it out", "share.threads_percent"};
  }
  if (threads_percent > 100) {
    return Error{Code::kInvalidArgument,
                 "share.threads_percent is " + std::to_string(threads_percent) + ", out of range",
                 "ask for 1 to 100", "share.threads_percent"};
  }
  return {};
}

std::string_view CapEnforcedBy(IsolationClass isolation) {
  if (isolation == IsolationClass::kMps) {
    return "enforced by MPS";
  }
  if (isolation == IsolationClass::kMig) {
    return "enforced by MIG";
  }
  return isolation == IsolationClass::kTime ? "watched through NVML, ended on breach" : "";
}

}  // namespace ringfence::model

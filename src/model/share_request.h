#pragma once

// A share of a GPU that a lease asks for instead of a whole one. Part of LeaseRequest.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/isolation.h"

namespace ringfence::model {

inline constexpr std::uint64_t kShareBytesMin = std::uint64_t{1} << 20U;
inline constexpr std::uint64_t kShareBytesMax = std::uint64_t{1} << 44U;

struct ShareRequest {
  IsolationClass isolation = IsolationClass::kTime;  // kTime or kMps
  std::uint64_t memory_bytes = 0;                    // at most so much of the GPU's memory
  std::uint32_t threads_percent = 0;                 // of kMps; 0: no limit

  Status Validate() const;
  bool operator==(const ShareRequest&) const = default;
};

// Who sees to it that a share's memory stays below its cap, for people.
std::string_view CapEnforcedBy(IsolationClass isolation);

}  // namespace ringfence::model

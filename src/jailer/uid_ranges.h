#pragma once

// Which range of user ids belongs to which tenant, for good: what a box of one tenant left behind
// under some id can never be a box's of another. One file, "uids", a line for each range:
// "SLOT TENANT\n", appended.

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/result.h"
#include "os/file.h"

namespace ringfence::jailer {

// One less than there are: the last belongs to probes (isolate/walls_away.h).
inline constexpr unsigned kSlotsMax = 16383;

// One thread.
class UidRanges {
 public:
  static Result<UidRanges> Open(const std::string& folder);

  // A range of this tenant that is not in `busy`; a new one if it has none, which is durably its
  // own when this returns. kExhausted when there is none left.
  Result<unsigned> Take(const std::string& tenant, const std::set<unsigned>& busy);

 private:
  explicit UidRanges(os::AppendFile file) : file_(std::move(file)) {}
  os::AppendFile file_;
  std::uint64_t bytes_ = 0;  // of whole lines
  bool torn_ = false;        // more may be behind them: of a line that was never answered for
  std::map<unsigned, std::string> owners_;
};

}  // namespace ringfence::jailer

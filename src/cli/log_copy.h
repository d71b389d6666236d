#pragma once

// A copy of the audit log, fetched file by file, for the offline verifier.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/api.h"

namespace ringfence::cli {

inline constexpr std::uint64_t kLogEntriesMax = std::uint64_t{1} << 40U;

// Every file of a C2SP tlog-tiles log of `size` entries but the checkpoint: "tile/0/000",
// "tile/0/x001/067.p/5", "tile/entries/000", ...
std::vector<std::string> LogFiles(std::uint64_t size);

// Fetches the checkpoint and every file it needs into `folder`. The log may grow meanwhile.
Status CopyLog(Api& api, const std::string& folder,
               const std::function<void(std::size_t done, std::size_t total)>& progress);

}  // namespace ringfence::cli

#pragma once

// What jobs print: chunks of a lease, counted from 1, up to a limit; what is beyond it is counted.

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "store/database.h"

namespace ringfence::store {

inline constexpr std::int64_t kOutputBytesMax = std::int64_t{64} << 20U;  // of a lease
inline constexpr std::size_t kOutputChunkBytesMax = 256 * 1024;
inline constexpr std::int64_t kOutputPageBytesMax = 256 * 1024;

struct OutputChunk {
  bool is_error = false;  // standard error
  Bytes data;
};

struct OutputPage {
  std::vector<OutputChunk> chunks;
  std::int64_t next = 0;     // pass it back to go on reading
  bool at_end = false;       // nothing more is there now
  std::int64_t dropped = 0;  // bytes beyond the limit, in all
};

// `first` is the number of the first chunk. Those that were stored before are passed over; a gap is
// kFailedPrecondition.
Status AppendOutput(Connection& db, const std::string& lease, std::int64_t first,
                    const std::vector<OutputChunk>& chunks, Timestamp now);
// Chunks after number `after`.
Result<OutputPage> ReadOutput(Connection& db, const std::string& lease, std::int64_t after);
// Drops the output of a few closed leases that printed nothing since `before`. True when there may
// be more of them.
Result<bool> ForgetOutput(Connection& db, Timestamp before);

}  // namespace ringfence::store

#pragma once

// What jobs print, kept in a file a lease: frames of [sequence u32][stream u8][length u32][bytes].
// Not audit: it is bounded, and a torn tail after a crash is dropped and sent again.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "os/file.h"

namespace ringfence::server {

inline constexpr std::uint64_t kOutputBytesMax = std::uint64_t{64} << 20U;
inline constexpr std::size_t kOutputPageBytesMax = 256 * 1024;
inline constexpr std::size_t kOutputFrameBytesMax = 256 * 1024;

struct OutputChunk {
  bool is_error = false;  // standard error
  Bytes data;
};

struct OutputPage {
  std::vector<OutputChunk> chunks;
  std::uint64_t next = 0;     // where to go on reading
  bool at_end = false;        // nothing more is there now
  std::uint64_t dropped = 0;  // bytes beyond the limit, in all
};

// Any thread.
class OutputStore {
 public:
  explicit OutputStore(std::string folder) : folder_(std::move(folder)) {}

  // `sequence` counts a lease's chunks from 1. One that was stored before is passed over; one that
  // leaves a gap is kFailedPrecondition, and the sender goes back to `expected` in the message.
  Status Append(const std::string& lease, std::uint32_t sequence, const OutputChunk& chunk);
  Result<OutputPage> Read(const std::string& lease, std::uint64_t from);
  // Nothing more will be appended.
  void Close(const std::string& lease);

 private:
  struct Open {
    os::AppendFile file;
    std::uint32_t sequence = 0;  // of the last frame
    std::uint64_t bytes = 0;     // of the file
    std::uint64_t dropped = 0;
  };
  Result<Open*> Find(const std::string& lease);
  std::string PathOf(const std::string& lease) const { return folder_ + "/" + lease + ".log"; }

  const std::string folder_;
  std::mutex mutex_;
  std::map<std::string, Open> open_;
};

}  // namespace ringfence::server

#pragma once

// What a node has to tell and the server has not taken yet: numbered records on disk, bounded in
// size. What does not fit any more is dropped from the old end, and a record says so.
//
// A folder with `epoch` (which spool this is) and segments named after their first record, each a
// line for each record: 8 hexadecimal digits over the rest, a space, the sequence number, a space,
// the record's JSON. docs/formats/telemetry.md.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "os/file.h"

namespace ringfence::sense {

inline constexpr std::size_t kRecordBytesMax = 64 * 1024;

struct SpooledRecord {
  std::uint64_t sequence = 0;
  std::string json;
};

// One thread at a time.
class Spool {
 public:
  struct Options {
    std::string folder;
    std::uint64_t bytes_max = std::uint64_t{16} << 20U;
    std::uint64_t segment_bytes_max = std::uint64_t{256} << 10U;
  };
  // Takes up what an earlier process left, as far as it is whole; a gap record tells of the rest.
  static Result<Spool> Open(Options options);

  // Returns once the record would survive the end of this process (not a power cut: Sync). What
  // cannot be written is counted, and told of by a gap record as soon as one can be.
  Status Append(JsonObject record, Timestamp now);
  Status Sync();

  // The oldest records that were not acknowledged, in order. What turns out to be damaged is
  // dropped, with its gap record.
  Result<std::vector<SpooledRecord>> Peek(std::size_t records_max, std::size_t bytes_max,
                                          Timestamp now);
  // The server has everything before `next`. What it cannot know of is passed over.
  Status Acknowledge(std::uint64_t next);

  const std::string& epoch() const { return epoch_; }
  std::uint64_t next() const { return next_; }  // the number of the next record
  std::uint64_t waiting() const { return next_ - first_; }
  std::uint64_t dropped() const { return dropped_; }  // since it was opened
  std::uint64_t bytes() const;

 private:
  struct Segment {
    std::uint64_t first = 0;
    std::uint64_t bytes = 0;
  };

  explicit Spool(Options options) : options_(std::move(options)) {}
  std::string PathOf(const Segment& segment) const;
  Status TakeUp();
  Status Write(JsonObject record, Timestamp now);
  Status BeginSegment();
  Status DropFront(const std::string& why, Timestamp now);
  Status RemoveFront();

  Options options_;
  std::string epoch_;
  std::deque<Segment> segments_;
  std::optional<os::AppendFile> file_;  // the last segment
  std::uint64_t next_ = 1;
  std::uint64_t first_ = 1;  // the oldest that was not acknowledged
  std::uint64_t dropped_ = 0;
  std::uint64_t unwritten_ = 0;  // not told of yet
  std::string unwritten_why_;
};

// {"kind":"gap","dropped":N,"why":...}
JsonObject GapRecord(std::uint64_t dropped, const std::string& why);

}  // namespace ringfence::sense

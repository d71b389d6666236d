#pragma once

// Events that came together, as one row of the database: packed, compressed, and numbered by their
// place. A block is the byte 1, then one zstd frame (with its content's size and checksum) of
// the events in order. Each is eight numbers of four bytes, little-endian (class, where in the JSON
// its number belongs, and the lengths of log, tenant, lease, node, principal and GPUs), the length
// of the JSON and the time in milliseconds of eight bytes each, then those texts and the JSON. GPUs
// are separated by blanks.

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"

namespace ringfence::store {

struct EventRow {
  std::int64_t seq = 0;
  Timestamp time;
  std::int64_t class_uid = 0;
  std::string log;
  std::string tenant;
  std::string lease;
  std::string node;
  std::string principal;
  std::vector<std::string> gpus;
  std::string event;  // its JSON
};

inline constexpr std::size_t kBlockEventsMax = 1024;

// The JSON of an event that was made before its number is known says 0; this puts it right.
void NumberEvent(EventRow& row, std::int64_t number);

// At most kBlockEventsMax events, none of them numbered yet.
Bytes PackEvents(const std::vector<EventRow>& rows);
// kCorrupt for what PackEvents never makes. The first event gets the number `first`.
Result<std::vector<EventRow>> UnpackEvents(ByteView block, std::int64_t first);

// " a b ": each name between blanks, so that one of them can be looked for.
std::string Spaced(const std::vector<std::string>& names);
std::vector<std::string> Unspaced(std::string_view text);

}  // namespace ringfence::store

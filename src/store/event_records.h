#pragma once

// Events as detection sees them, numbered in the order they were stored, and how far detection is
// with them. Bounded by age and by size.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "store/database.h"
#include "store/event_block.h"

namespace ringfence::store {

// Of all servers on a database together.
struct Detection {
  std::int64_t audit = 0;                // the next audit entry to make events of
  std::int64_t next = 0;                 // the number of the next event
  std::int64_t evaluated = 0;            // the next event that rules have to see
  std::int64_t bytes = 0;                // of all events
  std::vector<std::string> silent = {};  // nodes that were said to be
};
// Where there is none yet, detection begins with what comes from now on.
Result<Detection> SettleDetection(Connection& db);
Result<Detection> GetDetection(Connection& db);  // kNotFound before it was settled
Status PutDetection(Connection& db, const Detection& detection);

// Adds it under the number detection.next, which the event must already name; counts it there, and
// leaves putting that to the caller.
Status InsertEvent(Connection& db, Detection& detection, EventRow row);

// Events that came together, made ready before the transaction that adds them: what takes time is
// done outside of it. They are numbered when they are added (see NumberEvent).
class EventBatch {
 public:
  EventBatch() = default;
  explicit EventBatch(std::vector<EventRow> rows);
  std::int64_t size() const { return size_; }

 private:
  friend Status InsertEvents(Connection& db, Detection& detection, const EventBatch& batch);
  struct Block {
    std::int64_t count = 0;
    std::int64_t time_min_ms = 0;
    std::int64_t time_max_ms = 0;
    std::string names;
    Bytes block;
  };
  std::int64_t size_ = 0;
  std::vector<EventRow> few_;  // too few to be worth a block
  std::vector<Block> blocks_;
};
// As InsertEvent, for all of them.
Status InsertEvents(Connection& db, Detection& detection, const EventBatch& batch);

struct EventFilter {
  std::optional<Timestamp> since;  // at or after
  std::optional<Timestamp> until;  // before
  std::int64_t class_uid = 0;      // 0: any
  std::string log;
  std::string tenant;  // this and below
  std::string lease;
  std::string node;
  std::string gpu;
  std::string principal;
  bool newest_first = false;
  std::int64_t from = 0;  // oldest first: at or after; newest first: before (0: from the newest)
  std::int64_t limit = 100;
};
Result<std::vector<EventRow>> ListEvents(Connection& db, const EventFilter& filter);
// Those of these numbers that are still there, oldest first.
Result<std::vector<EventRow>> EventsNumbered(Connection& db,
                                             const std::vector<std::int64_t>& numbers);

struct EventLimits {
  Timestamp keep_after;
  std::int64_t bytes_max = 0;
};
// Drops the oldest beyond the limits, a bounded number a call; true: there may be more.
Result<bool> ForgetEvents(Connection& db, const EventLimits& limits);

}  // namespace ringfence::store

#pragma once

// Feeds of known-bad indicators as they are kept. A feed comes in parts, which nobody sees until
// the last is there and the feed is put in force: then it replaces the one of the same name.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "store/database.h"

namespace ringfence::store {

struct IntelFeed {
  std::string name;
  std::string upload;  // which parts are its
  std::string source;  // the file that it was read from
  std::string by;
  Timestamp time;
  std::int64_t parts = 0;
  std::int64_t indicators = 0;
  // Stored events that it has yet to be held against: from, up to. -1: nobody has begun.
  std::int64_t hunt_from = -1;
  std::int64_t hunt_until = -1;
};

// The same part again replaces it. `feed.indicators` are those of the part.
Status PutIntelPart(Connection& db, const IntelFeed& feed, std::int64_t part,
                    const std::string& text);
// Counts its indicators. kConflict when parts are missing.
Status PutIntelFeed(Connection& db, IntelFeed& feed);
Result<std::vector<IntelFeed>> ListIntelFeeds(Connection& db);  // by name
Result<std::vector<std::string>> IntelPartsOf(Connection& db, const IntelFeed& feed);
Status RemoveIntelFeed(Connection& db, const std::string& name);  // kNotFound
// Nothing when the feed has been replaced meanwhile.
Status SetHunted(Connection& db, const IntelFeed& feed);
// Drops parts from before a time that never came into force.
Status ForgetIntelParts(Connection& db, Timestamp before);

}  // namespace ringfence::store

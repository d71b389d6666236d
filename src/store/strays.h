#pragma once

// Boxes that a node holds and the records do not want. They are kept with the records, as the node
// may tell one server of them and take its orders from another.

#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace ringfence::store {

struct Strays {
  bool held = false;                // there are some, or it is not known yet
  std::vector<std::string> to_end;  // those that the node must be told to end
  bool operator==(const Strays&) const = default;
};

Result<Strays> GetStrays(Connection& db, const std::string& node);
// Writes only what differs from before.
Status SetStrays(Connection& db, const std::string& node, const Strays& strays);

}  // namespace ringfence::store

#pragma once

// A lease that attacks: its box runs one of the probes that are shipped, never anything else, so
// that it may also be a box with a wall taken away, in which the probe must get through.

#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::model {

inline constexpr const char* kProbePath = "/run/ringfence/probe";  // in the box
// Whose such leases are. No policy need name them; each has its own user ids, as every tenant.
inline constexpr const char* kProofVictim = "ringfence-proof-victim";
inline constexpr const char* kProofAttacker = "ringfence-proof-attacker";
inline constexpr std::size_t kProbeFactsMax = 32;
inline constexpr std::size_t kProbeFactBytesMax = 1024;
inline constexpr std::size_t kWallsMax = 32;

struct ProbeRequest {
  std::string node;  // where
  std::string name;
  std::string role;                     // "victim" or "attack"
  std::vector<std::string> walls_away;  // by name; usually none
  std::vector<std::string> facts;       // KEY=VALUE: what the victim said, or is to plant

  Status Validate() const;
  std::vector<std::string> Command() const;
  const char* Tenant() const { return role == "victim" ? kProofVictim : kProofAttacker; }
};

}  // namespace ringfence::model

#pragma once

// What a jailer saw go wrong between itself and its agent, signed, for the server's audit log.

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "crypto/ed25519.h"

namespace ringfence::isolate {

inline constexpr std::string_view kIncidentType = "application/vnd.ringfence.incident+json";
inline constexpr std::size_t kIncidentDetailBytesMax = 512;

struct Incident {
  std::string node;
  Timestamp time;
  std::string what;           // a constant word: "malformed_request", "out_of_turn", ...
  std::string detail;         // for people; never bytes of the request itself
  std::uint64_t dropped = 0;  // incidents before this one that found no room
};

std::string SealIncident(const crypto::SigningKey& jailer, const Incident& incident);
Result<Incident> OpenIncident(const crypto::PublicKey& jailer, std::string_view envelope);

}  // namespace ringfence::isolate

#pragma once

// How a probe's box ended, signed by the jailer that built it: which probe, which walls were taken
// away, and the probe's own verdict. The agent carries it and cannot change a held into a leaked,
// or back.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "crypto/ed25519.h"

namespace ringfence::isolate {

inline constexpr std::string_view kProofType = "application/vnd.ringfence.proof+json";
// A probe's own verdict is its exit code; any other means that it could not be tried.
inline constexpr int kProbeHeld = 0;
inline constexpr int kProbeLeaked = 10;
inline constexpr int kProbeCannotTry = 20;

struct Proof {
  std::string node;
  std::string lease;
  std::vector<std::string> command;
  std::vector<std::string> walls_away;
  std::string ending;  // the box's: "exited 10", "timeout"
  Timestamp time;
};

std::string SealProof(const crypto::SigningKey& jailer, const Proof& proof);
Result<Proof> OpenProof(const crypto::PublicKey& jailer, std::string_view envelope);

}  // namespace ringfence::isolate

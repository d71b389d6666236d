#pragma once

// What the server lets a node's jailer do for one lease, signed; and what the jailer says it did,
// signed. Both travel as DSSE envelopes through the agent, which can read but not forge them.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "crypto/ed25519.h"
#include "isolate/grant_box.h"

namespace ringfence::isolate {

inline constexpr std::string_view kGrantType = "application/vnd.ringfence.grant+json";
inline constexpr std::string_view kReceiptType = "application/vnd.ringfence.receipt+json";

struct Grant {
  std::string lease;
  std::string node;
  std::string tenant;
  std::string principal;
  std::vector<std::string> gpus;  // UUIDs; may be empty for a box without a GPU
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  std::uint64_t memory_bytes_max = 0;
  std::uint32_t cpu_millis_max = 0;  // thousandths of a core
  std::uint32_t pids_max = 0;
  GrantBox box;
  Timestamp issued;
  Timestamp start_before;  // not startable later: bounds replay after the jailer lost its records
  Milliseconds runtime_max{};
};

std::string SealGrant(const crypto::SigningKey& server, const Grant& grant);
// kPermissionDenied for a wrong signature, kInvalidArgument for a grant that breaks a limit.
Result<Grant> OpenGrant(const crypto::PublicKey& server, std::string_view envelope);

// A scrub that reached less of a card than this says too little: somebody else held its memory.
inline constexpr std::uint64_t kReachedPercentLeast = 90;

struct GpuScrub {
  std::string uuid;
  std::uint64_t memory_bytes = 0;    // what the card has
  std::uint64_t reached_bytes = 0;   // what could be allocated, overwritten and read back
  std::uint64_t residue_bytes = 0;   // found not zero before anything was written
  std::uint64_t mismatch_bytes = 0;  // read back other than written; not 0 means not scrubbed
  std::uint64_t duration_us = 0;
};

struct Receipt {
  std::string id;
  std::string node;
  std::string lease;  // empty: a scrub before the GPU's first lease, or by an operator
  Timestamp time;
  std::vector<GpuScrub> gpus;
  std::string driver_version;
  std::string kernel_driver;   // first line of the driver's version file
  std::string library_digest;  // "sha256:..." of the CUDA driver library that did it
  bool simulated = false;
  std::vector<std::string> not_covered;  // what the scrub cannot reach, for people
};

std::string SealReceipt(const crypto::SigningKey& jailer, const Receipt& receipt);
Result<Receipt> OpenReceipt(const crypto::PublicKey& jailer, std::string_view envelope);
Json ReceiptToJson(const Receipt& receipt);

}  // namespace ringfence::isolate

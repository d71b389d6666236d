#pragma once

// What the server lets a node's jailer do for one lease, signed; and what the jailer says it did,
// signed. Both travel as DSSE envelopes through the agent, which can read but not forge them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "crypto/ed25519.h"
#include "gpu/scrub.h"
#include "isolate/grant_box.h"
#include "isolate/network_grant.h"
#include "model/lease.h"

namespace ringfence::isolate {

inline constexpr std::string_view kGrantType = "application/vnd.ringfence.grant+json";
inline constexpr std::string_view kReceiptType = "application/vnd.ringfence.receipt+json";

struct Grant {
  std::string lease;
  std::string node;
  std::string tenant;
  std::string principal;
  std::vector<std::string> gpus;             // UUIDs; may be empty for a box without a GPU
  std::optional<model::ShareRequest> share;  // of the one GPU; none: all of each
  model::LeaseRuntime runtime = model::LeaseRuntime::kBox;
  std::vector<std::string> command;  // none with kCdi
  std::vector<std::pair<std::string, std::string>> environment;
  std::uint64_t memory_bytes_max = 0;
  std::uint32_t cpu_millis_max = 0;  // thousandths of a core
  std::uint32_t pids_max = 0;
  GrantBox box;
  Timestamp issued;
  Timestamp start_before;  // not startable later: bounds replay after the jailer lost its records
  Milliseconds runtime_max{};
  std::optional<NetworkGrant> network;  // none: the box has no network at all
};

// Those of these UUIDs that are MIG slices, with commas between.
std::string SlicesOf(const std::vector<std::string>& gpus);

std::string SealGrant(const crypto::SigningKey& server, const Grant& grant);
// kPermissionDenied for a wrong signature, kInvalidArgument for a grant that breaks a limit.
Result<Grant> OpenGrant(const crypto::PublicKey& server, std::string_view envelope);

// A scrub that reached less of a card than this says too little: somebody else held its memory.
inline constexpr std::uint64_t kReachedPercentLeast = 90;

using GpuScrub = gpu::ScrubResult;

// Receipts of format 1 have neither what the chip keeps nor passes, kernels, pattern and what is
// covered; they stay readable, and are shown as they were written.
inline constexpr int kReceiptFormat = 2;
inline constexpr int kShareReceiptFormat = 3;  // of leases that had a share of a GPU
inline constexpr std::size_t kSharersMax = 1024;

// Of a lease that had a share of a GPU.
struct ReceiptShare {
  std::string gpu;
  // Leases that still have shares of it: then nothing was scrubbed. With none left all of it was.
  std::uint32_t neighbours = 0;
  std::vector<std::string> leases;  // that were on it since it was last scrubbed
};

struct Receipt {
  int format = kReceiptFormat;
  std::string id;
  std::string node;
  std::string lease;  // empty: a scrub before the GPU's first lease, or by an operator
  Timestamp time;
  std::vector<GpuScrub> gpus;
  std::string driver_version;
  std::string kernel_driver;   // first line of the driver's version file
  std::string library_digest;  // "sha256:..." of the CUDA driver library that did it
  std::string kernels_digest;  // "sha256:..." of the kernels that it ran
  std::string pattern;         // what the memory was overwritten with
  bool simulated = false;
  std::vector<std::string> covered;      // what the scrub reached, for people
  std::vector<std::string> not_covered;  // what it did not
  std::optional<ReceiptShare> share;     // of format 3
};

std::string SealReceipt(const crypto::SigningKey& jailer, const Receipt& receipt);
Result<Receipt> OpenReceipt(const crypto::PublicKey& jailer, std::string_view envelope);
Json ReceiptToJson(const Receipt& receipt);

}  // namespace ringfence::isolate

#pragma once

// What the server lets a node's jailer do to the MIG of one GPU, signed; and what became of it,
// signed by the jailer. Both travel as DSSE envelopes through the agent.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "crypto/ed25519.h"
#include "gpu/mig_live.h"

namespace ringfence::isolate {

inline constexpr std::string_view kMigOrderType = "application/vnd.ringfence.mig-order+json";
inline constexpr std::string_view kMigReportType = "application/vnd.ringfence.mig-report+json";

struct MigOrder {
  std::string id;
  std::int64_t serial = 0;  // rises with each order for a GPU: an older one is never obeyed again
  std::string node;
  std::string gpu;  // UUID
  std::string aim;  // gpu::ParseMigAim
};
std::string SealMigOrder(const crypto::SigningKey& server, const MigOrder& order);
// kPermissionDenied for a wrong signature, kInvalidArgument for an order that makes no sense.
Result<MigOrder> OpenMigOrder(const crypto::PublicKey& server, std::string_view envelope);

struct MigReport {
  std::string order;
  std::int64_t serial = 0;
  std::string node;
  std::string gpu;
  Timestamp time;
  std::string reason;                // why the GPU is not what was ordered; empty: it is
  std::vector<std::string> touched;  // UUIDs of what was made or removed, or might have been
  std::optional<gpu::LiveMig> live;  // what is there now; none: it could not be read
};
std::string SealMigReport(const crypto::SigningKey& jailer, const MigReport& report);
Result<MigReport> OpenMigReport(const crypto::PublicKey& jailer, std::string_view envelope);

}  // namespace ringfence::isolate

#pragma once

// One audit entry: who did what, to whom, whether it was allowed and how it went. Its bytes are
// canonical JSON (RFC 8785), so that one value has one form and one hash.

#include <string>
#include <string_view>
#include <vector>

#include "audit/log.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/result.h"
#include "base/time.h"

namespace ringfence::audit {

inline constexpr std::size_t kEntryGpusMax = 256;
inline constexpr std::size_t kEntryDetailBytesMax = 16 * 1024;
inline constexpr std::size_t kEntryDetailDepthMax = 16;

struct Actor {
  std::string principal;  // "alice@acme", "node-3"
  std::string kind;       // "user", "service", "node", "system"
  std::string via;        // id of the token, or fingerprint of the certificate
  std::string address;    // where from
  bool operator==(const Actor&) const = default;
};

// All members are written, empty ones too.
struct Entry {
  Timestamp time;
  std::string id;  // random, given by the caller: the same action is never logged twice
  Actor actor;
  std::string action;  // "lease.request": small letters, digits, '_', and one '.' or more
  std::string tenant;
  std::string lease;
  std::string node;
  std::vector<std::string> gpus;
  std::string decision;  // "allow", "deny" or ""
  std::string decision_reason;
  std::string result;  // "ok", "error" or ""
  JsonObject detail;   // small; whole numbers only
  std::string policy;  // digest of the policy that decided

  // kInvalidArgument, with the field, when one is too long or not what its comment says. Nothing
  // is ever cut to fit.
  Result<Bytes> ToBytes() const;
  // Only what ToBytes writes: an unknown or missing field, another order, a space more are refused.
  static Result<Entry> Parse(ByteView bytes);

  bool operator==(const Entry&) const = default;
};

}  // namespace ringfence::audit

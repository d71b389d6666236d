#pragma once

// A box that shares the host's network or sees the host's processes. There is no way to ask
// box_config for one but the token HostAccess, and no way to have that but a grant that the server
// signed, with an exception of the policy in it whose time is now. "Privileged" has no token: no
// exception takes a box's capabilities, seccomp, Landlock, device rules or user ids away, as a box
// without those is the host's root.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "crypto/ed25519.h"

namespace ringfence::isolate {

class HostAccess {
 public:
  // None: the grant has no exception. kPermissionDenied: not in force at `now`; and every error of
  // OpenGrant.
  static Result<std::optional<HostAccess>> Open(const crypto::PublicKey& server,
                                                std::string_view envelope, Timestamp now);

  bool network() const { return network_; }
  bool pids() const { return pids_; }
  const std::string& lease() const { return lease_; }  // for no other
  const std::string& name() const { return name_; }
  Timestamp until() const { return until_; }

 private:
  HostAccess() = default;
  std::string lease_;
  std::string name_;
  bool network_ = false;
  bool pids_ = false;
  Timestamp until_;
};

}  // namespace ringfence::isolate

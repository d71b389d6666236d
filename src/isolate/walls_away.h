#pragma once

// A box with walls taken away, so that an attack's control can show that the attack works. The only
// thing that such a box ever runs is our own probe program, and there is no way to say it but the
// token WallsAway, which is made for that program alone.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::isolate {

inline constexpr const char* kBoxProbePath = "/run/ringfence/probe";  // in the box

// Each is one thing that stands between a job and the rest of its node. What it means to be
// without it is in walls_away.cc's table, and done in box_config.cc and box.cc.
enum class Wall {
  kDeviceNodes,
  kDeviceRules,
  kSeccomp,
  kLandlock,
  kCapabilities,
  kNoNewPrivileges,
  kUserIds,
  kUserNamespace,
  kPidNamespace,
  kIpcNamespace,
  kNetworkNamespace,
  kUtsNamespace,
  kCgroupNamespace,
  kMaskedPaths,
  kMountFlags,
  kReadOnlyRoot,
  kHostRoot,
  kOwnFiles,
  kDescriptors,
  kEnvironment,
  kScrub,
  kGpuContext,
};

std::vector<Wall> AllWalls();
std::string_view Name(Wall wall);  // "user_ids"
// A sentence's end for people: "the box has ... ".
std::string_view WithoutIt(Wall wall);
std::optional<Wall> ParseWall(std::string_view name);

// Boxes without kUserIds all have this range of user ids, the last one of a node.
inline constexpr unsigned kSharedUidSlot = 16383;

class WallsAway {
 public:
  // kPermissionDenied unless the command is our probe in the box; kInvalidArgument for a name that
  // is no wall's, or is there twice, or when there is none.
  static Result<WallsAway> ForProbe(const std::vector<std::string>& command,
                                    const std::vector<std::string>& names);

  bool Has(Wall wall) const;
  const std::vector<Wall>& walls() const { return walls_; }

 private:
  explicit WallsAway(std::vector<Wall> walls) : walls_(std::move(walls)) {}
  std::vector<Wall> walls_;
};

}  // namespace ringfence::isolate

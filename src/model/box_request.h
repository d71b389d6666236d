#pragma once

// What a lease's request says of its box, besides GPUs and command. Part of LeaseRequest.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::model {

inline constexpr std::size_t kMountsMax = 16;
inline constexpr std::size_t kMountNameBytesMax = 64;
inline constexpr std::size_t kMountPathBytesMax = 256;
inline constexpr std::size_t kImageBytesMax = 512;
inline constexpr std::size_t kExceptionBytesMax = 64;
inline constexpr std::uint64_t kBoxBytesMin = std::uint64_t{64} << 10U;
inline constexpr std::uint64_t kBoxBytesMax = std::uint64_t{4} << 40U;

struct MountRequest {
  std::string name;
  std::string path;
  bool writable = false;
  bool operator==(const MountRequest&) const = default;
};
// A name of small letters, digits and '-'; a path in the box that is none of the box's own folders.
Status CheckMount(const MountRequest& mount);

// Devices that move bytes past the firewall: verbs of InfiniBand and RoCE, and the channels by
// which nodes share memory over NVLink.
inline constexpr std::string_view kFabricDevices[] = {"rdma", "imex"};
bool IsFabricDevice(std::string_view name);

struct BoxRequest {
  std::string image;  // as asked for: a name or a digest; empty: the host's /usr
  std::vector<MountRequest> mounts;
  std::uint64_t shm_bytes_max = 0;  // 0: as much as the box has by itself
  std::uint64_t tmp_bytes_max = 0;
  std::uint64_t huge_bytes_max = 0;  // 0: none
  std::vector<std::string> devices;  // of kFabricDevices
  std::string exception;             // of the policy, by name; empty: none

  Status Validate() const;
};

}  // namespace ringfence::model

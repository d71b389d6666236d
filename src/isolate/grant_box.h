#pragma once

// The part of a grant that says what the box is made of: its image, its named mounts, and how much
// of the machine its own file systems may take. Signed with the rest, so that an agent can change
// none of it.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"

namespace ringfence::isolate {

struct GrantMount {
  std::string name;  // as the node's settings declare it; never a path of the host
  std::string path;  // where it is in the box
  bool writable = false;
  bool operator==(const GrantMount&) const = default;
};

struct GrantException {
  std::string name;  // of the policy's Exception
  bool host_network = false;
  bool host_pid = false;
  Timestamp from;
  Timestamp until;
  bool operator==(const GrantException&) const = default;
};
inline constexpr auto kGrantExceptionMax = std::chrono::days(30);

struct GrantBox {
  std::string image;  // digest; empty: the host's /usr
  std::vector<GrantMount> mounts;
  std::uint64_t shm_bytes_max = 0;   // /dev/shm; 0: half of the memory
  std::uint64_t tmp_bytes_max = 0;   // each of /tmp and the home folder; 0: half of the memory
  std::uint64_t huge_bytes_max = 0;  // of huge pages, of each size; 0: none
  std::vector<std::string> devices;  // of model::kFabricDevices: isolate/fabric_devices.h
  std::optional<GrantException> exception;  // counts only through isolate/exception.h
  // Only ever of a box that runs a probe: isolate/walls_away.h.
  std::vector<std::string> walls_away;
  bool operator==(const GrantBox&) const = default;
};

// Adds what is not at its default.
void AddBox(const GrantBox& box, JsonObject& grant);
Result<GrantBox> ReadBox(JsonReader& reader);

}  // namespace ringfence::isolate

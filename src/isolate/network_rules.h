#pragma once

// The firewall of a node's boxes as commands of nft(8). Pure text; every value in it is an address,
// a number or a name that was made here. docs/network.md draws the picture.

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "isolate/network_grant.h"

namespace ringfence::isolate {

inline constexpr unsigned kNetworkSlots = 1024;
inline constexpr std::size_t kDeniedFlowsKept = 64;  // a box's different flows, in the kernel

// Who has which address. Each box has a wire of its own to the router: two addresses.
struct NetworkAddresses {
  std::uint32_t first = 0x64600000;  // 100.96.0.0/20, of the block that is nobody's (RFC 6598)

  std::uint32_t Router(unsigned slot) const { return first + 2 * slot; }
  std::uint32_t Box(unsigned slot) const { return first + 2 * slot + 1; }
  std::uint32_t UplinkOutside() const { return first + 2 * kNetworkSlots; }
  std::uint32_t UplinkInside() const { return first + 2 * kNetworkSlots + 1; }
  std::string All() const;  // "100.96.0.0/20"
};
inline constexpr unsigned kWirePrefix = 31;

std::string WireName(unsigned slot);  // "box7", the router's end
inline constexpr const char* kUplinkName = "uplink";

// A box with its place in the firewall.
struct FirewallBox {
  unsigned slot = 0;
  std::uint32_t mark = 0;  // of this box and no other, ever: what it began
  NetworkBox box;
};

// Everything closed, both ways.
std::string RouterRules(const NetworkAddresses& addresses);
// A new box with what its grant opens. `others` are there already.
std::string AddBoxRules(const NetworkAddresses& addresses, const FirewallBox& box,
                        const std::vector<FirewallBox>& others);
// Nothing of the box is left. `others` are those that stay.
std::string RemoveBoxRules(const NetworkAddresses& addresses, const FirewallBox& box,
                           const std::vector<FirewallBox>& others);
// In the namespace outside, which has `interface` to the world: boxes get through that one only,
// under its address, and to nothing of this machine.
struct UplinkRules {
  std::string table;      // of this node
  std::string link;       // the outer end of the uplink
  std::string interface;  // to the world
};
std::string OutsideRules(const NetworkAddresses& addresses, const UplinkRules& uplink);

std::string DeniedCounterName(unsigned slot);
std::string DeniedFlowsName(unsigned slot);
// From what "list counter ..." and "list set ..." print.
Result<model::Denied> ReadDenied(const Json& counter, const Json& flows);
// As wire/lease_json.h has it.
JsonObject DeniedToJson(const model::Denied& denied);

}  // namespace ringfence::isolate

#pragma once

// The network rules of one box, as the server compiled them from the policy. They travel inside the
// signed grant, so that a taken-over agent can neither add one nor take one from somebody else.

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/network.h"

namespace ringfence::isolate {

inline constexpr std::size_t kNetworkFlowsMax = 256;  // of each kind, in one grant
inline constexpr std::size_t kNetworkPortsMax = 32;   // of one flow

struct NetworkFlow {  // to addresses outside
  model::Ipv4Network to;
  std::vector<model::PortRange> ports;
};

struct NetworkPeer {   // boxes of a tenant and below
  std::string tenant;  // "acme/data"
  std::vector<model::PortRange> ports;
};

struct NetworkName {  // to whatever addresses a DNS name stands for when the box asks
  std::string name;
  bool allow_private = false;  // addresses of private networks too
  std::vector<model::PortRange> ports;
};

struct NetworkGrant {
  std::string lease;  // boxes that name the same lease are its ranks
  std::vector<NetworkFlow> out;
  std::vector<NetworkPeer> to;    // whom it may begin to talk to
  std::vector<NetworkPeer> from;  // who may begin to talk to it
  std::vector<model::PortRange> ranks;
  std::vector<NetworkName> names = {};
};

JsonObject NetworkToJson(const NetworkGrant& network);
Result<NetworkGrant> NetworkFromJson(const Json& json);

// One end of a conversation between two boxes of a node.
struct NetworkBox {
  std::string tenant;
  NetworkGrant network;
};
// The ports at which `a` may begin to talk to `b`: what the grants of both say.
std::vector<model::PortRange> PortsBetween(const NetworkBox& a, const NetworkBox& b);

}  // namespace ringfence::isolate

#include "isolate/network_grant.h"

#include <algorithm>

#include "isolate/names.h"
#include "model/tenant.h"

namespace ringfence::isolate {
namespace {

using model::PortRange;

constexpr std::size_t kPortTextBytesMax = 32;
constexpr std::size_t kTenantBytesMax = 256;

Error Bad(std::string message) {
  return Error{Code::kInvalidArgument, "grant.network: " + std::move(message), {}, "grant.network"};
}

JsonArray PortsToJson(const std::vector<PortRange>& ports) {
  JsonArray array;
  for (const PortRange& range : ports) {
    array.emplace_back(range.text());
  }
  return array;
}

Result<std::vector<PortRange>> ReadPorts(JsonReader& reader, std::string_view name,
                                         std::size_t most) {
  RINGFENCE_ASSIGN(const auto texts, reader.Strings(name, most, kPortTextBytesMax));
  std::vector<PortRange> ports;
  for (const std::string& text : texts) {
    RINGFENCE_ASSIGN(const PortRange range, PortRange::Parse(text));
    ports.push_back(range);
  }
  return ports;
}

JsonArray PeersToJson(const std::vector<NetworkPeer>& peers) {
  JsonArray array;
  for (const NetworkPeer& peer : peers) {
    array.emplace_back(JsonObject{{"tenant", peer.tenant}, {"ports", PortsToJson(peer.ports)}});
  }
  return array;
}

Result<std::vector<NetworkPeer>> ReadPeers(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(const auto items, reader.Array(name, kNetworkFlowsMax));
  std::vector<NetworkPeer> peers;
  for (const Json* item : items) {
    RINGFENCE_ASSIGN(auto fields, JsonReader::Open(*item, reader.Path(name)));
    NetworkPeer peer;
    RINGFENCE_ASSIGN(peer.tenant, fields.String("tenant", kTenantBytesMax));
    RINGFENCE_TRY(model::TenantPath::Create(peer.tenant));
    RINGFENCE_ASSIGN(peer.ports, ReadPorts(fields, "ports", kNetworkPortsMax));
    RINGFENCE_TRY(fields.Finish());
    peers.push_back(std::move(peer));
  }
  return peers;
}

// Itself, or below it.
bool IsWithin(const std::string& tenant, const std::string& above) {
  return tenant == above || tenant.starts_with(above + "/");
}

std::vector<PortRange> PortsTowards(const std::vector<NetworkPeer>& peers,
                                    const std::string& tenant) {
  std::vector<PortRange> ports;
  for (const NetworkPeer& peer : peers) {
    if (IsWithin(tenant, peer.tenant)) {
      ports.insert(ports.end(), peer.ports.begin(), peer.ports.end());
    }
  }
  return ports;
}

void AddCommon(const std::vector<PortRange>& a, const std::vector<PortRange>& b,
               std::vector<PortRange>& into) {
  for (const PortRange& one : a) {
    for (const PortRange& other : b) {
      if (const auto both = one.Meet(other)) {
        into.push_back(*both);
      }
    }
  }
}

}  // namespace

JsonObject NetworkToJson(const NetworkGrant& network) {
  JsonArray out;
  for (const NetworkFlow& flow : network.out) {
    out.emplace_back(JsonObject{{"cidr", flow.to.text()}, {"ports", PortsToJson(flow.ports)}});
  }
  return JsonObject{{"lease", network.lease},
                    {"out", std::move(out)},
                    {"to", PeersToJson(network.to)},
                    {"from", PeersToJson(network.from)},
                    {"ranks", PortsToJson(network.ranks)}};
}

Result<NetworkGrant> NetworkFromJson(const Json& json) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json, "grant.network"));
  NetworkGrant network;
  RINGFENCE_ASSIGN(network.lease, reader.String("lease", kNameBytesMax));
  if (!IsName(network.lease)) {
    return Bad("lease is not a name");
  }
  RINGFENCE_ASSIGN(const auto out, reader.Array("out", kNetworkFlowsMax));
  for (const Json* item : out) {
    RINGFENCE_ASSIGN(auto fields, JsonReader::Open(*item, "grant.network.out"));
    RINGFENCE_ASSIGN(const std::string cidr, fields.String("cidr", kPortTextBytesMax));
    RINGFENCE_ASSIGN(const model::Ipv4Network to, model::Ipv4Network::Parse(cidr));
    RINGFENCE_ASSIGN(std::vector<PortRange> ports, ReadPorts(fields, "ports", kNetworkPortsMax));
    RINGFENCE_TRY(fields.Finish());
    network.out.push_back({to, std::move(ports)});
  }
  RINGFENCE_ASSIGN(network.to, ReadPeers(reader, "to"));
  RINGFENCE_ASSIGN(network.from, ReadPeers(reader, "from"));
  RINGFENCE_ASSIGN(network.ranks, ReadPorts(reader, "ranks", kNetworkFlowsMax * kNetworkPortsMax));
  RINGFENCE_TRY(reader.Finish());
  return network;
}

std::vector<PortRange> PortsBetween(const NetworkBox& a, const NetworkBox& b) {
  std::vector<PortRange> ports;
  AddCommon(PortsTowards(a.network.to, b.tenant), PortsTowards(b.network.from, a.tenant), ports);
  if (a.network.lease == b.network.lease) {
    AddCommon(a.network.ranks, b.network.ranks, ports);
  }
  std::sort(ports.begin(), ports.end());
  ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
  return ports;
}

}  // namespace ringfence::isolate

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

JsonArray NamesToJson(const std::vector<NetworkName>& names) {
  JsonArray array;
  for (const NetworkName& name : names) {
    JsonObject object{{"name", name.name}, {"ports", PortsToJson(name.ports)}};
    if (name.allow_private) {
      object["private"] = true;
    }
    array.emplace_back(std::move(object));
  }
  return array;
}

Result<std::vector<NetworkName>> ReadNames(JsonReader& reader) {
  std::vector<NetworkName> names;
  if (!reader.Has("names")) {
    return names;
  }
  RINGFENCE_ASSIGN(const auto items, reader.Array("names", kNetworkFlowsMax));
  for (const Json* item : items) {
    RINGFENCE_ASSIGN(auto fields, JsonReader::Open(*item, reader.Path("names")));
    NetworkName name;
    RINGFENCE_ASSIGN(name.name, fields.String("name", kTenantBytesMax));
    if (!model::IsDnsName(name.name)) {
      return Bad("an entry of names is no DNS name");
    }
    if (fields.Has("private")) {
      RINGFENCE_ASSIGN(name.allow_private, fields.Bool("private"));
    }
    RINGFENCE_ASSIGN(name.ports, ReadPorts(fields, "ports", kNetworkPortsMax));
    RINGFENCE_TRY(fields.Finish());
    names.push_back(std::move(name));
  }
  return names;
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
  JsonObject object{{"lease", network.lease},
                    {"out", std::move(out)},
                    {"to", PeersToJson(network.to)},
                    {"from", PeersToJson(network.from)},
                    {"ranks", PortsToJson(network.ranks)}};
  if (!network.names.empty()) {
    object["names"] = NamesToJson(network.names);
  }
  return object;
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
  RINGFENCE_ASSIGN(network.names, ReadNames(reader));
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

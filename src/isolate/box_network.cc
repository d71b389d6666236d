#include "isolate/box_network.h"

#include <algorithm>

#include "base/encoding.h"
#include "crypto/random.h"
#include "os/file.h"
#include "os/internet.h"
#include "os/log.h"
#include "os/network_namespace.h"
#include "resolve/resolver.h"

namespace ringfence::isolate {
namespace {

constexpr const char* kBoxLink = "eth0";
constexpr const char* kNowhere = "nowhere";
constexpr const char* kTable = "inet ringfence";
constexpr const char* kHint =
    "the kernel needs nf_tables (ct, nat, reject) and veth: modprobe nf_tables veth";

// The world's side must forward what comes back; that is a setting of the machine, not ours.
Status CheckForwards(const std::string& interface) {
  const auto text = os::ReadText("/proc/sys/net/ipv4/conf/" + interface + "/forwarding", 16);
  if (!text.has_value()) {
    return Error{Code::kFailedPrecondition, "node.uplink: there is no interface " + interface,
                 "`ip link` lists them; the service needs PrivateNetwork=no to see them"};
  }
  if (!text->starts_with('1')) {
    return Error{Code::kFailedPrecondition,
                 "node.uplink: " + interface + " does not forward, so no box reaches the world",
                 "sysctl -w net.ipv4.conf." + interface + ".forwarding=1"};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<BoxNetwork>> BoxNetwork::Open(NetworkPlace place) {
  RINGFENCE_ASSIGN(os::UniqueFd router, os::MakeNetworkNamespace());
  std::optional<os::Links> links;
  std::optional<os::Nftables> firewall;
  RINGFENCE_TRY(os::InNetworkNamespace(router.get(), [&]() -> Status {
    RINGFENCE_ASSIGN(links, os::Links::Open());
    RINGFENCE_ASSIGN(firewall, os::Nftables::Open());
    return {};
  }));
  std::unique_ptr<BoxNetwork> network(
      new BoxNetwork(std::move(place), std::move(router), std::move(*links), std::move(*firewall)));
  if (Status made = network->MakeRouter(); !made.has_value()) {
    Error error = Prefix("the network for boxes cannot be made", made.error());
    error.hint = error.hint.empty() ? kHint : error.hint;
    return error;
  }
  return network;
}

Status BoxNetwork::MakeRouter() {
  RINGFENCE_TRY(firewall_.Apply(RouterRules(place_.addresses)));
  if (place_.uplink.empty()) {
    // A way out that leads nowhere: what boxes try is denied and counted, not lost for want of a
    // route.
    RINGFENCE_TRY(links_.MakePair({kUplinkName, kNowhere, router_.get()}));
    RINGFENCE_TRY(links_.SetUp(kNowhere));
  } else {
    RINGFENCE_TRY(MakeUplink());
  }
  RINGFENCE_TRY(links_.AddAddress(kUplinkName, place_.addresses.UplinkInside(), kWirePrefix));
  RINGFENCE_TRY(links_.SetForwarding(kUplinkName));
  RINGFENCE_TRY(links_.SetUp(kUplinkName));
  return links_.AddDefaultRoute(kUplinkName, place_.addresses.UplinkOutside());
}

Status BoxNetwork::MakeUplink() {
  RINGFENCE_TRY(CheckForwards(place_.uplink));
  RINGFENCE_ASSIGN(os::Links links, os::Links::Open());
  RINGFENCE_ASSIGN(os::Nftables firewall, os::Nftables::Open());
  RINGFENCE_ASSIGN(const os::UniqueFd here, os::OwnNetworkNamespace());
  // A name that no earlier jailer of this machine can still have.
  const std::string outer = "rf" + Hex(crypto::RandomBytes(6));
  RINGFENCE_TRY(firewall.Apply(OutsideRules(place_.addresses, {outer, outer, place_.uplink})));
  RINGFENCE_TRY(links_.MakePair({kUplinkName, outer, here.get()}));
  RINGFENCE_TRY(links.AddAddress(outer, place_.addresses.UplinkOutside(), kWirePrefix));
  RINGFENCE_TRY(links.SetForwarding(outer));
  RINGFENCE_TRY(links.SetUp(outer));
  outside_.emplace(Outside{std::move(links), std::move(firewall)});
  return {};
}

std::vector<FirewallBox> BoxNetwork::Others(const std::string& lease) const {
  std::vector<FirewallBox> others;
  for (const auto& [other, box] : boxes_) {
    if (other != lease) {
      others.push_back(box);
    }
  }
  return others;
}

Status BoxNetwork::Wire(unsigned slot, int pid) {
  const std::string wire = WireName(slot);
  RINGFENCE_ASSIGN(const os::UniqueFd inside, os::NetworkNamespaceOf(pid));
  RINGFENCE_TRY(links_.MakePair({wire, kBoxLink, inside.get()}));
  RINGFENCE_TRY(links_.AddAddress(wire, place_.addresses.Router(slot), kWirePrefix));
  RINGFENCE_TRY(links_.SetForwarding(wire));
  RINGFENCE_TRY(links_.SetUp(wire));
  std::optional<os::Links> links;
  RINGFENCE_TRY(os::InNetworkNamespace(inside.get(), [&]() -> Status {
    RINGFENCE_ASSIGN(links, os::Links::Open());
    return {};
  }));
  RINGFENCE_TRY(links->AddAddress(kBoxLink, place_.addresses.Box(slot), kWirePrefix));
  RINGFENCE_TRY(links->SetUp(kBoxLink));
  RINGFENCE_TRY(links->AddDefaultRoute(kBoxLink, place_.addresses.Router(slot)));
  RINGFENCE_TRY(links_.AwaitRunning(wire));
  return links->AwaitRunning(kBoxLink);
}

Status BoxNetwork::Attach(const NetworkPlan& plan) {
  if (plan.slot >= kNetworkSlots || boxes_.contains(plan.lease)) {
    return Error{Code::kInternal, "no place in the network for lease " + plan.lease};
  }
  FirewallBox box{plan.slot, ++last_mark_, plan.box};
  NetworkGrant& grant = box.box.network;
  if (place_.uplink.empty() && (!grant.out.empty() || !grant.names.empty())) {
    os::Log(
        os::Level::kWarning, "no_uplink",
        {{"lease", plan.lease}, {"why", "policy opens addresses outside, node.uplink is unset"}});
    grant.out.clear();
    grant.names.clear();
  }
  if (Status applied = firewall_.Apply(AddBoxRules(place_.addresses, box, Others(plan.lease)));
      !applied.has_value()) {
    return Prefix("network of the box", applied.error());
  }
  boxes_.emplace(plan.lease, box);
  if (Status wired = Wire(plan.slot, plan.pid); !wired.has_value()) {
    (void)Detach(plan.lease);  // what stays behind is tried again with the box itself
    return Prefix("network of the box", wired.error());
  }
  return {};
}

Result<BoxNetwork::ResolverPort> BoxNetwork::OpenResolverPort(const ResolverWays& ways) {
  constexpr std::uint16_t kDnsPort = 53;
  constexpr int kWaitingMax = 64;
  ResolverPort port;
  RINGFENCE_TRY(os::InNetworkNamespace(router_.get(), [&]() -> Status {
    RINGFENCE_ASSIGN(port.datagrams, os::BindUdp({0, kDnsPort}));
    RINGFENCE_ASSIGN(port.streams, os::ListenTcp({0, kDnsPort}, kWaitingMax));
    return {};
  }));
  RINGFENCE_TRY(firewall_.Apply(ResolverRules(ways)));
  return port;
}

std::optional<resolve::AddBox> BoxNetwork::NamesOf(const std::string& lease) const {
  const auto place = boxes_.find(lease);
  if (place == boxes_.end() || place->second.box.network.names.empty()) {
    return std::nullopt;
  }
  const FirewallBox& box = place->second;
  resolve::AddBox add{box.slot, box.mark, place_.addresses.Box(box.slot), {}};
  for (const NetworkName& name : box.box.network.names) {
    add.names.push_back(name.name);
  }
  return add;
}

Status BoxNetwork::OpenName(const resolve::OpenName& wanted) {
  const auto place = std::find_if(boxes_.begin(), boxes_.end(), [&](const auto& one) {
    return one.second.slot == wanted.slot && one.second.mark == wanted.mark;
  });
  if (place == boxes_.end()) {
    return Error{Code::kNotFound, "the box has ended"};
  }
  const std::vector<NetworkName>& names = place->second.box.network.names;
  if (wanted.name >= names.size()) {
    return Error{Code::kInvalidArgument, "the box's grant has no such name"};
  }
  const std::string& name = names[wanted.name].name;
  RINGFENCE_ASSIGN(const std::vector<std::uint32_t> own, os::OwnAddresses());
  NameOpening opening{wanted.slot,
                      {},
                      wanted.addresses,
                      std::min(wanted.seconds, resolve::kTtlSecondsMax) + kNameGraceSeconds};
  std::string refused;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].name != name) {
      continue;
    }
    std::string why;
    for (const std::uint32_t address : wanted.addresses) {
      const std::string one = WhyRefused(address, names[i].allow_private, place_.addresses, own);
      why = one.empty() || !why.empty() ? why : model::FormatIpv4(address) + " " + one;
    }
    if (why.empty()) {
      opening.names.push_back(i);
    } else {
      refused = why;
    }
  }
  if (opening.names.empty()) {
    return Error{Code::kPermissionDenied, name + " (lease " + place->first + "): " + refused};
  }
  Status opened = firewall_.Apply(OpenNameRules(opening));
  if (!opened.has_value()) {  // an element's time may have come in between
    opened = firewall_.Apply(OpenNameRules(opening));
  }
  return opened;
}

Result<model::Denied> BoxNetwork::DeniedSoFar(const std::string& lease) {
  const auto place = boxes_.find(lease);
  if (place == boxes_.end()) {
    return Error{Code::kNotFound, "lease " + lease + " has no network here"};
  }
  const std::string table = std::string(kTable) + " ";
  RINGFENCE_ASSIGN(const Json counter,
                   firewall_.List("counter " + table + DeniedCounterName(place->second.slot)));
  RINGFENCE_ASSIGN(const Json flows,
                   firewall_.List("set " + table + DeniedFlowsName(place->second.slot)));
  return ReadDenied(counter, flows);
}

Result<model::Denied> BoxNetwork::Detach(const std::string& lease) {
  const auto place = boxes_.find(lease);
  if (place == boxes_.end()) {
    return model::Denied();
  }
  RINGFENCE_TRY(links_.Remove(WireName(place->second.slot)));
  auto denied = DeniedSoFar(lease);
  RINGFENCE_TRY(firewall_.Apply(RemoveBoxRules(place_.addresses, place->second, Others(lease))));
  boxes_.erase(place);
  return denied;
}

}  // namespace ringfence::isolate

#include "isolate/network_rules.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "isolate/name_rules.h"

namespace ringfence::isolate {
namespace {

using model::Denied;
using model::DeniedFlow;
using model::PortRange;
using model::Protocol;

constexpr const char* kTable = "inet ringfence";
constexpr std::int64_t kTcp = 6;
constexpr std::int64_t kUdp = 17;

std::string Number(std::uint64_t number) { return std::to_string(number); }
std::string Quoted(const std::string& name) { return "\"" + name + "\""; }

std::string Chain(const char* kind, unsigned slot) { return kind + Number(slot); }

class Commands {
 public:
  void Line(const std::string& line) { text_ += line + "\n"; }
  void Rule(const std::string& chain, const std::string& rule) {
    Line(std::string("add rule ") + kTable + " " + chain + " " + rule);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

// "{ 443, 5000-5100 }" of one protocol; empty when there is none.
std::string PortSet(const std::vector<PortRange>& ports, Protocol protocol) {
  std::vector<PortRange> of;
  std::copy_if(ports.begin(), ports.end(), std::back_inserter(of),
               [&](const PortRange& range) { return range.protocol() == protocol; });
  std::sort(of.begin(), of.end());
  std::string set;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  const auto flush = [&] {
    if (first != 0) {
      set += (set.empty() ? "" : ", ") + Number(first) + (first == last ? "" : "-" + Number(last));
    }
  };
  for (const PortRange& range : of) {  // joined: a set's ranges must not overlap
    if (first != 0 && range.first() <= last + 1) {
      last = std::max<std::uint32_t>(last, range.last());
      continue;
    }
    flush();
    first = range.first();
    last = range.last();
  }
  flush();
  return set.empty() ? "" : "{ " + set + " }";
}

bool HasIcmp(const std::vector<PortRange>& ports) {
  return std::any_of(ports.begin(), ports.end(),
                     [](const PortRange& range) { return range.protocol() == Protocol::kIcmp; });
}

// A rule for each protocol: `before`, the ports as `field` ("dport", "sport"), `then`.
void AddPortRules(Commands& commands, const std::string& chain, const std::string& before,
                  const std::vector<PortRange>& ports, bool reply, const std::string& then) {
  const std::string field = reply ? "sport" : "dport";
  for (const Protocol protocol : {Protocol::kTcp, Protocol::kUdp}) {
    if (const std::string set = PortSet(ports, protocol); !set.empty()) {
      commands.Rule(chain, before + " " + std::string(model::Name(protocol)) + " " + field + " " +
                               set + " " + then);
    }
  }
  if (HasIcmp(ports)) {
    commands.Rule(chain,
                  before + " icmp type " + (reply ? "echo-reply" : "echo-request") + " " + then);
  }
}

// What `a` may send to `b`: what it may begin, and its answers to what `b` may begin.
void AddPairRules(Commands& commands, const NetworkAddresses& addresses, const FirewallBox& a,
                  const FirewallBox& b) {
  const std::string chain = Chain("peers", a.slot);
  const std::string towards = "oifname " + Quoted(WireName(b.slot)) + " ip daddr " +
                              model::FormatIpv4(addresses.Box(b.slot));
  AddPortRules(commands, chain, towards, PortsBetween(a.box, b.box), false, "accept");
  const std::vector<PortRange> answered = PortsBetween(b.box, a.box);
  if (!answered.empty()) {
    AddPortRules(commands, chain, towards + " ct direction reply ct state established", answered,
                 true, "accept");
    commands.Rule(chain, towards + " meta l4proto icmp ct state related accept");
  }
}

bool AnyBetween(const FirewallBox& a, const FirewallBox& b) {
  return !PortsBetween(a.box, b.box).empty() || !PortsBetween(b.box, a.box).empty();
}

// The peers of every box that had or has something with `changed`, written anew.
void RewritePeers(Commands& commands, const NetworkAddresses& addresses, const FirewallBox& changed,
                  const std::vector<FirewallBox>& all) {
  for (const FirewallBox& one : all) {
    if (one.slot == changed.slot || !AnyBetween(one, changed)) {
      continue;
    }
    commands.Line(std::string("flush chain ") + kTable + " " + Chain("peers", one.slot));
    for (const FirewallBox& other : all) {
      if (other.slot != one.slot) {
        AddPairRules(commands, addresses, one, other);
      }
    }
  }
}

std::string Element(const char* set, const std::string& element) {
  return std::string("element ") + kTable + " " + set + " { " + element + " }";
}

std::string LiveElement(const FirewallBox& box) {
  return Quoted(WireName(box.slot)) + " . " + Number(box.mark);
}

// To addresses that the resolver has opened under a name; what was begun goes on after its time.
void AddNames(Commands& commands, const NetworkAddresses& addresses, const FirewallBox& box) {
  const std::vector<NetworkName>& names = box.box.network.names;
  if (names.empty()) {
    return;
  }
  const std::string table = kTable;
  const std::string from = Chain("from", box.slot);
  const std::string outwards =
      std::string("oifname ") + Quoted(kUplinkName) + " ip daddr != @never ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string set = NameSet(box.slot, i);
    commands.Line("add set " + table + " " + set + " { type ipv4_addr; flags timeout; size " +
                  Number(kAddressesPerNameMax) + "; }");
    AddPortRules(commands, from, outwards + "ip daddr @" + set, names[i].ports, false,
                 "ct mark set " + Number(box.mark) + " accept");
  }
  commands.Rule(from, outwards + "ct direction original ct state established ct mark " +
                          Number(box.mark) + " accept");
  const std::string asks = ResolverChain(box.slot);
  commands.Line("add chain " + table + " " + asks);
  for (const char* protocol : {"udp", "tcp"}) {
    commands.Rule(asks, "ip daddr " + model::FormatIpv4(addresses.Router(box.slot)) + " " +
                            protocol + " dport 53 accept");
  }
  commands.Rule(asks, "goto " + Chain("deny", box.slot));
}

void RemoveNames(Commands& commands, const FirewallBox& box) {
  if (box.box.network.names.empty()) {
    return;
  }
  const std::string table = kTable;
  commands.Line("flush chain " + table + " " + ResolverChain(box.slot));
  commands.Line("delete chain " + table + " " + ResolverChain(box.slot));
  for (std::size_t i = 0; i < box.box.network.names.size(); ++i) {
    commands.Line("delete set " + table + " " + NameSet(box.slot, i));
  }
}

const Json* Find(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* name : path) {
    const JsonObject* object = at->if_object();
    at = object == nullptr ? nullptr : object->if_contains(name);
    if (at == nullptr) {
      return nullptr;
    }
  }
  return at;
}

// The first object of this kind in what the library lists.
const Json* Listed(const Json& json, const char* kind) {
  const Json* list = Find(json, {"nftables"});
  if (list == nullptr || !list->is_array()) {
    return nullptr;
  }
  for (const Json& item : list->get_array()) {
    if (const Json* found = Find(item, {kind})) {
      return found;
    }
  }
  return nullptr;
}

std::uint64_t NumberAt(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = Find(json, path);
  return at != nullptr && at->is_int64() && at->get_int64() > 0
             ? static_cast<std::uint64_t>(at->get_int64())
             : 0;
}

// {"elem": {"val": {"concat": ["10.0.0.1", 6, 443]}, "counter": {"packets": 3, ...}}}
std::optional<DeniedFlow> ReadFlow(const Json& json) {
  const Json* parts = Find(json, {"elem", "val", "concat"});
  if (parts == nullptr || !parts->is_array() || parts->get_array().size() != 3) {
    return std::nullopt;
  }
  const JsonArray& three = parts->get_array();
  if (!three[0].is_string() || !three[1].is_int64() || !three[2].is_int64()) {
    return std::nullopt;
  }
  const std::int64_t protocol = three[1].get_int64();
  DeniedFlow flow;
  flow.to = std::string(three[0].get_string().data(), three[0].get_string().size());
  flow.protocol = protocol == kTcp   ? "tcp"
                  : protocol == kUdp ? "udp"
                                     : Number(NumberAt(three[1], {}));
  flow.port = static_cast<std::uint16_t>(three[2].get_int64());
  flow.packets = NumberAt(json, {"elem", "counter", "packets"});
  return flow;
}

}  // namespace

std::string NetworkAddresses::All() const { return model::FormatIpv4(first) + "/20"; }
std::string WireName(unsigned slot) { return "box" + Number(slot); }
std::string DeniedCounterName(unsigned slot) { return Chain("denied", slot); }
std::string DeniedFlowsName(unsigned slot) { return Chain("flows", slot); }

std::string RouterRules(const NetworkAddresses& addresses) {
  Commands commands;
  const std::string table = kTable;
  commands.Line("add table " + table);
  std::string never = addresses.All();
  for (const model::Ipv4Network& network : model::NeverReachable()) {
    never += ", " + network.text();
  }
  // auto-merge: 224.0.0.0/4 and 240.0.0.0/4 touch.
  commands.Line("add set " + table +
                " never { type ipv4_addr; flags interval; auto-merge; elements = { " + never +
                " }; }");
  commands.Line("add map " + table + " boxes { type ifname : verdict; }");
  commands.Line("add map " + table + " refused { type ifname : verdict; }");
  commands.Line("add map " + table + " senders { type ifname : verdict; }");
  commands.Line("add set " + table + " live { type ifname . mark; }");
  // Before connection tracking, and before the kernel drops a forged sender without counting it.
  commands.Line("add chain " + table +
                " arrive { type filter hook prerouting priority -300; policy accept; }");
  commands.Line("add chain " + table +
                " input { type filter hook input priority 0; policy drop; }");
  commands.Line("add chain " + table +
                " forward { type filter hook forward priority 0; policy drop; }");
  commands.Line("add chain " + table +
                " output { type filter hook output priority 0; policy drop; }");
  commands.Line("add chain " + table +
                " outwards { type nat hook postrouting priority 100; policy accept; }");
  commands.Rule("arrive", "iifname vmap @senders");
  commands.Rule("input", "meta nfproto ipv4 iifname vmap @refused");
  commands.Rule("forward", "iifname vmap @boxes");
  // Answers to what this very box began: a later one with its address has another mark.
  commands.Rule("forward", std::string("iifname ") + Quoted(kUplinkName) +
                               " ct direction reply ct state { established, related } "
                               "oifname . ct mark @live accept");
  // The router itself says only why a packet went no further.
  commands.Rule("output", "icmp type destination-unreachable accept");
  commands.Rule("outwards", std::string("oifname ") + Quoted(kUplinkName) + " masquerade");
  return commands.Take();
}

std::string AddBoxRules(const NetworkAddresses& addresses, const FirewallBox& box,
                        const std::vector<FirewallBox>& others) {
  Commands commands;
  const std::string table = kTable;
  const std::string counter = DeniedCounterName(box.slot);
  const std::string flows = DeniedFlowsName(box.slot);
  const std::string from = Chain("from", box.slot);
  const std::string deny = Chain("deny", box.slot);
  const std::string peers = Chain("peers", box.slot);
  const std::string sender = Chain("sender", box.slot);
  commands.Line("add counter " + table + " " + counter);
  commands.Line("add set " + table + " " + flows +
                " { type ipv4_addr . inet_proto . inet_service; size " + Number(kDeniedFlowsKept) +
                "; flags dynamic; }");
  for (const std::string& chain : {deny, peers, from, sender}) {
    commands.Line("add chain " + table + " " + chain);
  }
  commands.Rule(deny, "counter name " + counter);
  // A full set breaks off this rule, not the next.
  commands.Rule(deny, "meta l4proto { tcp, udp } update @" + flows +
                          " { ip daddr . meta l4proto . th dport counter }");
  commands.Rule(deny, "reject with icmpx type admin-prohibited");

  // A wrong sender gets no answer: it would go to somebody else.
  commands.Rule(sender, "meta nfproto != ipv4 counter name " + counter + " drop");
  commands.Rule(sender, "ip saddr != " + model::FormatIpv4(addresses.Box(box.slot)) +
                            " counter name " + counter + " drop");
  commands.Rule(from, "ct state invalid counter name " + counter + " drop");
  commands.Rule(from, "jump " + peers);
  for (const NetworkFlow& flow : box.box.network.out) {
    AddPortRules(commands, from,
                 std::string("oifname ") + Quoted(kUplinkName) + " ip daddr != @never ip daddr " +
                     flow.to.text(),
                 flow.ports, false, "ct mark set " + Number(box.mark) + " accept");
  }
  AddNames(commands, addresses, box);
  commands.Rule(from, "goto " + deny);

  std::vector<FirewallBox> all = others;
  all.push_back(box);
  for (const FirewallBox& other : others) {
    AddPairRules(commands, addresses, box, other);
  }
  RewritePeers(commands, addresses, box, all);
  const std::string wire = Quoted(WireName(box.slot));
  commands.Line("add " + Element("live", LiveElement(box)));
  commands.Line("add " + Element("senders", wire + " : jump " + sender));
  commands.Line(
      "add " +
      Element("refused", wire + " : goto " +
                             (box.box.network.names.empty() ? deny : ResolverChain(box.slot))));
  commands.Line("add " + Element("boxes", wire + " : goto " + from));
  return commands.Take();
}

std::string RemoveBoxRules(const NetworkAddresses& addresses, const FirewallBox& box,
                           const std::vector<FirewallBox>& others) {
  Commands commands;
  const std::string table = kTable;
  const std::string wire = Quoted(WireName(box.slot));
  commands.Line("delete " + Element("boxes", wire));
  commands.Line("delete " + Element("refused", wire));
  commands.Line("delete " + Element("senders", wire));
  commands.Line("delete " + Element("live", LiveElement(box)));
  RewritePeers(commands, addresses, box, others);
  for (const char* kind : {"from", "peers", "deny", "sender"}) {
    commands.Line("flush chain " + table + " " + Chain(kind, box.slot));
  }
  RemoveNames(commands, box);
  for (const char* kind : {"from", "peers", "deny", "sender"}) {
    commands.Line("delete chain " + table + " " + Chain(kind, box.slot));
  }
  commands.Line("delete set " + table + " " + DeniedFlowsName(box.slot));
  commands.Line("delete counter " + table + " " + DeniedCounterName(box.slot));
  return commands.Take();
}

std::string OutsideRules(const NetworkAddresses& addresses, const UplinkRules& uplink) {
  Commands commands;
  const std::string table = "ip " + uplink.table;
  const std::string link = Quoted(uplink.link);
  const std::string world = Quoted(uplink.interface);
  const auto rule = [&](const std::string& chain, const std::string& text) {
    commands.Line("add rule " + table + " " + chain + " " + text);
  };
  commands.Line("add table " + table + " { flags owner; }");
  // Before others of this machine: what they let through must be let through here too.
  commands.Line("add chain " + table +
                " input { type filter hook input priority -5; policy accept; }");
  commands.Line("add chain " + table +
                " forward { type filter hook forward priority -5; policy accept; }");
  commands.Line("add chain " + table +
                " outwards { type nat hook postrouting priority 100; policy accept; }");
  rule("input", "iifname " + link + " drop");
  rule("forward", "iifname " + link + " oifname != " + world + " drop");
  rule("forward",
       "iifname " + link + " ip saddr != " + model::FormatIpv4(addresses.UplinkInside()) + " drop");
  rule("forward", "oifname " + link + " iifname != " + world + " drop");
  rule("forward", "oifname " + link + " ct state != { established, related } drop");
  rule("outwards", "oifname " + world + " ip saddr " + model::FormatIpv4(addresses.UplinkInside()) +
                       " masquerade");
  return commands.Take();
}

Result<Denied> ReadDenied(const Json& counter, const Json& flows) {
  const Json* counted = Listed(counter, "counter");
  const Json* set = Listed(flows, "set");
  if (counted == nullptr || set == nullptr) {
    return Error{Code::kCorrupt, "nftables lists no counter or set of denied flows"};
  }
  Denied denied;
  denied.packets = NumberAt(*counted, {"packets"});
  denied.bytes = NumberAt(*counted, {"bytes"});
  const Json* elements = Find(*set, {"elem"});
  if (elements != nullptr && elements->is_array()) {
    for (const Json& element : elements->get_array()) {
      if (auto flow = ReadFlow(element)) {
        denied.flows.push_back(std::move(*flow));
      }
    }
  }
  std::sort(denied.flows.begin(), denied.flows.end(), [](const auto& a, const auto& b) {
    return std::tie(b.packets, a.to, a.port) < std::tie(a.packets, b.to, b.port);
  });
  if (denied.flows.size() > model::kDeniedFlowsMax) {
    denied.flows.resize(model::kDeniedFlowsMax);
  }
  return denied;
}

JsonObject DeniedToJson(const Denied& denied) {
  JsonArray flows;
  for (const DeniedFlow& flow : denied.flows) {
    flows.emplace_back(JsonObject{{"to", flow.to},
                                  {"protocol", flow.protocol},
                                  {"port", static_cast<std::int64_t>(flow.port)},
                                  {"packets", static_cast<std::int64_t>(flow.packets)}});
  }
  return JsonObject{{"packets", static_cast<std::int64_t>(denied.packets)},
                    {"bytes", static_cast<std::int64_t>(denied.bytes)},
                    {"flows", std::move(flows)}};
}

}  // namespace ringfence::isolate

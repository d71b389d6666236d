#include "isolate/name_rules.h"

#include <algorithm>

#include "resolve/resolver.h"

namespace ringfence::isolate {
namespace {

constexpr const char* kTable = "inet ringfence";

// Networks of nobody in particular: whoever owns a name on the internet could make it stand for a
// machine next to the node.
constexpr const char* kPrivate[] = {"10.0.0.0/8",   "100.64.0.0/10",  "172.16.0.0/12",
                                    "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15"};

bool Within(const model::Ipv4Network& network, std::uint32_t address) {
  const unsigned prefix = network.prefix();
  return prefix == 0 || (address >> (32 - prefix)) == (network.address() >> (32 - prefix));
}

bool Has(const std::vector<std::uint32_t>& all, std::uint32_t one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::string Joined(const std::vector<std::uint32_t>& addresses, const std::string& after) {
  std::string text;
  for (const std::uint32_t address : addresses) {
    text += (text.empty() ? "" : ", ") + model::FormatIpv4(address) + after;
  }
  return text;
}

bool IsLoopback(std::uint32_t address) { return address >> 24U == 127; }

}  // namespace

std::string NameSet(unsigned slot, std::size_t name) {
  return "name" + std::to_string(slot) + "_" + std::to_string(name);
}
std::string ResolverChain(unsigned slot) { return "asks" + std::to_string(slot); }

std::string ResolverRules(const ResolverWays& ways) {
  const std::string uplink = "\"" + std::string(kUplinkName) + "\"";
  const std::string table = kTable;
  const std::string above = "{ " + Joined(ways.above, "") + " }";
  std::string text;
  for (const char* protocol : {"udp", "tcp"}) {
    const std::string by = protocol;
    text += "add rule " + table + " input iifname " + uplink +
            " ct direction reply ct state established ip saddr " + above + " " + by +
            " sport 53 accept\n";
    text += "add rule " + table + " output oifname " + uplink + " meta skuid " +
            std::to_string(ways.uid) + " ip daddr " + above + " " + by + " dport 53 accept\n";
    // The listening sockets are the jailer's: no user to ask for here.
    text += "add rule " + table + " output oifname != " + uplink +
            " ct direction reply ct state established " + by + " sport 53 accept\n";
  }
  return text;
}

// An element that is there keeps its time when it is added again; so each goes first, and to be
// able to go it is added.
std::string OpenNameRules(const NameOpening& opening) {
  const std::string seconds = std::to_string(opening.seconds) + "s";
  std::string text;
  for (const std::size_t name : opening.names) {
    const std::string set = std::string(kTable) + " " + NameSet(opening.slot, name);
    const std::string timed = Joined(opening.addresses, " timeout " + seconds);
    text += "add element " + set + " { " + timed + " }\n";
    text += "delete element " + set + " { " + Joined(opening.addresses, "") + " }\n";
    text += "add element " + set + " { " + timed + " }\n";
  }
  return text;
}

std::string WhyRefused(std::uint32_t address, bool allow_private, const NetworkAddresses& addresses,
                       const std::vector<std::uint32_t>& own) {
  for (const model::Ipv4Network& never : model::NeverReachable()) {
    if (Within(never, address)) {
      return "lies in " + never.text() + ", which no rule opens";
    }
  }
  if (Within(model::Ipv4Network::Parse(addresses.All()).value(), address)) {
    return "is a box's";
  }
  if (Has(own, address)) {
    return "is this machine's own";
  }
  for (const char* text : kPrivate) {
    if (!allow_private && Within(model::Ipv4Network::Parse(text).value(), address)) {
      return std::string("lies in ") + text + ", and the rule does not say private: true";
    }
  }
  return "";
}

Result<std::vector<std::uint32_t>> ParseResolvers(const std::string& text) {
  std::vector<std::uint32_t> above;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const auto one = model::Ipv4Network::Parse(text.substr(at, end - at) + "/32");
    at = end + 1;
    if (!one.has_value() || one->address() == 0 || IsLoopback(one->address()) ||
        Has(above, one->address()) || above.size() == resolve::kAboveMax) {
      return Error{Code::kInvalidArgument,
                   "must be up to " + std::to_string(resolve::kAboveMax) +
                       " IPv4 addresses with commas between, none of them twice or 127.x"};
    }
    above.push_back(one->address());
  }
  return above;
}

std::vector<std::uint32_t> ResolversIn(const std::string& resolv_conf,
                                       const std::vector<std::uint32_t>& own) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::uint32_t> above;
  for (std::size_t at = 0; at < resolv_conf.size();) {
    const std::size_t end = std::min(resolv_conf.find('\n', at), resolv_conf.size());
    std::string_view line = std::string_view(resolv_conf).substr(at, end - at);
    at = end + 1;
    constexpr std::string_view kWord = "nameserver";
    if (!line.starts_with(kWord)) {
      continue;
    }
    line.remove_prefix(kWord.size());
    const std::size_t begin = line.find_first_not_of(kBlanks);
    if (begin == 0 || begin == std::string_view::npos) {
      continue;
    }
    line = line.substr(begin);
    line = line.substr(0, line.find_first_of(kBlanks));
    const auto one = model::Ipv4Network::Parse(std::string(line) + "/32");
    if (one.has_value() && one->address() != 0 && !IsLoopback(one->address()) &&
        !Has(own, one->address()) && !Has(above, one->address()) &&
        above.size() < resolve::kAboveMax) {
      above.push_back(one->address());
    }
  }
  return above;
}

}  // namespace ringfence::isolate

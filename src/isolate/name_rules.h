#pragma once

// The part of the firewall that DNS names need: which addresses a name may stand for, the sets that
// answers fill, and the way to and from the resolver. Pure text, as isolate/network_rules.h.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "isolate/network_rules.h"
#include "resolve/messages.h"

namespace ringfence::isolate {

inline constexpr std::size_t kAddressesPerNameMax = 256;  // open at once
// Longer than a box is told, so that what it begins in the last moment gets through.
inline constexpr std::uint32_t kNameGraceSeconds = 30;

std::string NameSet(unsigned slot, std::size_t name);  // "name7_0"
std::string ResolverChain(unsigned slot);              // "asks7": what a box may send to the router

// The resolver's ways: to these resolvers above, as this user, and back to whoever asked.
struct ResolverWays {
  unsigned uid = 0;
  std::vector<std::uint32_t> above;
};
std::string ResolverRules(const ResolverWays& ways);

// Opens them, or for longer. All or nothing.
struct NameOpening {
  unsigned slot = 0;
  std::vector<std::size_t> names;  // of the grant, which all are the same name
  std::vector<std::uint32_t> addresses;
  std::uint32_t seconds = 0;
};
std::string OpenNameRules(const NameOpening& opening);

// Why this address may not be what a name stands for; empty: it may. `own` are this machine's.
std::string WhyRefused(std::uint32_t address, bool allow_private, const NetworkAddresses& addresses,
                       const std::vector<std::uint32_t>& own);

// "10.0.0.2,10.0.0.3": at most resolve::kAboveMax. kInvalidArgument otherwise.
Result<std::vector<std::uint32_t>> ParseResolvers(const std::string& text);
// The nameservers of a resolv.conf that can be reached from the router: IPv4, not this machine.
std::vector<std::uint32_t> ResolversIn(const std::string& resolv_conf,
                                       const std::vector<std::uint32_t>& own);

}  // namespace ringfence::isolate

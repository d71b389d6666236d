#pragma once

#include <vector>

namespace ringfence::os {

// AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK (which name lookup asks for addresses).
std::vector<int> LocalAndInternetFamilies();

}  // namespace ringfence::os

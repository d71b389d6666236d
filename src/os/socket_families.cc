#include "os/socket_families.h"

#include <sys/socket.h>

namespace ringfence::os {

std::vector<int> LocalAndInternetFamilies() { return {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}; }

}  // namespace ringfence::os

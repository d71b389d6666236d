#pragma once

// Starts the resolver of a node's boxes: a worker with a user of its own, no capability, in the
// router's network namespace, where the firewall lets it reach the resolvers above and nobody else.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::isolate {

struct ResolverPlace {
  std::string program;  // the ringfence-resolve binary
  unsigned uid = 0;
  std::vector<std::uint32_t> above;  // empty: there is none to ask
};

unsigned ResolverUid(unsigned uid_base);

struct ResolverStart {
  int router = -1;     // its network namespace
  int datagrams = -1;  // bound there
  int streams = -1;
};
struct StartedResolver {
  int pid = 0;
  os::UniqueFd socket;  // resolve/messages.h; non-blocking
};
Result<StartedResolver> StartResolver(const ResolverPlace& place, const ResolverStart& start);

}  // namespace ringfence::isolate

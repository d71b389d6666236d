#pragma once

// The network of a node's boxes: a router in a namespace of its own, one wire from it to each box,
// and the firewall in between. All of it hangs on descriptors of this process: when it dies, by
// SIGKILL too, the kernel takes namespace, wires and rules away. The jailer's; one thread.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "isolate/name_rules.h"
#include "isolate/network_rules.h"
#include "os/links.h"
#include "os/nftables.h"
#include "os/unique_fd.h"

namespace ringfence::isolate {

struct NetworkPlace {
  std::string node;
  std::string uplink;  // the interface to the world in our own namespace; empty: none
  NetworkAddresses addresses = {};
};

struct NetworkPlan {
  std::string lease;
  unsigned slot = 0;
  int pid = 0;  // a process in the box's namespace, ours to reap
  NetworkBox box;
};

class BoxNetwork {
 public:
  // Makes the router, everything closed.
  static Result<std::unique_ptr<BoxNetwork>> Open(NetworkPlace place);

  // The rules first, then the wire. On an error nothing of either is left.
  Status Attach(const NetworkPlan& plan);
  // What was denied so far; kNotFound: the lease has no network here.
  Result<model::Denied> DeniedSoFar(const std::string& lease);
  // Takes wire and rules away and says what was denied in all. OK and nothing when the lease has
  // no network here. After an error it can be called again.
  Result<model::Denied> Detach(const std::string& lease);

  // The router's port 53, and the ways of whoever serves it. Once.
  struct ResolverPort {
    os::UniqueFd datagrams;
    os::UniqueFd streams;
  };
  Result<ResolverPort> OpenResolverPort(const ResolverWays& ways);
  int router() const { return router_.get(); }  // its network namespace
  // What the resolver must know of a box; none: its grant names nobody, or nobody can be reached.
  std::optional<resolve::AddBox> NamesOf(const std::string& lease) const;
  // What a resolver asks for, if the grant of the box and the addresses allow it: kPermissionDenied
  // otherwise, with whom it would have opened.
  Status OpenName(const resolve::OpenName& wanted);

 private:
  struct Outside {  // the uplink's outer end
    os::Links links;
    os::Nftables firewall;
  };
  BoxNetwork(NetworkPlace place, os::UniqueFd router, os::Links links, os::Nftables firewall)
      : place_(std::move(place)),
        router_(std::move(router)),
        links_(std::move(links)),
        firewall_(std::move(firewall)) {}
  Status MakeRouter();
  Status MakeUplink();
  Status Wire(unsigned slot, int pid);
  std::vector<FirewallBox> Others(const std::string& lease) const;

  NetworkPlace place_;
  os::UniqueFd router_;
  os::Links links_;
  os::Nftables firewall_;
  std::optional<Outside> outside_;
  std::map<std::string, FirewallBox> boxes_;  // by lease
  std::uint32_t last_mark_ = 0;
};

}  // namespace ringfence::isolate

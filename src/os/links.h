#pragma once

// Network interfaces, addresses and routes, by rtnetlink: one request, one answer, no text.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

inline constexpr std::size_t kLinkNameBytesMax = 15;

struct LinkPair {
  std::string name;       // the end in the namespace of this Links
  std::string peer_name;  // the other end
  int peer_namespace = -1;
};

// Speaks to the namespace that it was opened in, wherever the thread goes later. One thread.
class Links {
 public:
  static Result<Links> Open();

  // Two ends of one wire (veth). When either namespace goes, both ends go. kConflict: a name is
  // taken.
  Status MakePair(const LinkPair& pair);
  // No IPv6 address of its own, then up.
  Status SetUp(const std::string& name);
  // Until what is sent goes out: the kernel drops it for a moment after both ends of a wire are up.
  Status AwaitRunning(const std::string& name);
  Status SetForwarding(const std::string& name);  // IPv4
  Status AddAddress(const std::string& name, std::uint32_t address, unsigned prefix);
  // Everything that has no other route goes there; the gateway need not be in the link's network.
  Status AddDefaultRoute(const std::string& name, std::uint32_t gateway);
  // Both ends. OK when it is not there.
  Status Remove(const std::string& name);
  // kNotFound: there is none of that name.
  Result<int> IndexOf(const std::string& name);

 private:
  explicit Links(UniqueFd socket) : socket_(std::move(socket)) {}
  struct Link {  // zeros where the answer has none
    int index = 0;
    bool running = false;
  };
  Result<Link> Ask(std::string& message, std::string_view what);
  Result<Link> Find(const std::string& name);

  UniqueFd socket_;
  std::uint32_t sequence_ = 0;
};

}  // namespace ringfence::os

#include "os/links.h"

#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "os/error.h"

namespace ringfence::os {
namespace {

constexpr std::size_t kAnswerBytesMax = 32 * 1024;
constexpr int kRunningTriesMax = 2500;
constexpr std::chrono::milliseconds kRunningPause{2};
constexpr std::uint8_t kNoIpv6Addresses = 1;  // IN6_ADDR_GEN_MODE_NONE

// A netlink message under construction: a header, a fixed part, attributes in attributes.
class Message {
 public:
  template <typename Fixed>
  Message(std::uint16_t type, std::uint16_t flags, const Fixed& fixed) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    Put(&header, sizeof header);
    Put(&fixed, sizeof fixed);
  }
  void Add(std::uint16_t type, const void* data, std::size_t size) {
    const rtattr head{static_cast<std::uint16_t>(sizeof(rtattr) + size), type};
    Put(&head, sizeof head);
    Put(data, size);
  }
  void Add(std::uint16_t type, const std::string& text) {
    Add(type, text.c_str(), text.size() + 1);
  }
  template <typename Number>
  void AddNumber(std::uint16_t type, Number number) {
    Add(type, &number, sizeof number);
  }
  std::size_t Begin(std::uint16_t type) {
    const std::size_t at = bytes_.size();
    const rtattr head{0, type};
    Put(&head, sizeof head);
    return at;
  }
  template <typename Fixed>
  void PutFixed(const Fixed& fixed) {
    Put(&fixed, sizeof fixed);
  }
  void End(std::size_t at) {
    const auto size = static_cast<std::uint16_t>(bytes_.size() - at);
    std::memcpy(bytes_.data() + at, &size, sizeof size);
  }
  std::string& bytes() { return bytes_; }

 private:
  void Put(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    bytes_.append((NLMSG_ALIGNTO - bytes_.size() % NLMSG_ALIGNTO) % NLMSG_ALIGNTO, '\0');
  }
  std::string bytes_;
};

std::uint32_t NetworkOrder(std::uint32_t address) { return __builtin_bswap32(address); }

// By the state that the kernel settles on when it begins to send, not by IFF_RUNNING, which it also
// shows before it has one.
bool IsRunning(nlmsghdr* answer) {
  auto* const link = static_cast<ifinfomsg*>(NLMSG_DATA(answer));
  auto left = static_cast<std::uint32_t>(IFLA_PAYLOAD(answer));
  for (auto* at = IFLA_RTA(link); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
    if (at->rta_type == IFLA_OPERSTATE && RTA_PAYLOAD(at) >= 1) {
      return *static_cast<const std::uint8_t*>(RTA_DATA(at)) == IF_OPER_UP;
    }
  }
  return false;
}

ifinfomsg AnyLink() { return ifinfomsg{}; }

}  // namespace

Result<Links> Links::Open() {
  UniqueFd socket_fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket_fd.valid()) {
    return ErrnoError("open rtnetlink");
  }
  const int on = 1;
  // An answer need not repeat the whole request.
  (void)setsockopt(socket_fd.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  return Links(std::move(socket_fd));
}

Result<Links::Link> Links::Ask(std::string& message, std::string_view what) {
  ++sequence_;
  nlmsghdr header{};
  std::memcpy(&header, message.data(), sizeof header);
  header.nlmsg_len = static_cast<std::uint32_t>(message.size());
  header.nlmsg_seq = sequence_;
  std::memcpy(message.data(), &header, sizeof header);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(socket_.get(), message.data(), message.size(), 0,
             reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) < 0) {
    return ErrnoError(what);
  }
  Link link;
  alignas(nlmsghdr) std::array<char, kAnswerBytesMax> answer{};
  for (;;) {
    const ssize_t got = recv(socket_.get(), answer.data(), answer.size(), 0);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return ErrnoError(what, got == 0 ? EPIPE : errno);
    }
    auto left = static_cast<std::uint32_t>(got);
    for (auto* at = reinterpret_cast<nlmsghdr*>(answer.data()); NLMSG_OK(at, left);
         at = NLMSG_NEXT(at, left)) {
      if (at->nlmsg_seq != sequence_) {
        continue;  // of a request that was given up
      }
      if (at->nlmsg_type == NLMSG_ERROR) {
        const auto* error = static_cast<const nlmsgerr*>(NLMSG_DATA(at));
        if (error->error != 0) {
          return ErrnoError(what, -error->error);
        }
        return link;
      }
      if (at->nlmsg_type == RTM_NEWLINK) {
        link.index = static_cast<const ifinfomsg*>(NLMSG_DATA(at))->ifi_index;
        link.running = IsRunning(at);
      }
    }
  }
}

Result<int> Links::IndexOf(const std::string& name) {
  RINGFENCE_ASSIGN(const Link link, Find(name));
  return link.index;
}

Result<Links::Link> Links::Find(const std::string& name) {
  Message message(RTM_GETLINK, 0, AnyLink());
  message.Add(IFLA_IFNAME, name);
  auto link = Ask(message.bytes(), "find the interface " + name);
  if (!link.has_value() && link.error().message.ends_with(std::strerror(ENODEV))) {
    return Error{Code::kNotFound, link.error().message};
  }
  return link;
}

Status Links::MakePair(const LinkPair& pair) {
  Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, AnyLink());
  message.Add(IFLA_IFNAME, pair.name);
  const std::size_t info = message.Begin(IFLA_LINKINFO);
  message.Add(IFLA_INFO_KIND, std::string("veth"));
  const std::size_t data = message.Begin(IFLA_INFO_DATA);
  const std::size_t peer = message.Begin(VETH_INFO_PEER);
  message.PutFixed(AnyLink());
  message.Add(IFLA_IFNAME, pair.peer_name);
  message.AddNumber(IFLA_NET_NS_FD, static_cast<std::uint32_t>(pair.peer_namespace));
  message.End(peer);
  message.End(data);
  message.End(info);
  RINGFENCE_TRY(Ask(message.bytes(), "make the interface " + pair.name));
  return {};
}

Status Links::SetUp(const std::string& name) {
  RINGFENCE_ASSIGN(const int index, IndexOf(name));
  ifinfomsg link{};
  link.ifi_index = index;
  Message quiet(RTM_NEWLINK, 0, link);
  const std::size_t families = quiet.Begin(IFLA_AF_SPEC);
  const std::size_t six = quiet.Begin(AF_INET6);
  quiet.AddNumber(IFLA_INET6_ADDR_GEN_MODE, kNoIpv6Addresses);
  quiet.End(six);
  quiet.End(families);
  const auto quieted = Ask(quiet.bytes(), "keep IPv6 off " + name);
  if (!quieted.has_value() && !quieted.error().message.ends_with(std::strerror(EAFNOSUPPORT))) {
    return quieted.error();  // a kernel without IPv6 has nothing to keep off
  }
  link.ifi_flags = IFF_UP;
  link.ifi_change = IFF_UP;
  Message up(RTM_NEWLINK, 0, link);
  RINGFENCE_TRY(Ask(up.bytes(), "bring up " + name));
  return {};
}

Status Links::AwaitRunning(const std::string& name) {
  for (int tries = 0; tries < kRunningTriesMax; ++tries) {
    RINGFENCE_ASSIGN(const Link link, Find(name));
    if (link.running) {
      return {};
    }
    std::this_thread::sleep_for(kRunningPause);
  }
  return Error{Code::kUnavailable, "the interface " + name + " does not come up"};
}

Status Links::SetForwarding(const std::string& name) {
  RINGFENCE_ASSIGN(const int index, IndexOf(name));
  ifinfomsg link{};
  link.ifi_index = index;
  Message message(RTM_NEWLINK, 0, link);
  const std::size_t families = message.Begin(IFLA_AF_SPEC);
  const std::size_t four = message.Begin(AF_INET);
  const std::size_t settings = message.Begin(IFLA_INET_CONF);
  message.AddNumber(IPV4_DEVCONF_FORWARDING, std::uint32_t{1});
  message.End(settings);
  message.End(four);
  message.End(families);
  RINGFENCE_TRY(Ask(message.bytes(), "let " + name + " forward"));
  return {};
}

Status Links::AddAddress(const std::string& name, std::uint32_t address, unsigned prefix) {
  RINGFENCE_ASSIGN(const int index, IndexOf(name));
  ifaddrmsg fixed{};
  fixed.ifa_family = AF_INET;
  fixed.ifa_prefixlen = static_cast<std::uint8_t>(prefix);
  fixed.ifa_index = static_cast<std::uint32_t>(index);
  Message message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, fixed);
  message.AddNumber(IFA_LOCAL, NetworkOrder(address));
  message.AddNumber(IFA_ADDRESS, NetworkOrder(address));
  RINGFENCE_TRY(Ask(message.bytes(), "give " + name + " an address"));
  return {};
}

Status Links::AddDefaultRoute(const std::string& name, std::uint32_t gateway) {
  RINGFENCE_ASSIGN(const int index, IndexOf(name));
  rtmsg fixed{};
  fixed.rtm_family = AF_INET;
  fixed.rtm_table = RT_TABLE_MAIN;
  fixed.rtm_protocol = RTPROT_STATIC;
  fixed.rtm_scope = RT_SCOPE_UNIVERSE;
  fixed.rtm_type = RTN_UNICAST;
  fixed.rtm_flags = RTNH_F_ONLINK;
  Message message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, fixed);
  message.AddNumber(RTA_GATEWAY, NetworkOrder(gateway));
  message.AddNumber(RTA_OIF, static_cast<std::uint32_t>(index));
  RINGFENCE_TRY(Ask(message.bytes(), "route through " + name));
  return {};
}

Status Links::Remove(const std::string& name) {
  const auto index = IndexOf(name);
  if (!index.has_value()) {
    return index.error().code == Code::kNotFound ? Status() : Status(index.error());
  }
  ifinfomsg link{};
  link.ifi_index = *index;
  Message message(RTM_DELLINK, 0, link);
  const auto removed = Ask(message.bytes(), "remove the interface " + name);
  // Its other end's namespace may have gone between the two.
  if (!removed.has_value() && !removed.error().message.ends_with(std::strerror(ENODEV))) {
    return removed.error();
  }
  return {};
}

}  // namespace ringfence::os

#include "os/internet.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "os/error.h"

namespace ringfence::os {
namespace {

sockaddr_in ToKernel(const Ipv4End& end) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(end.address);
  address.sin_port = htons(end.port);
  return address;
}

Ipv4End FromKernel(const sockaddr_in& address) {
  return Ipv4End{ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
}

Result<UniqueFd> Make(int type) {
  UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    return ErrnoError("making a socket");
  }
  return fd;
}

Status Bind(int socket, const Ipv4End& at) {
  const sockaddr_in address = ToKernel(at);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoError("binding port " + std::to_string(at.port));
  }
  return {};
}

bool WouldWait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Result<UniqueFd> BindUdp(const Ipv4End& at) {
  RINGFENCE_ASSIGN(UniqueFd fd, Make(SOCK_DGRAM));
  RINGFENCE_TRY(Bind(fd.get(), at));
  return fd;
}

Result<UniqueFd> ListenTcp(const Ipv4End& at, int waiting_max) {
  RINGFENCE_ASSIGN(UniqueFd fd, Make(SOCK_STREAM));
  RINGFENCE_TRY(Bind(fd.get(), at));
  if (::listen(fd.get(), waiting_max) != 0) {
    return ErrnoError("listening");
  }
  return fd;
}

Result<UniqueFd> ConnectUdp(const Ipv4End& to) {
  RINGFENCE_ASSIGN(UniqueFd fd, Make(SOCK_DGRAM));
  const sockaddr_in address = ToKernel(to);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoError("connecting a datagram socket");
  }
  return fd;
}

Result<UniqueFd> BeginConnectTcp(const Ipv4End& to) {
  RINGFENCE_ASSIGN(UniqueFd fd, Make(SOCK_STREAM));
  const sockaddr_in address = ToKernel(to);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    return ErrnoError("connecting");
  }
  return fd;
}

Result<Ipv4End> OwnEnd(int socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return ErrnoError("reading a socket's address");
  }
  return FromKernel(address);
}

Result<Datagram> ReceiveDatagram(int socket, std::size_t bytes_max) {
  Datagram datagram;
  datagram.bytes.resize(bytes_max);
  sockaddr_in from{};
  socklen_t size = sizeof from;
  // MSG_TRUNC: the whole length, also of what was cut.
  const ssize_t got = ::recvfrom(socket, datagram.bytes.data(), bytes_max, MSG_TRUNC,
                                 reinterpret_cast<sockaddr*>(&from), &size);
  if (got < 0) {
    if (WouldWait()) {
      return Error{Code::kUnavailable, "no datagram waits"};
    }
    return ErrnoError("receiving a datagram");
  }
  if (static_cast<std::size_t>(got) > bytes_max) {
    return Error{Code::kExhausted, "a datagram was longer than it may be"};
  }
  datagram.bytes.resize(static_cast<std::size_t>(got));
  datagram.from = FromKernel(from);
  return datagram;
}

void SendDatagram(int socket, ByteView bytes, const Ipv4End& to) {
  const sockaddr_in address = ToKernel(to);
  (void)::sendto(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

Result<Connection> AcceptFrom(int listener) {
  sockaddr_in from{};
  socklen_t size = sizeof from;
  UniqueFd fd(
      ::accept4(listener, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) {
    return Error{Code::kUnavailable, "no connection waits"};
  }
  return Connection{std::move(fd), FromKernel(from)};
}

Result<Bytes> ReceiveSome(int socket, std::size_t bytes_max) {
  Bytes bytes(bytes_max);
  const ssize_t got = ::recv(socket, bytes.data(), bytes_max, 0);
  if (got < 0) {
    if (WouldWait()) {
      return Error{Code::kUnavailable, "nothing has come yet"};
    }
    return ErrnoError("receiving");
  }
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

Result<std::size_t> SendSome(int socket, ByteView bytes) {
  const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent < 0) {
    if (WouldWait()) {
      return std::size_t{0};
    }
    return ErrnoError("sending");
  }
  return static_cast<std::size_t>(sent);
}

Result<std::vector<std::uint32_t>> OwnAddresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return ErrnoError("reading this machine's addresses");
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> held(list, ::freeifaddrs);
  std::vector<std::uint32_t> addresses;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET) {
      sockaddr_in address{};
      std::memcpy(&address, at->ifa_addr, sizeof address);
      addresses.push_back(ntohl(address.sin_addr.s_addr));
    }
  }
  return addresses;
}

}  // namespace ringfence::os

#pragma once

// IPv4 sockets for programs that speak a protocol of their own: close-on-exec and non-blocking from
// their first moment.

#include <compare>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

struct Ipv4End {
  std::uint32_t address = 0;  // host order
  std::uint16_t port = 0;     // 0 to bind: the kernel chooses
  auto operator<=>(const Ipv4End&) const = default;
};

Result<UniqueFd> BindUdp(const Ipv4End& at);
Result<UniqueFd> ListenTcp(const Ipv4End& at, int waiting_max);
// From a port that the kernel chooses at random; hears nobody but `to`.
Result<UniqueFd> ConnectUdp(const Ipv4End& to);
// Under way: writable once it is there, or has failed.
Result<UniqueFd> BeginConnectTcp(const Ipv4End& to);
Result<Ipv4End> OwnEnd(int socket);

struct Datagram {
  Bytes bytes;
  Ipv4End from;
};
// kUnavailable: none waits. kExhausted: it was longer, and is gone.
Result<Datagram> ReceiveDatagram(int socket, std::size_t bytes_max);
// One that does not get away is lost, as datagrams are.
void SendDatagram(int socket, ByteView bytes, const Ipv4End& to);

struct Connection {
  UniqueFd socket;
  Ipv4End from;
};
Result<Connection> AcceptFrom(int listener);  // kUnavailable: none waits

// What has come, up to `bytes_max`; empty at the end. kUnavailable: nothing yet.
Result<Bytes> ReceiveSome(int socket, std::size_t bytes_max);
// How many of them went; 0: no room now. Never raises SIGPIPE.
Result<std::size_t> SendSome(int socket, ByteView bytes);

// Of every interface in this thread's network namespace.
Result<std::vector<std::uint32_t>> OwnAddresses();

}  // namespace ringfence::os

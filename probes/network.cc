// Attacks over sockets: a neighbour, the host, its metadata service, the agent's own.

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sstream>
#include <thread>

#include "hex.h"
#include "util.h"

namespace ringfence::probe {
namespace {

constexpr int kConnectMs = 2000;
constexpr const char* kMetadataAddress = "169.254.169.254";
constexpr int kMetadataPort = 80;

// Gives the secret to whoever connects.
void Serve(Victim& victim, int listener) {
  std::thread([listener, secret = victim.secret] {
    for (;;) {
      const Fd one(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
      if (!one.ok() && errno != EINTR) {
        return;
      }
      (void)!write(one.get(), secret.data(), secret.size());
    }
  }).detach();
}

void PlantPort(Victim& victim) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (!fd.ok() || bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      listen(fd.get(), 8) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    victim.CouldNotPlant("bind", errno);
    return;
  }
  victim.facts["port"] = std::to_string(ntohs(at.sin_port));
  Serve(victim, fd.release());
}

sockaddr_un Abstract(const std::string& name, socklen_t& size) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path + 1, name.data(), std::min(name.size(), sizeof at.sun_path - 1));
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return at;
}

void PlantAbstract(Victim& victim) {
  const std::string name = "ringfence-probe-" + victim.facts["pid"];
  socklen_t size = 0;
  const sockaddr_un at = Abstract(name, size);
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.ok() || bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), size) != 0 ||
      listen(fd.get(), 8) != 0) {
    victim.CouldNotPlant("bind", errno);
    return;
  }
  victim.facts["socket"] = name;
  Serve(victim, fd.release());
}

// 0: connected; else the errno.
int Connect(int fd, const sockaddr* to, socklen_t size) {
  if (connect(fd, to, size) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) {
    return errno;
  }
  pollfd item{fd, POLLOUT, 0};
  if (poll(&item, 1, kConnectMs) != 1) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t length = sizeof error;
  (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

std::string ReadSecret(int fd) {
  pollfd item{fd, POLLIN, 0};
  (void)poll(&item, 1, kConnectMs);
  char bytes[32];
  const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
  return {bytes, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

int ConnectTcp(const Fd& fd, const std::string& address, std::int64_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1) {
    return EINVAL;
  }
  return Connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at);
}

Fd TcpSocket() { return Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

Outcome AttackNeighbour(const Input& input) {
  const std::int64_t port = std::max<std::int64_t>(input.Number("port"), 1);
  std::string refused;
  for (const std::string& address : {input.Get("victim_address"), std::string("127.0.0.1")}) {
    const Fd fd = TcpSocket();
    if (address.empty() || !fd.ok()) {
      continue;
    }
    const int error = ConnectTcp(fd, address, port);
    if (error == 0 && input.IsSecret(ReadSecret(fd.get()))) {
      return Leaked(32, "the neighbour gave its secret at " + address);
    }
    refused += (refused.empty() ? "" : "; ") + address + ": " +
               (error == 0 ? "somebody else answers there" : Words(error));
  }
  return Held(refused);
}

Outcome ConnectTo(const std::string& address, std::int64_t port, const char* what) {
  const Fd fd = TcpSocket();
  if (!fd.ok()) {
    return Refused("socket", errno);
  }
  const int error = ConnectTcp(fd, address, port);
  const std::string where = address + " port " + std::to_string(port);
  return error == 0 ? Leaked(0, std::string(what) + " answers at " + where) : Refused(where, error);
}

Outcome AttackHost(const Input& input) {
  const std::int64_t port = input.Number("host_port");
  if (port < 0) {
    return CannotTry("no port was told that the host listens on");
  }
  const std::string address = input.Get("host_address");
  return ConnectTo(address.empty() ? "127.0.0.1" : address, port, "a service of the host");
}

Outcome AttackMetadata(const Input& /*input*/) {
  return ConnectTo(kMetadataAddress, kMetadataPort, "the metadata service");
}

Outcome AttackAbstract(const Input& input) {
  socklen_t size = 0;
  const sockaddr_un at = Abstract(input.Get("socket"), size);
  const Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.ok()) {
    return Refused("socket", errno);
  }
  const int error = Connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), size);
  if (error != 0) {
    return Refused("connect", error);
  }
  return input.IsSecret(ReadSecret(fd.get())) ? Leaked(32, "the neighbour gave its secret")
                                              : Held("somebody else answers there");
}

// Those of programs that would do as they are told, wherever a mount shows them.
Outcome AttackServiceSocket(const Input& input) {
  std::vector<std::string> wanted = {"/run/docker.sock", "/run/containerd/containerd.sock",
                                     "/run/systemd/private", "/run/dbus/system_bus_socket",
                                     "/run/crio/crio.sock"};
  if (!input.Get("agent_socket").empty()) {
    wanted.insert(wanted.begin(), input.Get("agent_socket"));
  }
  std::vector<std::string> roots = {""};
  std::string mounts;
  (void)ReadFile("/proc/self/mounts", std::size_t{1} << 20U, mounts);
  std::istringstream lines(mounts);
  for (std::string source, at, rest; lines >> source >> at && std::getline(lines, rest);) {
    if (at != "/" && !at.starts_with("/proc") && !at.starts_with("/sys")) {
      roots.push_back(at);
    }
  }
  std::string refused = "none of them is in the box";
  for (const std::string& root : roots) {
    for (const std::string& path : wanted) {
      sockaddr_un at{};
      at.sun_family = AF_UNIX;
      const std::string whole = root + path;
      if (whole.size() >= sizeof at.sun_path) {
        continue;
      }
      std::memcpy(at.sun_path, whole.c_str(), whole.size() + 1);
      const Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int error = Connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at);
      if (error == 0) {
        return Leaked(0, "connected to " + whole);
      }
      refused = error == ENOENT || error == ENOTDIR ? refused : whole + ": " + Words(error);
    }
  }
  return Held(refused);
}

constexpr Code kCodes[] = {
    {"network-neighbour", AttackNeighbour, PlantPort},
    {"network-host", AttackHost},
    {"network-metadata", AttackMetadata},
    {"abstract-socket", AttackAbstract, PlantAbstract},
    {"service-socket", AttackServiceSocket},
};

}  // namespace

std::span<const Code> NetworkAttacks() { return kCodes; }

}  // namespace ringfence::probe

// Attacks over sockets: a neighbour, the host, its metadata service, the agent's own.

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

// Where a mount of the box shows something of the host's, "" for the box itself.
std::vector<std::string> Roots() {
  std::vector<std::string> roots = {""};
  std::string mounts;
  (void)ReadFile("/proc/self/mounts", std::size_t{1} << 20U, mounts);
  std::istringstream lines(mounts);
  for (std::string source, at, rest; lines >> source >> at && std::getline(lines, rest);) {
    if (at != "/" && !at.starts_with("/proc") && !at.starts_with("/sys") &&
        !at.starts_with("/dev")) {
      roots.push_back(at);
    }
  }
  return roots;
}

// Sockets of programs that would do as they are told, and whatever else lies where services have
// theirs.
std::vector<std::string> ServiceSockets(const std::string& root, const std::string& told) {
  constexpr std::size_t kPathsMax = 256;
  std::vector<std::string> paths;
  for (const std::string& path :
       {told, std::string("/run/docker.sock"), std::string("/run/containerd/containerd.sock"),
        std::string("/run/systemd/private"), std::string("/run/dbus/system_bus_socket")}) {
    if (!path.empty()) {
      paths.push_back(root + path);
    }
  }
  const auto add = [&paths](const std::string& path) {
    struct stat facts{};
    if (paths.size() < kPathsMax && lstat(path.c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode)) {
      paths.push_back(path);
    }
  };
  for (const std::string& name : ListFolder(root + "/run")) {
    add(root + "/run/" + name);
    for (const std::string& inner : ListFolder(root + "/run/" + name)) {
      add(root + "/run/" + name + "/" + inner);
    }
  }
  return paths;
}

Outcome AttackServiceSocket(const Input& input) {
  std::string refused = "none of them is in the box";
  for (const std::string& root : Roots()) {
    for (const std::string& path : ServiceSockets(root, input.Get("agent_socket"))) {
      sockaddr_un at{};
      at.sun_family = AF_UNIX;
      if (path.size() >= sizeof at.sun_path) {
        continue;
      }
      std::memcpy(at.sun_path, path.c_str(), path.size() + 1);
      const Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int error = Connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at);
      if (error == 0) {
        return Leaked(0, "connected to " + path);
      }
      refused = error == ENOENT || error == ENOTDIR ? refused : path + ": " + Words(error);
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

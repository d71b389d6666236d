#include "os/local_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/error.h"
#include "os/message_room.h"

namespace ringfence::os {
namespace {

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!path.starts_with('/') || path.size() >= sizeof address.sun_path) {
    return Error{Code::kInvalidArgument, "\"" + path + "\" cannot be a socket's path",
                 "write an absolute path of at most 107 bytes"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<unsigned> PeerUser(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return ErrnoError("ask who is at the other end of a socket");
  }
  return static_cast<unsigned>(peer.uid);
}

}  // namespace

Result<UniqueFd> ListenLocal(const ListenOptions& options) {
  RINGFENCE_ASSIGN(const sockaddr_un address, AddressOf(options.path));
  UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) {
    return ErrnoError("make a socket");
  }
  if (unlink(options.path.c_str()) != 0 && errno != ENOENT) {
    return ErrnoError("remove " + options.path);
  }
  // Nobody can connect before listen(), and by then it has its owner and mode.
  const mode_t before = umask(0177);
  const int bound =
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int why = errno;
  (void)umask(before);
  if (bound != 0) {
    return ErrnoError("bind " + options.path, why);
  }
  if (lchown(options.path.c_str(), options.owner_uid, static_cast<gid_t>(-1)) != 0) {
    return ErrnoError("give away " + options.path);
  }
  if (listen(listener.get(), 1) != 0) {
    return ErrnoError("listen at " + options.path);
  }
  return listener;
}

Result<UniqueFd> AcceptLocal(int listener, const ListenOptions& options) {
  UniqueFd peer(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!peer.valid()) {
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) {
      return Error{Code::kUnavailable, "nobody has connected"};
    }
    return ErrnoError("accept at " + options.path);
  }
  RINGFENCE_ASSIGN(const unsigned uid, PeerUser(peer.get()));
  if (uid != options.owner_uid) {
    return Error{Code::kPermissionDenied, "user " + std::to_string(uid) + " connected to " +
                                              options.path + ", which is not theirs"};
  }
  RINGFENCE_TRY(MakeMessageRoom(peer.get(), options.message_bytes_max));
  return peer;
}

Result<UniqueFd> ConnectToRoot(const std::string& path, std::size_t message_bytes_max) {
  RINGFENCE_ASSIGN(const sockaddr_un address, AddressOf(path));
  UniqueFd peer(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!peer.valid()) {
    return ErrnoError("make a socket");
  }
  if (connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoError("connect to " + path);
  }
  RINGFENCE_ASSIGN(const unsigned uid, PeerUser(peer.get()));
  if (uid != 0) {
    return Error{Code::kPermissionDenied,
                 "user " + std::to_string(uid) + " listens at " + path + ", not root"};
  }
  RINGFENCE_TRY(MakeMessageRoom(peer.get(), message_bytes_max));
  return peer;
}

}  // namespace ringfence::os

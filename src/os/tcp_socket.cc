#include "os/tcp_socket.h"

#include <sys/socket.h>

#include <cerrno>

#include "os/error.h"

namespace ringfence::os {

Result<UniqueFd> TcpSocket(IpVersion version) {
  UniqueFd fd(::socket(version == IpVersion::kV4 ? AF_INET : AF_INET6,
                       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    return ErrnoError("making a TCP socket");
  }
  return fd;
}

Result<std::optional<UniqueFd>> AcceptTcp(int listener) {
  UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) {
    return std::optional<UniqueFd>(std::move(fd));
  }
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    Error error = ErrnoError("accepting a connection");
    error.code = Code::kExhausted;
    error.hint = "raise the limit on open files";
    return error;
  }
  // All else is said of one connection (accept(2) passes on its pending network errors).
  return std::optional<UniqueFd>();
}

}  // namespace ringfence::os

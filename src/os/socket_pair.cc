#include "os/socket_pair.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "os/error.h"
#include "os/message_room.h"

namespace ringfence::os {
namespace {

// The kernel keeps its own bookkeeping in the same buffer.
constexpr std::size_t kBufferOverhead = 64 * 1024;

union ControlBuffer {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int) * kPassedFdsMax)> bytes;
};

void TakeFds(msghdr& header, std::vector<UniqueFd>& into) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      into.emplace_back(fd);
    }
  }
}

}  // namespace

Status MakeMessageRoom(int socket, std::size_t message_bytes_max) {
  const int wanted = static_cast<int>(message_bytes_max + kBufferOverhead);
  // With the right to do so the system's own limit does not matter.
  if (setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &wanted, sizeof wanted) != 0 &&
      setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted) != 0) {
    return ErrnoError("set socket buffer");
  }
  int got = 0;
  socklen_t size = sizeof got;
  if (getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &got, &size) != 0) {
    return ErrnoError("read socket buffer size");
  }
  if (static_cast<std::size_t>(got) < message_bytes_max + 4096) {
    return Error{Code::kExhausted,
                 "socket buffers are limited to " + std::to_string(got) + " bytes",
                 "raise sysctl net.core.wmem_max to 262144 or more"};
  }
  return {};
}

Result<SocketPair> MakeSocketPair(std::size_t message_bytes_max) {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    return ErrnoError("make socket pair");
  }
  SocketPair pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
  RINGFENCE_TRY(MakeMessageRoom(pair.first.get(), message_bytes_max));
  RINGFENCE_TRY(MakeMessageRoom(pair.second.get(), message_bytes_max));
  return pair;
}

Result<Message> ReceiveMessage(int socket, std::size_t bytes_max) {
  Message message;
  message.bytes.resize(bytes_max);
  iovec part{message.bytes.data(), message.bytes.size()};
  ControlBuffer control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = &control;
  header.msg_controllen = sizeof control;
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Error{Code::kUnavailable, "no message yet"};
    }
    if (errno == ECONNRESET) {
      return Error{Code::kNotFound, "the other side has closed"};
    }
    return ErrnoError("receive message");
  }
  TakeFds(header, message.fds);
  if ((static_cast<unsigned>(header.msg_flags) & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return Error{Code::kExhausted, "message is longer than allowed"};
  }
  if (got == 0) {
    return Error{Code::kNotFound, "the other side has closed"};
  }
  message.bytes.resize(static_cast<std::size_t>(got));
  return message;
}

Status SendMessage(int socket, ByteView bytes, const std::vector<int>& fds) {
  if (fds.size() > kPassedFdsMax) {
    return Error{Code::kInternal, "too many descriptors in one message"};
  }
  // sendmsg does not write through this pointer.
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  ControlBuffer control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = &control;
    header.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(rights), fds.data(), sizeof(int) * fds.size());
  }
  ssize_t put = 0;
  do {
    put = sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (put < 0 && errno == EINTR);
  if (put >= 0) {
    return {};
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
    return Error{Code::kUnavailable, "no room for the message now"};
  }
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
    return Error{Code::kNotFound, "the other side has closed"};
  }
  return ErrnoError("send message");
}

Status SetNonBlocking(int fd, bool on) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) != 0) {
    return ErrnoError("set non-blocking");
  }
  return {};
}

void ShutDown(int socket) { (void)shutdown(socket, SHUT_RDWR); }

}  // namespace ringfence::os

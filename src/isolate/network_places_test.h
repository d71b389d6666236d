#pragma once

// Processes in network namespaces of their own, and sockets inside them, for tests.

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>

#include "os/network_namespace.h"

namespace ringfence::isolate {

inline constexpr int kAnswerMs = 3000;  // within it an answer has come, on the slowest machine
inline constexpr int kSilenceMs =
    300;  // where none is expected: a late one would be missed, never assumed

// A process in a network namespace of its own, that does nothing.
class Place {
 public:
  Place() {
    int ready[2];
    EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const char ok = unshare(CLONE_NEWNET) == 0 ? 'y' : 'n';
      (void)!write(ready[1], &ok, 1);
      for (;;) {
        pause();
      }
    }
    char ok = 'n';
    EXPECT_EQ(read(ready[0], &ok, 1), 1);
    EXPECT_EQ(ok, 'y');
    close(ready[0]);
    close(ready[1]);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }
  void In(const std::function<void()>& work) const {
    const os::UniqueFd inside = std::move(os::NetworkNamespaceOf(pid_).value());
    ASSERT_TRUE(os::InNetworkNamespace(inside.get(), [&]() -> Status {
                  work();
                  return {};
                }).has_value());
  }

 private:
  int pid_ = 0;
};

inline sockaddr_in At(std::uint32_t address, int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(address);
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  return at;
}

inline os::UniqueFd Socket(const Place& place, int type, int protocol = 0) {
  int fd = -1;
  place.In([&] { fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol); });
  EXPECT_GE(fd, 0);
  return os::UniqueFd(fd);
}

inline os::UniqueFd Bound(const Place& place, int type, int port) {
  os::UniqueFd fd = Socket(place, type);
  const sockaddr_in any = At(0, port);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  if (type == SOCK_STREAM) {
    EXPECT_EQ(listen(fd.get(), 8), 0);
  }
  return fd;
}

// 0: connected; else the errno, ETIMEDOUT when nothing came within the time.
inline int ConnectFrom(const os::UniqueFd& fd, std::uint32_t address, int port, int wait_ms) {
  const sockaddr_in to = At(address, port);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) {
    return errno;
  }
  pollfd item{fd.get(), POLLOUT, 0};
  if (poll(&item, 1, wait_ms) == 0) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t size = sizeof error;
  EXPECT_EQ(getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size), 0);
  return error;
}

inline int Connect(const Place& from, std::uint32_t address, int port, int wait_ms = kAnswerMs) {
  return ConnectFrom(Socket(from, SOCK_STREAM), address, port, wait_ms);
}

inline bool Hears(const os::UniqueFd& fd, int wait_ms) {
  pollfd item{fd.get(), POLLIN, 0};
  return poll(&item, 1, wait_ms) == 1;
}

}  // namespace ringfence::isolate

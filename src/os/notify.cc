#include "os/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "os/error.h"
#include "os/log.h"
#include "os/unique_fd.h"

namespace ringfence::os {

void NotifyManager(std::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || *path == '\0') {
    return;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t size = std::strlen(path);
  if ((path[0] != '/' && path[0] != '@') || size >= sizeof address.sun_path) {
    Log(Level::kWarning, "manager_not_told", {{"why", "NOTIFY_SOCKET is not a socket's address"}});
    return;
  }
  std::memcpy(address.sun_path, path, size);
  if (path[0] == '@') {
    address.sun_path[0] = '\0';  // an abstract address
  }
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size);
  if (!socket.valid() || sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address), length) < 0) {
    Log(Level::kWarning, "manager_not_told", {{"why", ErrnoError(path).message}});
  }
}

std::string ReloadingState() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  const long long microseconds = static_cast<long long>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
  return "RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds);
}

}  // namespace ringfence::os

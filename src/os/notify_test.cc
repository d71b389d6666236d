// Goal: a service manager hears exactly what it is told, by a path or an abstract address, and
// without one nothing happens.
// Method: real datagram sockets in the place of the manager's.

#include "os/notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "os/unique_fd.h"

namespace ringfence::os {
namespace {

// Listens at `name`; a leading '@' makes it abstract.
UniqueFd Manager(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') {
    address.sun_path[0] = '\0';
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
            0);
  return fd;
}

std::string Heard(const UniqueFd& manager) {
  char text[256];
  const ssize_t got = recv(manager.get(), text, sizeof text, 0);
  return got < 0 ? "(nothing)" : std::string(text, static_cast<std::size_t>(got));
}

class NotifyTest : public testing::Test {
 protected:
  ~NotifyTest() override { (void)unsetenv("NOTIFY_SOCKET"); }
};

TEST_F(NotifyTest, TheManagerHearsIt) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("ringfence-notify-" + std::to_string(getpid()));
  for (const std::string& name : {path, "@" + path}) {
    const UniqueFd manager = Manager(name);
    (void)setenv("NOTIFY_SOCKET", name.c_str(), 1);
    NotifyManager("READY=1\nSTATUS=serving");
    EXPECT_EQ(Heard(manager), "READY=1\nSTATUS=serving") << name;
    NotifyManager(ReloadingState());
    EXPECT_TRUE(Heard(manager).starts_with("RELOADING=1\nMONOTONIC_USEC=")) << name;
  }
  (void)unlink(path.c_str());
}

TEST_F(NotifyTest, WithoutAManagerItDoesNotMatter) {
  NotifyManager("READY=1");
  for (const char* wrong : {"", "relative", "/nobody/listens/here"}) {
    (void)setenv("NOTIFY_SOCKET", wrong, 1);
    NotifyManager("READY=1");
  }
  (void)setenv("NOTIFY_SOCKET", ("/" + std::string(200, 'x')).c_str(), 1);
  NotifyManager("READY=1");
}

}  // namespace
}  // namespace ringfence::os

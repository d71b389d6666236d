#include "store/harness_test.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

namespace ringfence::store {
namespace {

std::string Output(const std::string& command) {
  FILE* const pipe = ::popen(command.c_str(), "r");  // NOLINT(cert-env33-c): the tests' own script
  std::string text;
  std::array<char, 4096> buffer{};
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    text.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  EXPECT_EQ(status, 0) << command;
  return text;
}

std::string Postgres(const std::string& command, const std::string& folder) {
  return Output("RINGFENCE_OWNER=" + std::to_string(::getpid()) +
                " " RINGFENCE_SOURCE_DIR "/tests/postgres.sh " + command + " " + folder);
}

std::filesystem::path NewFolder() {
  std::error_code ignored;
  const auto room = std::filesystem::space("/dev/shm", ignored);
  const bool in_memory = !ignored && room.available > 512U * 1024 * 1024;
  std::string name(in_memory ? "/dev/shm/ringfence-test-XXXXXX" : "/tmp/ringfence-test-XXXXXX");
  EXPECT_NE(::mkdtemp(name.data()), nullptr);
  return name;
}

// "postgresql://ringfence@/NAME?host=FOLDER", as tests/postgres.sh prints it.
std::string FolderOf(const std::string& url) { return url.substr(url.find("host=") + 5); }

}  // namespace

std::string NewPostgresDatabase() {
  std::ifstream note(RINGFENCE_BINARY_DIR "/tests/postgres");
  std::string folder;
  if (note && std::getline(note, folder) && std::filesystem::exists(folder + "/data")) {
    return Postgres("database", folder);
  }
  static const OwnPostgres own;
  return Postgres("database", own.folder());
}

OwnPostgres::OwnPostgres() : folder_(NewFolder()) { url_ = Script("start"); }
OwnPostgres::~OwnPostgres() { Script("stop"); }

std::string OwnPostgres::Script(const std::string& command) const {
  return Postgres(command, folder_);
}

std::string OwnPostgres::Sql(const std::string& sql) const {
  return Output("psql -qXAt '" + url_ + "' -c \"" + sql + "\"");
}

Proxy::Proxy(const std::string& url) : folder_(NewFolder()) {
  target_ = FolderOf(url) + "/.s.PGSQL.5432";
  url_ = url.substr(0, url.find("host=") + 5) + folder_.string();
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder_ / ".s.PGSQL.5432").c_str(), sizeof address.sun_path - 1);
  EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(listener_, 16), 0);
  acceptor_ = std::jthread([this](const std::stop_token& stop) { Accept(stop); });
}

Proxy::~Proxy() {
  acceptor_.request_stop();
  acceptor_.join();
  ::close(listener_);
  std::filesystem::remove_all(folder_);
}

void Proxy::Cut(OnCommit when, bool closed) {
  close_then_ = closed;
  on_commit_ = when;
}

void Proxy::Accept(const std::stop_token& stop) {
  std::vector<std::jthread> lines;
  while (!stop.stop_requested()) {
    pollfd wanted{listener_, POLLIN, 0};
    if (::poll(&wanted, 1, 20) <= 0) {
      continue;
    }
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0 || closed_) {
      ::close(client);
      continue;
    }
    lines.emplace_back([this, client](const std::stop_token& end) { Serve(client, end); });
  }
}

void Proxy::Serve(int client, const std::stop_token& stop) {
  const int server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, target_.c_str(), sizeof address.sun_path - 1);
  bool going = ::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  std::vector<char> buffer(1 << 16);
  while (going && !stop.stop_requested()) {
    std::array<pollfd, 2> ends{{{client, POLLIN, 0}, {server, POLLIN, 0}}};
    if (::poll(ends.data(), ends.size(), 20) <= 0) {
      continue;
    }
    for (std::size_t i = 0; i < 2 && going; ++i) {
      if (ends[i].revents == 0) {
        continue;
      }
      const ssize_t got = ::read(ends[i].fd, buffer.data(), buffer.size());
      OnCommit cut = OnCommit::kPass;
      constexpr std::string_view kCommit("COMMIT\0", 7);  // not READ COMMITTED
      if (i == 0 && got > 0 &&
          std::string_view(buffer.data(), static_cast<std::size_t>(got)).find(kCommit) !=
              std::string_view::npos) {
        cut = on_commit_.exchange(OnCommit::kPass);
      }
      going = got > 0 && cut != OnCommit::kCutBefore &&
              ::write(ends[1 - i].fd, buffer.data(), static_cast<std::size_t>(got)) == got;
      if (cut != OnCommit::kPass) {
        closed_ = close_then_.load();
        if (cut == OnCommit::kCutAfter) {
          (void)!::read(server, buffer.data(),
                        buffer.size());  // it is done, and nobody hears of it
        }
        going = false;
      }
    }
  }
  ::close(server);
  ::close(client);
}

}  // namespace ringfence::store

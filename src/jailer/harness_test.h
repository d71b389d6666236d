#pragma once

// A real jailer for tests: the binary as built, as root, with the real runtime and kernel, a
// simulated driver, and this test program itself as the agent. The agent's process only passes its
// end of the pair back here and waits, so that a test can drive it (or misuse it) directly.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/encoding.h"
#include "base/json.h"
#include "base/time.h"
#include "crypto/random.h"
#include "gpu/simulated_root.h"
#include "isolate/capabilities.h"
#include "isolate/grant.h"
#include "isolate/jailer_client.h"
#include "isolate/join_token.h"
#include "os/cgroup.h"
#include "os/file.h"
#include "os/process.h"
#include "os/socket_pair.h"

namespace ringfence::jailer {

inline constexpr unsigned kTestAgentUid = 64990;
inline constexpr const char* kRelayWord = "relay-to-test";

inline std::string Binary(const std::string& name) {
  return std::string(RINGFENCE_BINARY_DIR) + "/" + name;
}

struct Ran {
  std::string exit;  // the exit line
  std::string out;
  std::string err;
};

inline std::string ReadToEnd(int fd) {
  std::string text;
  char chunk[4096];
  for (ssize_t got = 0; (got = read(fd, chunk, sizeof chunk)) > 0;) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  return text;
}

class JailerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto missing =
        isolate::MissingForBoxes({Binary("ringfence-init"), Binary("ringfence-worker")});
    if (!missing.empty()) {
      GTEST_SKIP() << "needs root and a machine that can run boxes: " << missing[0];
    }
    ASSERT_TRUE(os::Exists(Binary("ringfence-jailer")));
    char name[] = "/tmp/ringfence-jailer-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    ASSERT_EQ(chmod(folder_.c_str(), 0711), 0);
    // As on a node whose state is nobody else's business: closed to the box's and worker's users.
    ASSERT_TRUE(os::MakeDirs(folder_ + "/private", 0700).has_value());
    driver_root_ = folder_ + "/private/driver";
    ASSERT_TRUE(gpu::MakeSimulatedRoot(driver_root_, Binary("sim/lib"), Scenario()).has_value());
    node_ = crypto::RandomId("test");
    WriteToken();
    listener_ = Listen();
  }

  void TearDown() override {
    client_.reset();
    socket_.Reset();
    if (jailer_pid_ != 0) {
      Stop();
    }
    if (!folder_.empty()) {
      std::filesystem::remove_all(folder_);
      os::RemoveCgroupIfUnused("/ringfence/" + node_);
    }
  }

  virtual std::string Scenario() { return gpu::DefaultScenario("test"); }

  void WriteToken() {
    isolate::JoinToken token;
    token.server = "localhost:1";
    token.ca = std::string(64, 'a');
    token.grant_key = server_.public_key();
    token.secret = SecretBytes(ByteView(join_secret_));
    ASSERT_TRUE(
        os::WriteFile(folder_ + "/private/token", AsBytes(isolate::FormatJoinToken(token)), 0600)
            .has_value());
  }

  os::UniqueFd Listen() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ + "/relay";
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    os::UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(chmod(path.c_str(), 0777), 0);
    EXPECT_EQ(listen(fd.get(), 4), 0);
    return fd;
  }

  virtual std::vector<std::string> Arguments() {
    return {"ringfence-jailer",
            "--mounts",
            mounts_,
            "--state",
            folder_ + "/private/state",
            "--agent-exec",
            "/proc/self/exe",
            "--agent-uid",
            std::to_string(kTestAgentUid),
            "--agent-gid",
            std::to_string(kTestAgentUid),
            "--worker",
            Binary("ringfence-worker"),
            "--init",
            Binary("ringfence-init"),
            "--driver-root",
            driver_root_,
            "--node",
            node_,
            "--join-token-file",
            folder_ + "/private/token",
            "--",
            kRelayWord,
            folder_ + "/relay"};
  }

  // Starts the jailer; its agent's end of the pair is in socket_.
  void Launch() {
    std::vector<std::string> arguments = Arguments();
    for (std::string& word : arguments) {
      if (word == "/proc/self/exe") {
        word = std::filesystem::read_symlink(word).string();
      }
    }
    os::SpawnOptions spawn;
    spawn.path = Binary("ringfence-jailer");
    spawn.arguments = arguments;
    spawn.environment = {"PATH=/usr/bin:/bin", "SECRET_OF_THE_HOST=1"};
    spawn.fds = {{1, 1}, {2, 2}};
    const auto pid = os::Spawn(spawn);
    ASSERT_TRUE(pid.has_value()) << pid.error().message;
    jailer_pid_ = *pid;
    Accept();
  }

  // Takes the agent's end of the pair from the agent's process.
  void Accept() {
    const os::UniqueFd process = std::move(os::OpenProcess(jailer_pid_).value());
    std::vector<os::PollItem> either = {{listener_.get()}, {process.get()}};
    ASSERT_TRUE(os::Poll(either, std::nullopt).has_value());
    ASSERT_TRUE(either[0].ready) << "the jailer ended before its agent ran";
    relay_.Reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    auto message = os::ReceiveMessage(relay_.get(), 64);
    ASSERT_TRUE(message.has_value()) << message.error().message;
    ASSERT_EQ(message->fds.size(), 1U);
    socket_ = std::move(message->fds[0]);
  }

  void Start() {
    Launch();
    if (!HasFatalFailure()) {
      client_ = isolate::JailerClient::Attach(std::move(socket_));
    }
  }

  // Ends the agent (closing the relay lets it exit) and waits for the jailer.
  os::Ended Stop() {
    client_.reset();
    socket_.Reset();
    relay_.Reset();
    const os::Ended ended = os::WaitFor(jailer_pid_);
    jailer_pid_ = 0;
    return ended;
  }

  isolate::Grant MakeGrant(std::vector<std::string> command, std::vector<std::string> gpus = {}) {
    isolate::Grant grant;
    grant.lease = crypto::RandomId("lease");
    grant.node = node_;
    grant.tenant = "acme/research/vision";
    grant.principal = "alice";
    grant.gpus = std::move(gpus);
    grant.command = std::move(command);
    grant.memory_bytes_max = std::uint64_t{256} << 20U;
    grant.cpu_millis_max = 2000;
    grant.pids_max = 128;
    grant.issued = clock_.Now();
    grant.start_before = grant.issued + std::chrono::minutes(5);
    grant.runtime_max = std::chrono::minutes(2);
    return grant;
  }

  static Ran Collect(isolate::StartedBox box) {
    Ran ran;
    ran.out = ReadToEnd(box.out.get());
    ran.err = ReadToEnd(box.err.get());
    ran.exit = ReadToEnd(box.exit.get());
    return ran;
  }

  Ran Run(const isolate::Grant& grant) {
    auto box = client_->Start(isolate::SealGrant(server_, grant));
    if (!box.has_value()) {
      return Ran{"not started: " + box.error().message, "", ""};
    }
    return Collect(std::move(*box));
  }
  Ran Shell(const std::string& script, std::vector<std::string> gpus = {}) {
    return Run(MakeGrant({"sh", "-c", script}, std::move(gpus)));
  }

  std::vector<std::string> Gpus() {
    std::vector<std::string> uuids;
    const auto text = client_->Inventory();
    EXPECT_TRUE(text.has_value()) << text.error().message;
    const Json json = ParseJson(*text, 1 << 20U).value();
    for (const Json& gpu : json.at("gpus").as_array()) {
      uuids.emplace_back(gpu.at("uuid").as_string());
    }
    return uuids;
  }

  Code StartCode(const std::string& envelope) {
    const auto box = client_->Start(envelope);
    EXPECT_FALSE(box.has_value());
    return box.has_value() ? Code::kInternal : box.error().code;
  }

  std::string folder_;
  std::string driver_root_;
  std::string mounts_;  // what the node declares
  std::string node_;
  crypto::SigningKey server_ = crypto::SigningKey::Generate();
  const Bytes join_secret_ = crypto::RandomBytes(32);
  SystemClock clock_;
  os::UniqueFd listener_;
  struct : os::UniqueFd {
    using os::UniqueFd::Reset;
    void Reset(int fd) { os::UniqueFd::operator=(os::UniqueFd(fd)); }
  } relay_;
  os::UniqueFd socket_;
  std::unique_ptr<isolate::JailerClient> client_;
  int jailer_pid_ = 0;
};

}  // namespace ringfence::jailer

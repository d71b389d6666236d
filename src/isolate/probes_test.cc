// Goal: every probe of the table works: all walls standing it is held, with its control's walls
// away, and only those, it gets through; and each wall of a control is needed. Method: victim and
// attacker in real boxes, as the jailer builds them, run by the real runtime. The "host" is this
// test's own mount and network namespace, so that what an attack gets through to is the test's.
// Where a machine lacks what an attack is about, the control must say so.

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "base/encoding.h"
#include "base/json.h"
#include "crypto/random.h"
#include "crypto/sha256.h"
#include "gpu/scenario.h"
#include "gpu/scrub.h"
#include "gpu/simulated_root.h"
#include "isolate/box.h"
#include "isolate/capabilities.h"
#include "isolate/probe_table.h"
#include "isolate/runtime.h"
#include "os/cgroup.h"
#include "os/file.h"
#include "os/links.h"
#include "os/memory_file.h"
#include "os/mount.h"
#include "os/privileges.h"
#include "os/process.h"

namespace ringfence::isolate {
namespace {

std::string Binary(const std::string& name) {
  return std::string(RINGFENCE_BINARY_DIR) + "/" + name;
}

struct Said {
  std::string text;  // all that it printed
  std::string result;
  std::string detail;
  std::int64_t leaked_bytes = 0;
};

struct RunningBox {
  BoxPlan plan;
  LaunchedBox launched;
};

class ProbesTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string init = Binary("ringfence-init");
    const auto missing = MissingForBoxes({init, Binary("ringfence-probe")});
    if (!missing.empty()) {
      GTEST_SKIP() << "needs root and a machine that can run boxes: " << missing[0];
    }
    ASSERT_TRUE(os::AdoptOrphans().has_value());
    ASSERT_TRUE(os::MakeDirs("/run/ringfence").has_value());
    ASSERT_TRUE(os::EnterNewNamespaces({.mount = true, .network = true}).has_value());
    ASSERT_TRUE(os::MountTmpfs("/run/ringfence", {256 << 20U, 0711, true, true}).has_value());
    place_.runtime = FindRuntime()->path;
    place_.init = init;
    place_.probe = Binary("ringfence-probe");
    place_.run_folder = "/run/ringfence";
    place_.node = crypto::RandomId("probes");
    place_.uid_base = 1'000'000'000;
    ASSERT_TRUE(PrepareBoxPlace(place_).has_value());
    MakeHost();
  }

  void TearDown() override {
    os::RemoveCgroupIfUnused("/ringfence/" + place_.node);
    (void)os::UnmountIfMounted("/run/ringfence");
  }

  // What an attack on the host would find: a service, a metadata service, a socket of the agent's.
  void MakeHost() {
    os::Links links = std::move(os::Links::Open().value());
    ASSERT_TRUE(links.SetUp("lo").has_value());
    ASSERT_TRUE(links.AddAddress("lo", ntohl(inet_addr("169.254.169.254")), 32).has_value());
    service_ = Listen("127.0.0.1", 0, service_port_);
    int port = 80;
    metadata_ = Listen("169.254.169.254", 80, port);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", "/run/ringfence/agent.sock");
    agent_ = os::UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(agent_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(agent_.get(), 4), 0);
    ASSERT_EQ(chmod(address.sun_path, 0600), 0);
  }

  static os::UniqueFd Listen(const char* address, int port, int& bound) {
    os::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = inet_addr(address);
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(listen(fd.get(), 4), 0);
    socklen_t size = sizeof at;
    EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
    bound = ntohs(at.sin_port);
    return fd;
  }

  RunningBox Start(const std::vector<std::string>& words, const std::vector<Wall>& away,
                   unsigned slot, const std::vector<gpu::WantedGpu>& gpus) {
    RunningBox box;
    BoxPlan& plan = box.plan;
    plan.grant.lease = crypto::RandomId("lease");
    plan.grant.tenant = "tenant" + std::to_string(slot);
    plan.grant.command = {kBoxProbePath};
    plan.grant.command.insert(plan.grant.command.end(), words.begin(), words.end());
    plan.grant.memory_bytes_max = std::uint64_t{256} << 20U;
    plan.grant.cpu_millis_max = 2000;
    plan.grant.pids_max = 64;
    plan.slot = slot;
    if (!gpus.empty()) {
      plan.files = std::move(gpu::FilesFor(driver_root_, gpus).value());
    }
    std::vector<std::string> names;
    for (const Wall wall : away) {
      names.emplace_back(Name(wall));
    }
    if (!names.empty()) {
      auto token = WallsAway::ForProbe(plan.grant.command, names);
      EXPECT_TRUE(token.has_value()) << token.error().message;
      plan.walls_away = std::move(*token);
    }
    const auto built = BuildBox(place_, plan);
    EXPECT_TRUE(built.has_value()) << built.error().message;
    auto launched = LaunchBox(place_, plan);
    EXPECT_TRUE(launched.has_value()) << launched.error().message;
    box.launched = std::move(*launched);
    EXPECT_EQ(os::WaitFor(box.launched.runtime_pid).code, 0)
        << RuntimeComplaint(place_, plan.grant.lease);
    return box;
  }

  void End(RunningBox& box) {
    const std::string& lease = box.plan.grant.lease;
    const auto pid = BoxPid(place_, lease);
    const Status gone = TakeDownBox(place_, lease, box.plan.files);
    EXPECT_TRUE(gone.has_value()) << gone.error().message;
    if (pid.has_value()) {
      (void)os::WaitFor(*pid);
    }
  }

  static std::string ReadLine(int fd) {
    std::string line;
    for (char c = 0; read(fd, &c, 1) == 1 && c != '\n';) {
      line += c;
    }
    return line;
  }
  static std::string ReadToEnd(int fd) {
    std::string text;
    char chunk[4096];
    for (ssize_t got = 0; (got = read(fd, chunk, sizeof chunk)) > 0;) {
      text.append(chunk, static_cast<std::size_t>(got));
    }
    return text;
  }

  // The last line is the result.
  static Said Understand(std::string text) {
    Said said;
    said.text = text;
    while (!text.empty() && text.back() == '\n') {
      text.pop_back();
    }
    const auto json = ParseJson(text.substr(text.rfind('\n') + 1), 1 << 20U);
    const JsonObject* line = json.has_value() ? json->if_object() : nullptr;
    if (line != nullptr && line->contains("result")) {
      said.result = line->at("result").as_string();
      said.detail = line->at("detail").as_string();
      said.leaked_bytes = line->at("leaked_bytes").to_number<std::int64_t>();
    }
    return said;
  }

  // Victim and attacker, with these walls away from both.
  Said Run(const Probe& probe, const std::vector<Wall>& away) {
    const Bytes secret = crypto::RandomBytes(32);
    std::vector<std::string> words = {probe.name,
                                      "attack",
                                      "digest=" + Hex(crypto::Sha256({ByteView(secret)})),
                                      "host_port=" + std::to_string(service_port_),
                                      "agent_socket=/run/ringfence/agent.sock",
                                      "milliseconds=200"};
    const auto gpus = [&](std::size_t first) {
      return probe.gpus == 0 ? std::vector<gpu::WantedGpu>()
                             : std::vector<gpu::WantedGpu>{cards_[first]};
    };
    if (probe.gpus > 0) {
      MakeCards();
      words.push_back("victim_gpu=" + cards_[0].uuid);
    }
    std::optional<RunningBox> victim;
    if (probe.victim) {
      victim = Start({probe.name, "victim", "secret=" + Hex(secret)}, away, 1, gpus(0));
      words.push_back("victim_lease=" + victim->plan.grant.lease);
      AddFacts(ReadLine(victim->launched.out.get()), words);
      if (!probe.victim_ends_before.empty()) {
        End(*victim);
        victim.reset();
        if (probe.gpus > 0 && std::find(away.begin(), away.end(), Wall::kScrub) == away.end()) {
          const auto scrubbed = gpu::Scrub(driver_root_, {cards_[0].uuid});
          EXPECT_TRUE(scrubbed.has_value()) << scrubbed.error().message;
        }
      }
    }
    RunningBox attacker = Start(words, away, 2, gpus(probe.same_gpu ? 0 : 1));
    const std::string text = ReadToEnd(attacker.launched.out.get());
    Said said = Understand(text);
    if (said.result.empty()) {
      said.text += ReadToEnd(attacker.launched.err.get());
    }
    End(attacker);
    if (victim.has_value()) {
      End(*victim);
    }
    return said;
  }

  static void AddFacts(const std::string& line, std::vector<std::string>& words) {
    const auto json = ParseJson(line, 1 << 20U);
    ASSERT_TRUE(json.has_value()) << "the victim said: " << line;
    ASSERT_TRUE(json->at("ready").as_bool());
    for (const auto& fact : json->at("facts").as_object()) {
      words.push_back(std::string(fact.key()) + "=" + std::string(fact.value().as_string()));
    }
  }

  void MakeCards() {
    driver_root_ = "/run/ringfence/driver-root";
    cards_ = {{"GPU-0a0b0c0d-0000-4000-8000-000000000001", 0},
              {"GPU-0a0b0c0d-0000-4000-8000-000000000002", 1}};
    const std::string scenario = R"({"gpus":[{"memory_mib":40,"uuid":")" + cards_[0].uuid +
                                 R"("},{"memory_mib":40,"uuid":")" + cards_[1].uuid + R"("}]})";
    const Status made = gpu::MakeSimulatedRoot(driver_root_, Binary("sim/lib"), scenario);
    ASSERT_TRUE(made.has_value()) << made.error().message;
  }

  BoxPlace place_;
  std::string driver_root_;
  std::vector<gpu::WantedGpu> cards_;
  os::UniqueFd service_;
  os::UniqueFd metadata_;
  os::UniqueFd agent_;
  int service_port_ = 0;
};

TEST_P(ProbesTest, HeldByTheWallsAndLeakedByItsControl) {
  const Probe& probe = *FindProbe(GetParam());
  const Said held = Run(probe, {});
  EXPECT_TRUE(held.result == "held" || (held.result == "cannot_try" && !probe.needs.empty()))
      << held.text;
  EXPECT_EQ(held.leaked_bytes, 0) << held.text;
  const Said control = Run(probe, probe.control);
  if (control.result == "cannot_try") {
    EXPECT_NE(probe.needs, "") << control.text;
  } else {
    EXPECT_EQ(control.result, "leaked") << control.text;
  }
  if (std::getenv("PROBES_SHOW") != nullptr) {
    std::printf("%-20s held: %s\n%-20s %s: %s\n", GetParam().c_str(), held.detail.c_str(), "",
                control.result.c_str(), control.detail.c_str());
  }
  if (control.result != "leaked" || probe.control.size() == 1) {
    return;
  }
  for (std::size_t i = 0; i < probe.control.size(); ++i) {
    std::vector<Wall> fewer = probe.control;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    const Said one = Run(probe, fewer);
    EXPECT_NE(one.result, "leaked")
        << "without " << Name(probe.control[i]) << " away it leaks too: " << one.text;
  }
}

TEST(ProbeProgram, KnowsTheProbesOfTheTableAndNoOthers) {
  os::Pipe out = std::move(os::MakePipe().value());
  os::SpawnOptions spawn;
  spawn.path = Binary("ringfence-probe");
  spawn.arguments = {"ringfence-probe", "--list"};
  spawn.fds = {{out.write.get(), 1}};
  const auto pid = os::Spawn(spawn);
  ASSERT_TRUE(pid.has_value());
  out.write.Reset();
  std::string text;
  char chunk[4096];
  for (ssize_t got = 0; (got = read(out.read.get(), chunk, sizeof chunk)) > 0;) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  EXPECT_EQ(os::WaitFor(*pid).code, 0);
  std::istringstream lines(text);
  std::set<std::string> known;
  for (std::string line; std::getline(lines, line);) {
    known.insert(line);
  }
  std::set<std::string> wanted;
  for (const Probe& probe : Probes()) {
    wanted.insert(probe.name);
  }
  EXPECT_EQ(known, wanted);
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Probe& probe : Probes()) {
    names.push_back(probe.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Table, ProbesTest, ::testing::ValuesIn(Names()), [](const auto& one) {
  std::string name = one.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace ringfence::isolate

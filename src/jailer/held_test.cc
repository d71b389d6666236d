// Goal: a lease that is held for another runtime gives exactly its devices, ends with everybody who
// has them, and leaves nothing, whoever dies meanwhile.
// Method: a real jailer with a folder for CDI documents; a process in a cgroup of its own plays the
// container, joined as ringfence-hook would; kill -9 of the jailer; a stranger with the GPU open; a
// folder that others change.

#include "isolate/held.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>
#include <thread>

#include "isolate/cdi_spec.h"
#include "isolate/incident.h"
#include "jailer/harness_test.h"
#include "os/cgroup.h"
#include "os/holders.h"
#include "os/privileges.h"

namespace ringfence::jailer {
namespace {

class HeldLeasesTest : public JailerTest {
 protected:
  void SetUp() override {
    JailerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    cdi_ = folder_ + "/cdi";
    ASSERT_EQ(mkdir(cdi_.c_str(), 0755), 0);
  }
  void TearDown() override {
    for (const int pid : children_) {
      (void)kill(pid, SIGKILL);
      (void)waitpid(pid, nullptr, 0);
    }
    JailerTest::TearDown();
    for (const std::string& group : groups_) {
      (void)os::RemoveCgroup(group);
    }
  }

  std::vector<std::string> Arguments() override {
    std::vector<std::string> arguments = JailerTest::Arguments();
    const auto rest = std::find(arguments.begin(), arguments.end(), "--");
    arguments.insert(rest, {"--cdi-dir", cdi_, "--hook", Binary("ringfence-hook")});
    return arguments;
  }

  isolate::Grant HeldGrant(const std::vector<std::string>& gpus) {
    isolate::Grant grant = MakeGrant({}, gpus);
    grant.runtime = model::LeaseRuntime::kCdi;
    return grant;
  }
  Result<isolate::StartedBox> Hold(const isolate::Grant& grant) {
    return client_->Start(isolate::SealGrant(server_, grant));
  }
  isolate::HeldFolder Held() {
    return std::move(isolate::HeldFolder::Open(folder_ + "/private/state/cdi")).value();
  }
  std::vector<std::string> Documents() { return os::ListDir(cdi_).value(); }

  // A process in a cgroup of its own, which has `path` open if there is one.
  int StartChild(const std::string& group, const std::string& path, bool stubborn) {
    int ready[2];
    EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
    const int pid = fork();
    if (pid == 0) {
      if (stubborn) {
        (void)signal(SIGTERM, SIG_IGN);
      }
      if (!path.empty() && open(path.c_str(), O_RDWR | O_CLOEXEC) < 0) {
        _exit(1);
      }
      (void)!write(ready[1], "x", 1);
      for (;;) {
        (void)pause();
      }
    }
    char c = 0;
    EXPECT_EQ(read(ready[0], &c, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    children_.push_back(pid);
    if (!group.empty()) {
      groups_.push_back(group);
      const os::CgroupHierarchy hierarchy = os::CgroupHierarchies()->front();
      EXPECT_EQ(mkdir((hierarchy.mount + group).c_str(), 0755), 0);
      std::ofstream(hierarchy.mount + group + "/cgroup.procs") << pid;
    }
    return pid;
  }
  int StartContainer(const std::string& lease, const std::string& path, bool stubborn = false) {
    const std::string id = crypto::RandomId("c");
    const std::string group = "/" + id;
    const int pid = StartChild(group, path, stubborn);
    isolate::HeldFolder held = Held();
    const Status joined = held.Join(lease, {id, pid, *os::StartOf(pid), {group}});
    EXPECT_TRUE(joined.has_value()) << joined.error().message;
    return pid;
  }
  static bool EndedBy(int pid, int signal) {
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == signal;
  }
  void Forgotten(int pid) { std::erase(children_, pid); }
  std::string MemoryOf(const std::string& gpu) { return driver_root_ + "/memory/" + gpu; }

  std::string cdi_;
  std::vector<int> children_;
  std::vector<std::string> groups_;
};

TEST_F(HeldLeasesTest, GivesExactlyItsDevicesUntilItEnds) {
  Start();
  const std::vector<std::string> gpus = Gpus();
  ASSERT_TRUE(client_->Scrub("", {gpus[1], gpus[2]}).has_value());
  const isolate::Grant grant = HeldGrant({gpus[1]});
  auto box = Hold(grant);
  ASSERT_TRUE(box.has_value()) << box.error().message;
  EXPECT_EQ(ReadToEnd(box->out.get()) + ReadToEnd(box->err.get()), "");
  ASSERT_EQ(Documents(), std::vector<std::string>{"ringfence-" + grant.lease + ".json"});
  const std::string text = os::ReadText(cdi_ + "/" + Documents()[0], 1 << 20U).value();
  const auto document = isolate::ReadCdi(ParseJson(text, 1 << 20U).value());
  ASSERT_TRUE(document.has_value()) << document.error().message;
  std::set<std::string> paths;
  for (const isolate::CdiNode& node : document->devices[0].edits.nodes) {
    paths.insert(node.path);
  }
  EXPECT_EQ(paths, (std::set<std::string>{"/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"}));
  EXPECT_EQ(text.find(gpus[0]), std::string::npos) << "a neighbour's memory";
  EXPECT_NE(text.find(gpus[1]), std::string::npos);
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, MakeGrant({"true"}, {gpus[1]}))),
            Code::kFailedPrecondition);
  EXPECT_EQ(client_->Scrub(grant.lease, {}).error().code, Code::kFailedPrecondition);

  ASSERT_TRUE(client_->End(grant.lease).has_value());
  EXPECT_EQ(ReadToEnd(box->exit.get()), "exited 0\n");
  EXPECT_TRUE(Documents().empty());
  EXPECT_TRUE(Held().Names()->empty());
  ASSERT_TRUE(client_->Scrub(grant.lease, {}).has_value());
  EXPECT_EQ(Run(MakeGrant({"true"}, {gpus[1]})).exit, "exited 0\n");
}

TEST_F(HeldLeasesTest, EndsTheContainersThatTookIt) {
  Start();
  const std::vector<std::string> gpus = Gpus();
  ASSERT_TRUE(client_->Scrub("", {gpus[0]}).has_value());
  const isolate::Grant grant = HeldGrant({gpus[0]});
  auto box = Hold(grant);
  ASSERT_TRUE(box.has_value()) << box.error().message;
  const int gentle = StartContainer(grant.lease, MemoryOf(gpus[0]));
  const int stubborn = StartContainer(grant.lease, "", true);
  ASSERT_TRUE(client_->End(grant.lease).has_value());
  EXPECT_TRUE(EndedBy(gentle, SIGTERM));
  EXPECT_TRUE(EndedBy(stubborn, SIGKILL)) << "though it has nothing open: it could, any time";
  Forgotten(gentle);
  Forgotten(stubborn);
  EXPECT_EQ(ReadToEnd(box->exit.get()), "exited 0\n");
  EXPECT_TRUE(client_->Scrub(grant.lease, {}).has_value());
}

TEST_F(HeldLeasesTest, WaitsForAStrangerWhoHasTheGpuOpen) {
  Start();
  const std::vector<std::string> gpus = Gpus();
  ASSERT_TRUE(client_->Scrub("", {gpus[0]}).has_value());
  // Who had it open before, such as a service of the host's, is not in the way.
  (void)StartChild("", MemoryOf(gpus[0]), false);
  const isolate::Grant grant = HeldGrant({gpus[0]});
  auto box = Hold(grant);
  ASSERT_TRUE(box.has_value()) << box.error().message;
  const int stranger = StartChild("", MemoryOf(gpus[0]), false);
  ASSERT_TRUE(client_->End(grant.lease).has_value());
  std::vector<os::PollItem> exit = {{box->exit.get()}};
  ASSERT_TRUE(os::Poll(exit, std::chrono::milliseconds(2500)).has_value());
  EXPECT_FALSE(exit[0].ready) << "it is over while somebody has the GPU open";
  const auto scrub = client_->Scrub(grant.lease, {});
  EXPECT_EQ(scrub.error().code, Code::kFailedPrecondition);
  EXPECT_NE(scrub.error().message.find("process " + std::to_string(stranger)), std::string::npos)
      << scrub.error().message;
  ASSERT_EQ(kill(stranger, SIGKILL), 0);
  EXPECT_TRUE(EndedBy(stranger, SIGKILL));
  Forgotten(stranger);
  EXPECT_EQ(ReadToEnd(box->exit.get()), "exited 0\n");
  EXPECT_TRUE(client_->Scrub(grant.lease, {}).has_value());
}

TEST_F(HeldLeasesTest, EndsWhenItsTimeIsOver) {
  Start();
  const std::vector<std::string> gpus = Gpus();
  ASSERT_TRUE(client_->Scrub("", {gpus[0]}).has_value());
  isolate::Grant grant = HeldGrant({gpus[0]});
  grant.runtime_max = std::chrono::milliseconds(200);
  auto box = Hold(grant);
  ASSERT_TRUE(box.has_value()) << box.error().message;
  EXPECT_EQ(ReadToEnd(box->exit.get()), "timeout\n");
  EXPECT_TRUE(Documents().empty());
}

TEST_F(HeldLeasesTest, TheNextJailerEndsIt) {
  Start();
  const std::vector<std::string> gpus = Gpus();
  ASSERT_TRUE(client_->Scrub("", {gpus[0]}).has_value());
  const isolate::Grant grant = HeldGrant({gpus[0]});
  auto box = Hold(grant);
  ASSERT_TRUE(box.has_value()) << box.error().message;
  const int container = StartContainer(grant.lease, MemoryOf(gpus[0]), true);
  ASSERT_EQ(kill(jailer_pid_, SIGKILL), 0);
  (void)os::WaitFor(jailer_pid_);
  jailer_pid_ = 0;
  client_.reset();
  (void)ReadToEnd(relay_.get());
  relay_.Reset();
  EXPECT_EQ(Documents().size(), 1U);

  Start();
  EXPECT_TRUE(EndedBy(container, SIGKILL));
  Forgotten(container);
  EXPECT_TRUE(Documents().empty());
  for (;;) {  // the jailer sees within a second or so that nobody is left
    const auto records = client_->List();
    ASSERT_TRUE(records.has_value());
    ASSERT_EQ(records->size(), 1U);
    if ((*records)[0].state == isolate::BoxState::kEnded) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(Held().Names()->empty());
  EXPECT_TRUE(client_->Scrub(grant.lease, {}).has_value());
}

TEST_F(HeldLeasesTest, AFolderThatOthersCanChangeGetsNoLease) {
  ASSERT_EQ(chmod(cdi_.c_str(), 0777), 0);
  Start();
  const std::vector<std::string> gpus = Gpus();
  ASSERT_TRUE(client_->Scrub("", {gpus[0]}).has_value());
  const isolate::Grant grant = HeldGrant({gpus[0]});
  const auto box = Hold(grant);
  ASSERT_FALSE(box.has_value());
  EXPECT_EQ(box.error().code, Code::kFailedPrecondition);
  EXPECT_NE(box.error().message.find("others than root"), std::string::npos);
  EXPECT_TRUE(Documents().empty());
  EXPECT_TRUE(Held().Names()->empty());
  EXPECT_TRUE(client_->Scrub(grant.lease, {}).has_value());
}

TEST_F(HeldLeasesTest, TamperingIsPutRightAndReported) {
  Start();
  const std::vector<std::string> gpus = Gpus();
  ASSERT_TRUE(client_->Scrub("", {gpus[0]}).has_value());
  const isolate::Grant grant = HeldGrant({gpus[0]});
  auto box = Hold(grant);
  ASSERT_TRUE(box.has_value()) << box.error().message;
  const std::string path = cdi_ + "/" + Documents()[0];
  const std::string good = os::ReadText(path, 1 << 20U).value();
  ASSERT_TRUE(os::WriteFile(path, AsBytes("{}")).has_value());
  ASSERT_TRUE(os::WriteFile(cdi_ + "/mine.json", AsBytes(good)).has_value());
  ASSERT_TRUE(os::WriteFile(cdi_ + "/theirs.json", AsBytes("{}")).has_value());
  std::vector<std::string> incidents;
  while (incidents.size() < 2) {
    incidents = client_->Incidents().value();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(os::ReadText(path, 1 << 20U).value(), good);
  EXPECT_FALSE(os::Exists(cdi_ + "/mine.json"));
  EXPECT_TRUE(os::Exists(cdi_ + "/mine.json.refused-by-ringfence"));
  EXPECT_TRUE(os::Exists(cdi_ + "/theirs.json"));
  const Bytes raw = FromBase64(client_->Hello()->public_key).value();
  for (const std::string& envelope : incidents) {
    const auto incident = isolate::OpenIncident(crypto::PublicKey::FromRaw(raw).value(), envelope);
    ASSERT_TRUE(incident.has_value());
    EXPECT_EQ(incident->what, "cdi_tampered");
  }
}

class NoCdiTest : public JailerTest {};

TEST_F(NoCdiTest, WithoutAFolderThereAreNoSuchLeases) {
  Start();
  const std::vector<std::string> gpus = Gpus();
  ASSERT_TRUE(client_->Scrub("", {gpus[0]}).has_value());
  isolate::Grant grant = MakeGrant({}, {gpus[0]});
  grant.runtime = model::LeaseRuntime::kCdi;
  const auto box = client_->Start(isolate::SealGrant(server_, grant));
  ASSERT_FALSE(box.has_value());
  EXPECT_EQ(box.error().code, Code::kFailedPrecondition);
  EXPECT_NE(box.error().hint.find("node.cdi_dir"), std::string::npos);
  EXPECT_TRUE(client_->Scrub(grant.lease, {}).has_value());
}

}  // namespace
}  // namespace ringfence::jailer

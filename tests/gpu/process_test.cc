// Goal: simulated GPUs behave between processes as real ones do where it matters here: what one
// process leaves another can find until a scrub, two processes never share an allocation, a killed
// process gives back what it had, and NVML shows who is on a card.
// Method: children made by fork, each loading the CUDA stand-in itself; pipes instead of sleeps.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "gpu/inventory.h"
#include "gpu/library.h"
#include "gpu/scenario.h"
#include "gpu/scrub.h"
#include "gpu/simulated_test_root.h"
#include "os/file.h"

namespace ringfence::gpu {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20U;

// A process with a context on the only GPU of a root.
class Client {
 public:
  explicit Client(const std::string& root) : library_(Library::Open(root, kCudaName)) {
    api_ = LoadCuda(*library_);
    cuda::Device device = 0;
    ok_ = api_.cuInit(0) == 0 && api_.cuDeviceGet(&device, 0) == 0 &&
          api_.cuCtxCreate_v2(&context_, 0, device) == 0;
  }
  bool ok() const { return ok_; }
  const cuda::Api& api() const { return api_; }

 private:
  Result<Library> library_;
  cuda::Api api_;
  cuda::Context context_ = nullptr;
  bool ok_ = false;
};

// A child that runs `work`, says "ready", and lives until it is let go or killed.
class Child {
 public:
  explicit Child(const std::function<bool()>& work) {
    int ready[2];
    int go[2];
    EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(go, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      (void)close(ready[0]);
      (void)close(go[1]);
      const char said = work() ? 'y' : 'n';
      (void)!write(ready[1], &said, 1);
      char wait = 0;
      (void)!read(go[0], &wait, 1);
      _exit(said == 'y' ? 0 : 1);  // nothing is freed: the process just ends
    }
    (void)close(ready[1]);
    (void)close(go[0]);
    char said = 0;
    EXPECT_EQ(read(ready[0], &said, 1), 1);
    ready_ = said == 'y';
    (void)close(ready[0]);
    go_ = go[1];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { End(); }

  bool ready() const { return ready_; }
  pid_t pid() const { return pid_; }
  void End() {
    if (pid_ > 0) {
      (void)close(go_);
      EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
      pid_ = -1;
    }
  }
  void Kill() {
    (void)kill(pid_, SIGKILL);
    End();
  }

 private:
  pid_t pid_ = -1;
  int go_ = -1;
  bool ready_ = false;
};

std::string Only(const SimulatedTestRoot& root) { return root.path(); }

TEST(Processes, WhatOneLeavesAnotherFindsUntilAScrub) {
  const SimulatedTestRoot root(OneSmallGpu());
  const std::string secret = "the weights of a model";
  const auto leave = [&] {
    const Client client(Only(root));
    cuda::DevicePointer pointer = 0;
    return client.ok() && client.api().cuMemAlloc_v2(&pointer, kMib) == 0 &&
           client.api().cuMemcpyHtoD_v2(pointer + 1000, secret.data(), secret.size()) == 0 &&
           client.api().cuMemFree_v2(pointer) == 0;
  };
  const auto find = [&] {
    const Client client(Only(root));
    cuda::DevicePointer pointer = 0;
    std::string found(secret.size(), '\0');
    return client.ok() && client.api().cuMemAlloc_v2(&pointer, kMib) == 0 &&
           client.api().cuMemcpyDtoH_v2(found.data(), pointer + 1000, found.size()) == 0 &&
           found == secret;
  };
  EXPECT_TRUE(Child(leave).ready());
  EXPECT_TRUE(Child(find).ready());
  const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->gpus[0].residue_bytes, secret.size());
  EXPECT_EQ(report->gpus[0].mismatch_bytes, 0U);
  EXPECT_FALSE(Child(find).ready());
  EXPECT_EQ(Scrub(root.path(), {kSmallUuid})->gpus[0].residue_bytes, 0U);
}

bool TakeAndSign(const std::string& root, std::size_t bytes, unsigned char sign) {
  auto* client = new Client(root);  // lives as long as the child
  cuda::DevicePointer pointer = 0;
  return client->ok() && client->api().cuMemAlloc_v2(&pointer, bytes) == 0 &&
         client->api().cuMemsetD8_v2(pointer, sign, bytes) == 0;
}

std::size_t CountOf(const SimulatedTestRoot& root, unsigned char sign) {
  const Bytes memory = *os::ReadFile(MemoryPath(root.path(), kSmallUuid), 8 * kMib);
  return static_cast<std::size_t>(std::count(memory.begin(), memory.end(), std::byte{sign}));
}

TEST(Processes, NeverShareAnAllocation) {
  const SimulatedTestRoot root(OneSmallGpu());
  const Child first([&] { return TakeAndSign(root.path(), 3 * kMib, 1); });
  const Child second([&] { return TakeAndSign(root.path(), 3 * kMib, 2); });
  const Child third([&] { return TakeAndSign(root.path(), 2 * kMib, 3); });
  const Child fourth([&] { return TakeAndSign(root.path(), 512, 4); });
  EXPECT_TRUE(first.ready() && second.ready() && third.ready());
  EXPECT_FALSE(fourth.ready());  // the card is full
  EXPECT_EQ(CountOf(root, 1), 3 * kMib);
  EXPECT_EQ(CountOf(root, 2), 3 * kMib);
  EXPECT_EQ(CountOf(root, 3), 2 * kMib);
}

TEST(Processes, AKilledOwnerGivesItsMemoryBack) {
  const SimulatedTestRoot root(OneSmallGpu());
  Child owner([&] { return TakeAndSign(root.path(), 8 * kMib, 1); });
  ASSERT_TRUE(owner.ready());
  EXPECT_FALSE(Child([&] { return TakeAndSign(root.path(), kMib, 2); }).ready());
  owner.Kill();
  EXPECT_TRUE(Child([&] { return TakeAndSign(root.path(), 8 * kMib, 2); }).ready());
  EXPECT_EQ(CountOf(root, 2), 8 * kMib);
}

TEST(Processes, AreShownByNvmlAndStopAScrub) {
  const SimulatedTestRoot root(OneSmallGpu());
  Child owner([&] { return TakeAndSign(root.path(), 2 * kMib, 1); });
  Child idle([&] { return (new Client(root.path()))->ok(); });
  Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_TRUE(inventory.has_value());
  const Gpu& gpu = inventory->gpus.at(0);
  EXPECT_EQ(gpu.memory_used_bytes, 2 * kMib);
  ASSERT_EQ(gpu.processes.size(), 2U);
  for (const GpuProcess& process : gpu.processes) {
    const bool is_owner = process.pid == static_cast<std::uint32_t>(owner.pid());
    EXPECT_TRUE(is_owner || process.pid == static_cast<std::uint32_t>(idle.pid()));
    EXPECT_EQ(process.memory_bytes, is_owner ? 2 * kMib : 0);
  }
  const Result<ScrubReport> refused = Scrub(root.path(), {kSmallUuid});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(CountOf(root, 1), 2 * kMib);  // nothing was touched
  owner.Kill();
  idle.End();
  const Result<ScrubReport> report = Scrub(root.path(), {kSmallUuid});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->gpus[0].residue_bytes, 2 * kMib);
  EXPECT_TRUE(ReadInventory(root.path())->gpus[0].processes.empty());
}

TEST(Processes, SeeThemselvesInNvmlAndKeepTheirMemory) {
  const SimulatedTestRoot root(OneSmallGpu());
  const Child both([&] {
    if (!TakeAndSign(root.path(), kMib, 1)) {
      return false;
    }
    // Opening and closing NVML must not drop what CUDA holds in the same process.
    for (int round = 0; round < 2; ++round) {
      const Result<Inventory> inventory = ReadInventory(root.path());
      if (!inventory.has_value() || inventory->gpus[0].processes.size() != 1 ||
          inventory->gpus[0].processes[0].pid != static_cast<std::uint32_t>(getpid())) {
        return false;
      }
    }
    return true;
  });
  EXPECT_TRUE(both.ready());
  EXPECT_FALSE(Child([&] { return TakeAndSign(root.path(), 8 * kMib, 2); }).ready());
}

TEST(Processes, InAnotherPidNamespaceAreShownByTheirHostId) {
  const SimulatedTestRoot root(OneSmallGpu());
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root to make a pid namespace";
  }
  int inner_pid = 0;
  int answer[2];
  ASSERT_EQ(pipe2(answer, O_CLOEXEC), 0);
  Child outer([&] {
    if (unshare(CLONE_NEWPID) != 0) {
      return false;
    }
    auto* inner = new Child([&] { return getpid() == 1 && TakeAndSign(root.path(), kMib, 1); });
    const int pid = inner->pid();
    return inner->ready() && write(answer[1], &pid, sizeof pid) == sizeof pid;
  });
  if (!outer.ready()) {
    GTEST_SKIP() << "no pid namespace can be made here";
  }
  ASSERT_EQ(read(answer[0], &inner_pid, sizeof inner_pid), static_cast<ssize_t>(sizeof inner_pid));
  const Result<Inventory> inventory = ReadInventory(root.path());
  ASSERT_TRUE(inventory.has_value());
  ASSERT_EQ(inventory->gpus[0].processes.size(), 1U);
  EXPECT_EQ(inventory->gpus[0].processes[0].pid, static_cast<std::uint32_t>(inner_pid));
}

TEST(Processes, WithoutTheirDeviceFileSeeNoGpu) {
  const SimulatedTestRoot root(OneSmallGpu());
  ASSERT_TRUE(os::RemoveFile(root.path() + "/dev/nvidia0").has_value());
  const Child blind([&] {
    const Result<Library> library = Library::Open(root.path(), kCudaName);
    return LoadCuda(*library).cuInit(0) == cuda::kNoDevice;
  });
  EXPECT_TRUE(blind.ready());
}

// As in a box: no <root>/dev, and nodes of a major that no driver serves.
TEST(Processes, WithRealNodesOfAnUnservedMajorSeeThoseGpusOnly) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root to make device nodes";
  }
  SimulatedTestRoot root(R"({"gpus":[{},{},{}]})");
  ASSERT_TRUE(os::RemoveTree(root.path() + "/dev").has_value());
  const Child boxed([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/dev", "tmpfs", 0, "size=64k") != 0) {
      return false;
    }
    for (const auto& [name, minor] : {std::pair("nvidia1", 1), std::pair("nvidiactl", 255)}) {
      const std::string path = std::string("/dev/") + name;
      if (mknod(path.c_str(), S_IFCHR | 0600, makedev(195, static_cast<unsigned>(minor))) != 0) {
        return false;
      }
    }
    const Result<Inventory> inventory = ReadInventory(root.path());
    return inventory.has_value() && inventory->gpus.size() == 1 && inventory->gpus[0].minor == 1;
  });
  if (!boxed.ready()) {
    // Tell a machine that cannot from a stand-in that does not.
    const Child can([] {
      return unshare(CLONE_NEWNS) == 0 &&
             mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
             mount("tmpfs", "/dev", "tmpfs", 0, "size=64k") == 0 &&
             mknod("/dev/nvidia1", S_IFCHR | 0600, makedev(195, 1)) == 0;
    });
    if (!can.ready()) {
      GTEST_SKIP() << "no mount namespace with device nodes can be made here";
    }
  }
  EXPECT_TRUE(boxed.ready());
}

TEST(Processes, ManyAtOnceNeverOverlap) {
  const SimulatedTestRoot root(OneSmallGpu());
  constexpr int kChildren = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < kChildren; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      const Client client(root.path());
      bool good = client.ok();
      const auto sign = static_cast<unsigned char>(i + 1);
      std::vector<unsigned char> back(64 * 1024);
      for (int round = 0; good && round < 40; ++round) {
        cuda::DevicePointer pointer = 0;
        if (client.api().cuMemAlloc_v2(&pointer, back.size()) != 0) {
          good = false;
          break;
        }
        good = client.api().cuMemsetD8_v2(pointer, sign, back.size()) == 0 &&
               client.api().cuMemcpyDtoH_v2(back.data(), pointer, back.size()) == 0 &&
               std::all_of(back.begin(), back.end(), [&](auto byte) { return byte == sign; }) &&
               client.api().cuMemFree_v2(pointer) == 0;
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace ringfence::gpu

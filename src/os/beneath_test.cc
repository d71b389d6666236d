// Goal: what lies beneath a folder is read and written without ever following a link out of it,
// whatever others do there meanwhile, and a file is there whole or not at all.
// Method: links, pipes and devices in the way; a process that swaps a file for a link as fast as it
// can while it is read thousands of times; a writer that the kernel kills between writing and
// renaming (a seccomp filter on rename); folders that others could change.

#include "os/beneath.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>

#include "os/file.h"
#include "os/holders.h"

namespace ringfence::os {
namespace {

class BeneathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ringfence-beneath-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    outside_ = name;
    path_ = outside_ + "/folder";
    ASSERT_EQ(mkdir(path_.c_str(), 0755), 0);
    ASSERT_TRUE(WriteFile(outside_ + "/secret", AsBytes("secret")).has_value());
    auto folder = OpenFolder(path_);
    ASSERT_TRUE(folder.has_value());
    folder_ = std::move(*folder);
  }
  void TearDown() override { std::filesystem::remove_all(outside_); }

  std::string outside_;
  std::string path_;
  UniqueFd folder_;
};

TEST_F(BeneathTest, WritesReadsAndRemoves) {
  ASSERT_TRUE(ReplaceBeneath(folder_.get(), "a", "one", 0640).has_value());
  ASSERT_TRUE(ReplaceBeneath(folder_.get(), "a", "two", 0640).has_value());
  EXPECT_EQ(*ReadBeneath(folder_.get(), "a", 10), "two");
  EXPECT_EQ(FactsBeneath(folder_.get(), "a")->mode, 0640U);
  EXPECT_EQ(*NamesIn(folder_.get(), 10), std::vector<std::string>{"a"});
  EXPECT_EQ(ReadBeneath(folder_.get(), "a", 2).error().code, Code::kExhausted);
  ASSERT_TRUE(RemoveBeneath(folder_.get(), "a").has_value());
  ASSERT_TRUE(RemoveBeneath(folder_.get(), "a").has_value());
  EXPECT_EQ(ReadBeneath(folder_.get(), "a", 10).error().code, Code::kNotFound);
  ASSERT_TRUE(ReplaceBeneath(folder_.get(), "b", "", 0600).has_value());
  EXPECT_EQ(NamesIn(folder_.get(), 0).error().code, Code::kExhausted);
}

TEST_F(BeneathTest, NeverFollowsOrLeaves) {
  ASSERT_EQ(symlink("../secret", (path_ + "/link").c_str()), 0);
  ASSERT_EQ(symlink("..", (path_ + "/up").c_str()), 0);
  ASSERT_EQ(symlink("/proc/self/root/etc", (path_ + "/magic").c_str()), 0);
  for (const char* path : {"link", "up/secret", "magic/hostname", "../secret", "/etc/hostname"}) {
    const auto read = ReadBeneath(folder_.get(), path, 100);
    ASSERT_FALSE(read.has_value()) << path;
    EXPECT_EQ(read.error().code, Code::kPermissionDenied) << path << ": " << read.error().message;
  }
  // A link where our file goes is replaced; what it led to stays as it was.
  ASSERT_TRUE(ReplaceBeneath(folder_.get(), "link", "ours", 0600).has_value());
  EXPECT_EQ(*ReadBeneath(folder_.get(), "link", 10), "ours");
  EXPECT_EQ(*ReadText(outside_ + "/secret", 10), "secret");
  // Nor does one where it is written first.
  ASSERT_EQ(symlink("../secret", (path_ + "/" + StagedName("x")).c_str()), 0);
  ASSERT_TRUE(ReplaceBeneath(folder_.get(), "x", "ours", 0600).has_value());
  EXPECT_EQ(*ReadText(outside_ + "/secret", 10), "secret");
}

TEST_F(BeneathTest, PipesAndFoldersAreNotRead) {
  ASSERT_EQ(mkfifo((path_ + "/pipe").c_str(), 0600), 0);
  ASSERT_EQ(mkdir((path_ + "/inner").c_str(), 0700), 0);
  for (const char* path : {"pipe", "inner"}) {
    EXPECT_EQ(ReadBeneath(folder_.get(), path, 100).error().code, Code::kInvalidArgument) << path;
  }
}

TEST_F(BeneathTest, ASwappedLinkIsNeverFollowed) {
  ASSERT_TRUE(WriteFile(path_ + "/a", AsBytes("public")).has_value());
  ASSERT_EQ(symlink("../secret", (path_ + "/b").c_str()), 0);
  const int swapper = fork();
  ASSERT_GE(swapper, 0);
  if (swapper == 0) {
    for (;;) {
      (void)syscall(SYS_renameat2, AT_FDCWD, (path_ + "/a").c_str(), AT_FDCWD,
                    (path_ + "/b").c_str(), RENAME_EXCHANGE);
    }
  }
  int read_well = 0;
  int refused = 0;
  // Until both were met: on a busy machine the swapper may not run for a while.
  std::string wrong;
  for (int i = 0; (i < 20'000 || read_well == 0 || refused == 0) && wrong.empty(); ++i) {
    const auto text = ReadBeneath(folder_.get(), "a", 100);
    ++(text.has_value() ? read_well : refused);
    if (text.has_value() && *text != "public") {
      wrong = *text;
    }
  }
  ASSERT_EQ(kill(swapper, SIGKILL), 0);
  ASSERT_EQ(waitpid(swapper, nullptr, 0), swapper);
  EXPECT_EQ(wrong, "");
}

// From here on, whatever renames is killed by the kernel: SIGKILL has no finer aim.
void DieAtRename() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof filter / sizeof filter[0], filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(1);
  }
}

TEST_F(BeneathTest, KilledBetweenWritingAndRenaming) {
  ASSERT_TRUE(ReplaceBeneath(folder_.get(), "a", "before", 0600).has_value());
  const int writer = fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) {
    DieAtRename();
    (void)ReplaceBeneath(folder_.get(), "a", "after", 0600);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it was not killed where it should be";
  EXPECT_EQ(*ReadBeneath(folder_.get(), "a", 10), "before");
  const auto names = NamesIn(folder_.get(), 10);
  ASSERT_EQ(names->size(), 2U);
  EXPECT_TRUE(IsStagedName(names->at(0)) || IsStagedName(names->at(1)));
  ASSERT_TRUE(ReplaceBeneath(folder_.get(), "a", "again", 0600).has_value());
  EXPECT_EQ(*NamesIn(folder_.get(), 10), std::vector<std::string>{"a"});
}

TEST_F(BeneathTest, OnlyAFolderThatRootAloneCanChange) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  ASSERT_EQ(mkdir((path_ + "/inner").c_str(), 0755), 0);
  const std::string inner = path_ + "/inner";
  EXPECT_TRUE(OpenFolderOfRoot(inner).has_value()) << "/tmp above it is sticky";
  struct Case {
    const char* what;
    std::string path;
    unsigned uid;
    unsigned mode;
  };
  for (const Case& one :
       {Case{"writable", inner, 0, 0757}, Case{"by the group", inner, 0, 0775},
        Case{"sticky itself", inner, 0, 01777}, Case{"another's", inner, 1, 0755},
        Case{"above", path_, 0, 0777}, Case{"above, another's", path_, 1, 0755}}) {
    ASSERT_EQ(chown(one.path.c_str(), one.uid, 0), 0);
    ASSERT_EQ(chmod(one.path.c_str(), one.mode), 0);
    const auto opened = OpenFolderOfRoot(inner);
    ASSERT_FALSE(opened.has_value()) << one.what;
    EXPECT_EQ(opened.error().code, Code::kFailedPrecondition) << one.what;
    EXPECT_NE(opened.error().message.find(one.path + " "), std::string::npos) << one.what;
    EXPECT_FALSE(opened.error().hint.empty());
    ASSERT_EQ(chown(one.path.c_str(), 0, 0), 0);
    ASSERT_EQ(chmod(one.path.c_str(), 0755), 0);
  }
  EXPECT_EQ(OpenFolderOfRoot(path_ + "/none").error().code, Code::kNotFound);
}

// A child that has something open or mapped, until the pipe to it closes.
class Child {
 public:
  template <typename Do>
  explicit Child(Do work) {
    int ready[2];
    int stay[2];
    EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(stay, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      (void)close(stay[1]);
      work();
      (void)!write(ready[1], "x", 1);
      char c = 0;
      (void)!read(stay[0], &c, 1);
      _exit(0);
    }
    char c = 0;
    EXPECT_EQ(read(ready[0], &c, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    (void)close(stay[0]);
    stay_ = stay[1];
  }
  ~Child() {
    (void)close(stay_);
    (void)waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int pid() const { return pid_; }

 private:
  int pid_ = 0;
  int stay_ = -1;
};

bool Holds(const std::vector<Holder>& holders, int pid) {
  for (const Holder& holder : holders) {
    if (holder.pid == pid) {
      EXPECT_EQ(holder.started, *StartOf(pid));
      return true;
    }
  }
  return false;
}

TEST_F(BeneathTest, FindsWhoHasADeviceOrFileOpenOrMapped) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  Holdable wanted;
  wanted.devices.insert({1, 7});  // /dev/full
  const std::string secret = outside_ + "/secret";
  const auto above = OpenFolder(outside_);
  const auto facts = FactsBeneath(above->get(), "secret");
  wanted.files.insert({facts->file_system, facts->inode});
  const Child idle([] { (void)open("/dev/null", O_RDONLY | O_CLOEXEC); });
  const Child opened([] { (void)open("/dev/full", O_RDONLY | O_CLOEXEC); });
  const Child file([&] { (void)open(secret.c_str(), O_RDONLY | O_CLOEXEC); });
  const Child mapped([&] {
    const int fd = open(secret.c_str(), O_RDONLY | O_CLOEXEC);
    (void)mmap(nullptr, 6, PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
  });
  const auto holders = FindHolders(wanted);
  ASSERT_TRUE(holders.has_value());
  EXPECT_FALSE(Holds(*holders, idle.pid()));
  EXPECT_TRUE(Holds(*holders, opened.pid()));
  EXPECT_TRUE(Holds(*holders, file.pid()));
  EXPECT_TRUE(Holds(*holders, mapped.pid()));
  EXPECT_FALSE(StartOf(0).has_value());
}

}  // namespace
}  // namespace ringfence::os

// Goal: Ctrl-C is counted instead of ending the process, and after the last counted one it ends it
// as always.
// Method: real signals to this process; a child that is to die of one.

#include "os/interrupts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <mutex>

namespace ringfence::os {
namespace {

class Counter {
 public:
  void Set(int count) {
    const std::lock_guard lock(mutex_);
    count_ = count;
    changed_.notify_all();
  }
  bool WaitFor(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return count_ == count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

TEST(InterruptsTest, CountsEachSignal) {
  Counter counter;
  {
    const auto interrupts = Interrupts::Catch(3, [&](int count) { counter.Set(count); });
    ASSERT_TRUE(interrupts.has_value());
    int expected = 0;
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      ASSERT_EQ(kill(getpid(), number), 0);
      EXPECT_TRUE(counter.WaitFor(++expected)) << number;
    }
  }
  sigset_t blocked;
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
  EXPECT_EQ(sigismember(&blocked, SIGINT), 0) << "as before, once it is gone";
}

TEST(InterruptsDeathTest, AfterTheLastCountedOneTheProcessEnds) {
  EXPECT_EXIT(
      {
        Counter counter;
        const auto interrupts = Interrupts::Catch(1, [&](int count) { counter.Set(count); });
        (void)kill(getpid(), SIGINT);
        (void)counter.WaitFor(1);
        (void)kill(getpid(), SIGINT);
        (void)counter.WaitFor(-1);
      },
      testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace ringfence::os

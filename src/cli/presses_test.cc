// Goal: a press calls off what was under way when it came, and never what was begun because of it.
// Method: a press whose call takes its time, while another thread looks at the count.

#include "cli/presses.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace ringfence::cli {
namespace {

TEST(PressesTest, NobodySeesAPressBeforeItHasCalledOffWhatWasUnderWay) {
  Presses presses;
  std::promise<void> called;
  std::promise<void> go_on;
  presses.OnPress([&] {
    called.set_value();
    go_on.get_future().wait();
  });
  std::jthread presser([&] { presses.Press(); });
  called.get_future().wait();
  auto seen = std::async(std::launch::async, [&] { return presses.count(); });
  EXPECT_EQ(seen.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  go_on.set_value();
  EXPECT_EQ(seen.get(), 1);
}

TEST(PressesTest, EachIsCountedAndCallsWhoeverIsNamedThen) {
  Presses presses;
  presses.Press();
  int calls = 0;
  presses.OnPress([&] { ++calls; });
  presses.Press();
  presses.OnPress(nullptr);
  presses.Press();
  EXPECT_EQ(presses.count(), 3);
  EXPECT_EQ(calls, 1);
  presses.Sleep(std::chrono::hours(1), 2);  // there are more already
}

}  // namespace
}  // namespace ringfence::cli

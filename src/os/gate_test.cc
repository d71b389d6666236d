// Goal: everybody who waits at a gate goes on when it opens, however many, and nobody before.
// Method: threads; a gate that stays closed; many gates opened one after the other.

#include "os/gate.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace ringfence::os {
namespace {

TEST(GateTest, NobodyGoesThroughBeforeItIsOpen) {
  Gate gate;
  EXPECT_FALSE(gate.Wait(std::chrono::seconds(0)));
  gate.Open();
  EXPECT_TRUE(gate.Wait(std::chrono::seconds(0)));
  EXPECT_TRUE(gate.Wait());
}

TEST(GateTest, EverybodyGoesOn) {
  for (int round = 0; round < 50; ++round) {
    const auto gate = std::make_shared<Gate>();
    std::atomic<int> through = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 32; ++i) {
      threads.emplace_back([&through, gate, i] {
        // Some give up for a moment and come again, as a waiter does whose time is over.
        while (!gate->Wait(i % 4 == 0 ? std::optional(std::chrono::seconds(0)) : std::nullopt)) {
          std::this_thread::yield();
        }
        ++through;
      });
    }
    EXPECT_EQ(through, 0);
    gate->Open();
    threads.clear();
    EXPECT_EQ(through, 32);
  }
}

}  // namespace
}  // namespace ringfence::os

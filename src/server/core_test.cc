// Goal: a disk that stands still takes only so many requests with it; the rest are told to come
// back, and reads go on. Method: a core on a database whose writes end when the test says so.

#include "server/core.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <random>
#include <thread>

#include "net/server.h"

namespace ringfence::server {
namespace {

class StuckDatabase final : public store::Database {
 public:
  Status Write(const std::function<Status(store::Connection&)>& /*work*/) override {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return released_; });
    --inside_;
    return {};
  }
  Status Read(const std::function<Status(store::Connection&)>& /*work*/) override { return {}; }
  void Announce(const std::string& /*topic*/) override {}
  void Listen(std::function<void(const std::string&)> /*listener*/) override {}

  void WaitForInside(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_ == count; });
  }
  void Release() {
    const std::scoped_lock lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t inside_ = 0;
  bool released_ = false;
};

TEST(CoreTest, ADiskThatStandsStillLeavesHandlersForOthers) {
  static_assert(kChangesAtOnceMax + 8 <= net::ServerLimits().handler_threads);
  const auto folder = std::filesystem::temp_directory_path() /
                      ("ringfence-core-" + std::to_string(std::random_device()()));
  std::filesystem::create_directories(folder);
  const SystemClock clock;
  auto owned = std::make_unique<StuckDatabase>();
  StuckDatabase& database = *owned;
  Core core({std::move(owned), OpenKeys({folder, {"localhost"}, {}, {}}, clock.Now()).value(),
             folder, nullptr},
            clock);
  const auto change = [&] { return core.Change([](store::Connection&) { return Status(); }); };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kChangesAtOnceMax; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(change().has_value()); });
  }
  database.WaitForInside(kChangesAtOnceMax);
  const Status refused = change();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kExhausted);
  EXPECT_TRUE(core.database().Read([](store::Connection&) { return Status(); }).has_value());
  database.Release();
  threads.clear();
  EXPECT_TRUE(change().has_value()) << "the places are free again";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ringfence::server

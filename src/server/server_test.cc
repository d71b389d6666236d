// Goal: the routes and the contract are the same list; a waiting request is answered once and never
// forgotten.
// Method: the route table against api/openapi.yaml; waiters with a hand-driven clock.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "server/router.h"
#include "server/waiters.h"
#include "wire/yaml.h"

namespace ringfence::server {
namespace {

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(RouteTest, EveryRouteIsInTheContractAndEveryPathOfTheContractIsARoute) {
  const auto contract = wire::YamlToJson(
      ReadAll(std::string(RINGFENCE_SOURCE_DIR) + "/api/openapi.yaml"), "openapi.yaml");
  ASSERT_TRUE(contract.has_value()) << contract.error().message;
  std::set<std::string> promised;
  for (const auto& path : contract->as_object().at("paths").as_object()) {
    for (const auto& method : path.value().as_object()) {
      std::string name(method.key());
      std::transform(name.begin(), name.end(), name.begin(), ::toupper);
      const auto& operation = method.value().as_object();
      const auto* action = operation.if_contains("x-ringfence-action");
      promised.insert(name + " " + std::string(path.key()) + " " +
                      (action != nullptr ? std::string(action->as_string()) : "-"));
    }
  }
  std::set<std::string> served;
  for (const Route& route : AllRoutes()) {
    served.insert(std::string(route.method) + " " + std::string(route.path) + " " +
                  (route.action.has_value() ? std::string(Name(*route.action)) : "-"));
    EXPECT_EQ(route.action.has_value(), route.door == Door::kToken) << route.path;
    EXPECT_NE(route.handler, nullptr) << route.path;
  }
  EXPECT_EQ(served, promised);
}

class WaitersTest : public testing::Test {
 protected:
  WaitersTest() {
    waiters_.SetLater([this](Milliseconds delay, std::function<void()> task) {
      later_.emplace_back(delay, std::move(task));
    });
  }
  void RunAll() {
    auto tasks = std::move(later_);
    later_.clear();
    for (auto& [delay, task] : tasks) {
      task();
    }
  }
  Waiters waiters_;
  std::vector<std::pair<Milliseconds, std::function<void()>>> later_;
};

TEST_F(WaitersTest, AnsweredByANotificationAndOnlyOnce) {
  bool ready = false;
  int answers = 0;
  waiters_.Park("t", Milliseconds(1000), [&](bool last) {
    if (!ready && !last) {
      return false;
    }
    ++answers;
    return true;
  });
  ASSERT_EQ(later_.size(), 1U) << "the deadline";
  waiters_.Notify("other");
  EXPECT_EQ(later_.size(), 1U);
  ready = true;
  waiters_.Notify("t");
  RunAll();  // the deadline and the notification, both
  EXPECT_EQ(answers, 1);
  waiters_.Notify("t");
  RunAll();
  EXPECT_EQ(answers, 1);
}

TEST_F(WaitersTest, AnsweredAtOnceWhenReadyAndAtTheDeadlineWhenNot) {
  int answers = 0;
  waiters_.Park("t", Milliseconds(1000), [&](bool) { return ++answers > 0; });
  EXPECT_EQ(answers, 1);
  int late = 0;
  waiters_.Park("t", Milliseconds(1000), [&](bool last) {
    late += last;
    return last;
  });
  RunAll();
  EXPECT_EQ(late, 1);
  int released = 0;
  waiters_.Park("t", Milliseconds(1000), [&](bool last) {
    released += last;
    return last;
  });
  waiters_.ReleaseAll();
  EXPECT_EQ(released, 1);
}

TEST_F(WaitersTest, BeyondTheMostNobodyWaitsAndRoomComesFreeAgain) {
  std::size_t ended = 0;
  const auto attempt = [&](bool last) {
    ended += last ? 1 : 0;
    return last;
  };
  for (std::size_t i = 0; i < kParkedMax; ++i) {
    waiters_.Park("t" + std::to_string(i % 10), Milliseconds(1000), attempt);
  }
  EXPECT_EQ(ended, 0U);
  waiters_.Park("t", Milliseconds(1000), attempt);
  EXPECT_EQ(ended, 1U) << "answered with what there is";
  RunAll();
  EXPECT_EQ(ended, kParkedMax + 1);
  waiters_.Park("t", Milliseconds(1000), attempt);
  EXPECT_EQ(ended, kParkedMax + 1) << "there is room to wait again";
}

}  // namespace
}  // namespace ringfence::server

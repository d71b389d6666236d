// Goal: the routes and the contract are the same list; what jobs print survives a crash and a
// repeated delivery; a waiting request is answered once and never forgotten.
// Method: the route table against api/openapi.yaml; output files cut at every length; waiters with
// a hand-driven clock.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "server/output_store.h"
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

class OutputTest : public testing::Test {
 protected:
  OutputTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("ringfence-output-" + std::to_string(reinterpret_cast<std::uintptr_t>(this)))) {
    std::filesystem::create_directories(folder_);
  }
  ~OutputTest() override { std::filesystem::remove_all(folder_); }

  static std::string TextOf(OutputStore& store) {
    std::string text;
    std::uint64_t from = 0;
    for (;;) {
      const auto page = store.Read("l", from);
      EXPECT_TRUE(page.has_value());
      for (const OutputChunk& chunk : page->chunks) {
        text += (chunk.is_error ? "E" : "O") + ToText(chunk.data);
      }
      from = page->next;
      if (page->at_end) {
        return text;
      }
    }
  }

  std::filesystem::path folder_;
};

TEST_F(OutputTest, RepeatedDeliveriesAreKeptOnceAndGapsAreRefused) {
  OutputStore store(folder_);
  EXPECT_TRUE(store.Append("l", 1, {false, ToBytes("a")}).has_value());
  EXPECT_TRUE(store.Append("l", 2, {true, ToBytes("b")}).has_value());
  EXPECT_TRUE(store.Append("l", 1, {false, ToBytes("a")}).has_value());
  EXPECT_TRUE(store.Append("l", 2, {true, ToBytes("b")}).has_value());
  EXPECT_EQ(store.Append("l", 4, {false, ToBytes("d")}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(TextOf(store), "OaEb");
  OutputStore again(folder_);
  EXPECT_TRUE(again.Append("l", 2, {true, ToBytes("b")}).has_value());
  EXPECT_TRUE(again.Append("l", 3, {false, ToBytes("c")}).has_value());
  EXPECT_EQ(TextOf(again), "OaEbOc");
}

TEST_F(OutputTest, ATailTornAnywhereIsDroppedAndSentAgain) {
  {
    OutputStore store(folder_);
    ASSERT_TRUE(store.Append("l", 1, {false, ToBytes("first")}).has_value());
    ASSERT_TRUE(store.Append("l", 2, {false, ToBytes("second")}).has_value());
  }
  const std::string whole = ReadAll(folder_ / "l.log");
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    std::ofstream(folder_ / "l.log", std::ios::binary) << whole.substr(0, cut);
    OutputStore store(folder_);
    ASSERT_TRUE(store.Append("l", 1, {false, ToBytes("first")}).has_value()) << cut;
    ASSERT_TRUE(store.Append("l", 2, {false, ToBytes("second")}).has_value()) << cut;
    EXPECT_EQ(TextOf(store), "OfirstOsecond") << cut;
  }
}

TEST_F(OutputTest, ManyPagesGiveEverything) {
  OutputStore store(folder_);
  std::string expected;
  for (std::uint32_t i = 1; i <= 40; ++i) {
    const std::string text(30000, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(store.Append("l", i, {false, ToBytes(text)}).has_value());
    expected += "O" + text;
  }
  EXPECT_EQ(TextOf(store), expected);
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

}  // namespace
}  // namespace ringfence::server

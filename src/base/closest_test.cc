// Goal: "did you mean" offers what a person mistyped, and never something unrelated.
// Method: known distances; each single change of a name; names far apart.

#include "base/closest.h"

#include <gtest/gtest.h>

namespace ringfence {
namespace {

TEST(ClosestTest, KnownDistancesBothWays) {
  struct Row {
    std::string_view a, b;
    std::size_t distance;
  };
  const Row rows[] = {
      {"", "", 0},       {"a", "", 1},        {"kitten", "sitting", 3},
      {"ab", "ba", 1},   {"abcd", "abdc", 1}, {"tenant", "tennat", 1},
      {"abc", "xyz", 3},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(EditDistance(row.a, row.b, 10), row.distance) << row.a << ' ' << row.b;
    EXPECT_EQ(EditDistance(row.b, row.a, 10), row.distance) << row.b << ' ' << row.a;
    if (row.distance > 0) {
      EXPECT_EQ(EditDistance(row.a, row.b, row.distance - 1), row.distance);
    }
  }
  const std::string long_name(4096, 'a');
  EXPECT_EQ(EditDistance(long_name, long_name, 3), 4U);  // not compared at all
}

TEST(ClosestTest, EverySingleChangeOfANameFindsIt) {
  const std::string name = "acme/research";
  const std::vector<std::string_view> known = {"acme", "acme/finance", name, "globex/trading"};
  for (std::size_t i = 0; i < name.size(); ++i) {
    EXPECT_EQ(Closest(std::string(name).erase(i, 1), known), name);
    EXPECT_EQ(Closest(std::string(name).insert(i, "x"), known), name);
    EXPECT_EQ(Closest(std::string(name).replace(i, 1, "x"), known), name);
  }
}

TEST(ClosestTest, NothingNearAndTheFirstOfEquals) {
  EXPECT_EQ(Closest("umbrella", {"acme", "globex"}), std::nullopt);
  EXPECT_EQ(Closest("", {"a"}), "a");
  EXPECT_EQ(Closest("x", {}), std::nullopt);
  EXPECT_EQ(Closest("cat", {"bat", "hat", "cut"}), "bat");
  EXPECT_EQ(Closest("hat", {"bat", "hat"}), "hat");
}

}  // namespace
}  // namespace ringfence

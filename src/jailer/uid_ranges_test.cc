// Goal: two tenants never get the same range of user ids, whatever happens to the jailer.
// Method: ranges taken, freed and taken again, across new starts; the file cut at every byte.

#include "jailer/uid_ranges.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ringfence::jailer {
namespace {

class UidRangesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/uids.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  UidRanges Open() { return UidRanges::Open(folder_).value(); }
  std::string folder_;
};

TEST_F(UidRangesTest, ATenantKeepsItsOwnAndGetsNoOther) {
  auto ranges = Open();
  const unsigned a = ranges.Take("acme", {}).value();
  const unsigned b = ranges.Take("globex", {}).value();
  EXPECT_NE(a, b);
  EXPECT_EQ(ranges.Take("acme", {}).value(), a) << "free again, and still its own";
  const unsigned second = ranges.Take("acme", {a}).value();
  EXPECT_NE(second, a);
  EXPECT_NE(second, b);
  auto later = Open();
  EXPECT_EQ(later.Take("globex", {}).value(), b);
  EXPECT_EQ(later.Take("acme", {a}).value(), second);
  EXPECT_GT(later.Take("initech", {}).value(), second);
}

TEST_F(UidRangesTest, NamesThatWouldBreakTheFile) {
  auto ranges = Open();
  EXPECT_FALSE(ranges.Take("", {}).has_value());
  EXPECT_FALSE(ranges.Take("a\n0 b", {}).has_value());
}

TEST_F(UidRangesTest, ATornLineGivesNobodyAnothersRange) {
  {
    auto ranges = Open();
    ASSERT_TRUE(ranges.Take("acme", {}).has_value());
    ASSERT_TRUE(ranges.Take("acmeinc", {}).has_value());
  }
  const std::string whole = [&] {
    std::ifstream in(folder_ + "/uids");
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  for (std::size_t cut = whole.find('\n') + 1; cut < whole.size(); ++cut) {
    std::ofstream(folder_ + "/uids", std::ios::trunc) << whole.substr(0, cut);
    auto ranges = Open();
    EXPECT_EQ(ranges.Take("acme", {}).value(), 0U) << cut;
    const unsigned other = ranges.Take("acmeinc", {}).value();
    EXPECT_NE(other, 0U) << cut;
    auto again = Open();
    EXPECT_EQ(again.Take("acme", {}).value(), 0U) << cut;
    EXPECT_EQ(again.Take("acmeinc", {}).value(), other) << cut;
    EXPECT_NE(again.Take("acme", {0}).value(), other) << cut;
  }
}

TEST_F(UidRangesTest, ADamagedLineStopsTheJailer) {
  std::ofstream(folder_ + "/uids") << "0 acme\nxx globex\n1 initech\n";
  EXPECT_EQ(UidRanges::Open(folder_).error().code, Code::kCorrupt);
}

TEST_F(UidRangesTest, TheyComeToAnEnd) {
  {
    std::ofstream file(folder_ + "/uids");
    for (unsigned slot = 0; slot < kSlotsMax; ++slot) {
      file << slot << " acme\n";
    }
  }
  EXPECT_EQ(Open().Take("globex", {}).error().code, Code::kExhausted);
  EXPECT_TRUE(Open().Take("acme", {}).has_value());
}

}  // namespace
}  // namespace ringfence::jailer

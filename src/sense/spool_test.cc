// Goal: a spool gives back what was put in, in order and once acknowledged never again; whatever is
// lost is told of by a gap record with its number; a number is never given twice. Method: reopened
// after every step, cut at every byte, one bit damaged, filled beyond its size.

#include "sense/spool.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "os/self.h"

namespace ringfence::sense {
namespace {

constexpr Timestamp kNow{Milliseconds(1'763'000'000'000)};

class SpoolTest : public testing::Test {
 protected:
  Spool Open(std::uint64_t bytes_max = 1 << 20U, std::uint64_t segment = 200) {
    return Spool::Open({folder_.path() + "/spool", bytes_max, segment}).value();
  }
  static void Add(Spool& spool, int from, int to) {
    for (int i = from; i < to; ++i) {
      ASSERT_TRUE(spool.Append({{"kind", "x"}, {"n", i}}, kNow).has_value());
    }
  }
  static std::vector<std::string> All(Spool& spool) {
    std::vector<std::string> found;
    std::uint64_t last = 0;
    const auto records = spool.Peek(100'000, 1 << 24U, kNow).value();
    for (const SpooledRecord& record : records) {
      EXPECT_GT(record.sequence, last);
      last = record.sequence;
      const Json json = ParseJson(record.json, 1 << 16U).value();
      const auto& object = json.get_object();
      found.push_back(object.at("kind") == "gap"
                          ? "gap " + std::to_string(object.at("dropped").get_int64())
                          : std::to_string(object.at("n").get_int64()));
    }
    return found;
  }
  std::filesystem::path Newest() const {
    std::filesystem::path newest;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/spool")) {
      if (entry.path().extension() == ".spool" && entry.path() > newest) {
        newest = entry.path();
      }
    }
    return newest;
  }
  os::TempFolder folder_ = os::TempFolder::Create("ringfence-spool").value();
};

TEST_F(SpoolTest, SurvivesItsProcessAndNeverGivesANumberTwice) {
  std::string epoch;
  std::uint64_t next = 1;
  for (int round = 0; round < 12; ++round) {
    Spool spool = Open();
    EXPECT_EQ(spool.next(), next) << round;
    EXPECT_EQ(round == 0 || epoch == spool.epoch(), true);
    epoch = spool.epoch();
    Add(spool, round * 5, round * 5 + 5);
    if (round % 3 == 2) {  // all of it is taken, and the spool is empty
      ASSERT_TRUE(spool.Acknowledge(spool.next()).has_value());
      EXPECT_TRUE(All(spool).empty());
    }
    next = spool.next();
  }
  Spool spool = Open();
  EXPECT_EQ(spool.next(), 61U);
  EXPECT_EQ(spool.waiting(), 0U);
}

TEST_F(SpoolTest, WhatIsAcknowledgedGoesAndTheRestStaysInOrder) {
  Spool spool = Open();
  Add(spool, 0, 30);
  const auto some = spool.Peek(7, 1 << 20U, kNow).value();
  ASSERT_EQ(some.size(), 7U);
  EXPECT_EQ(some[6].sequence, 7U);
  EXPECT_EQ(spool.Peek(100, 1, kNow).value().size(), 1U);  // one at least, however small the room
  ASSERT_TRUE(spool.Acknowledge(8).has_value());
  ASSERT_TRUE(spool.Acknowledge(3).has_value());  // an old answer
  EXPECT_EQ(All(spool).front(), "7");
  EXPECT_EQ(All(spool).size(), 23U);
  ASSERT_TRUE(spool.Acknowledge(1'000'000).has_value());  // of a server that claims too much
  EXPECT_EQ(spool.next(), 31U);
  Add(spool, 30, 31);
  EXPECT_EQ(All(spool), std::vector<std::string>{"30"});
}

TEST_F(SpoolTest, WhenItIsFullTheOldestGoAndAGapSaysHowMany) {
  Spool spool = Open(2000);
  Add(spool, 0, 200);
  EXPECT_LE(spool.bytes(), 2000U + 400U);
  std::uint64_t told = 0;
  std::uint64_t there = 0;
  std::string last;
  for (const std::string& one : All(spool)) {
    if (one.starts_with("gap ")) {
      ++there;
    } else {
      ++there;
      last = one;
    }
  }
  EXPECT_EQ(last, "199");
  told = spool.dropped();
  EXPECT_EQ(told + there, spool.next() - 1);  // every number is here or was told of
  EXPECT_GT(told, 100U);
}

TEST_F(SpoolTest, CutAnywhereItKeepsWhatIsWhole) {
  {
    Spool spool = Open(1 << 20U, 1 << 20U);
    Add(spool, 0, 2);
  }
  const auto path = Newest();
  const auto size = std::filesystem::file_size(path);
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t cut = 0; cut < size; cut += 2) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, cut);
    Spool spool = Open(1 << 20U, 1 << 20U);
    const auto lines = static_cast<std::size_t>(
        std::count(whole.begin(), whole.begin() + static_cast<long>(cut), '\n'));
    const bool torn = cut > 0 && whole[cut - 1] != '\n';
    EXPECT_EQ(All(spool).size(), lines);
    Add(spool, 9, 10);
    const auto all = All(spool);
    EXPECT_EQ(all.size(), lines + (torn ? 2U : 1U)) << cut;
    EXPECT_EQ(all.back(), "9");
    if (torn) {
      EXPECT_EQ(all[lines], "gap 1");
    }
    for (const auto& entry : std::filesystem::directory_iterator(path.parent_path())) {
      if (entry.path().extension() == ".spool" && entry.path() != path) {
        std::filesystem::remove(entry.path());
      }
    }
  }
}

TEST_F(SpoolTest, ADamagedBitUnderARunningSpoolIsAGapAndWhatFollowsIsDelivered) {
  Spool spool = Open();
  Add(spool, 0, 40);
  const std::filesystem::path first = folder_.path() + "/spool/0000000000000001.spool";
  {
    std::fstream file(first, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(20);
    file.put('#');
  }
  const auto all = All(spool);
  EXPECT_EQ(all.back().substr(0, 4), "gap ");
  EXPECT_EQ(all[all.size() - 2], "39");
  EXPECT_LT(all.size(), 41U);
  EXPECT_EQ(all.size() + spool.dropped(), spool.next() - 1);
}

}  // namespace
}  // namespace ringfence::sense

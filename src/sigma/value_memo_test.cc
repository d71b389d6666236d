// Goal: the memo gives back what was kept for a value at a place and nothing else, and never grows
// beyond its limits; a matcher whose memo overflows and forgets goes on answering the same.
// Method: values alike in all but one thing; floods of values, each twice.

#include "sigma/value_memo.h"

#include "sigma/announce.h"
#include "sigma/test_support.h"

namespace ringfence::sigma {
namespace {

TEST(ValueMemo, FindsWhatItKeptAndNothingElse) {
  ValueMemo memo;
  std::vector<std::string> texts = {"", "a", "b", "ab", "abc", "abd", "abcd", "abcdefgh"};
  for (const std::size_t size : {15U, 16U, 17U, 31U, 32U, 33U, 100U}) {
    texts.emplace_back(size, 'x');
    texts.push_back(std::string(size - 1, 'x') + "y");
    texts.push_back("y" + std::string(size - 1, 'x'));
  }
  for (std::uint32_t place = 0; place < 3; ++place) {
    for (std::uint32_t i = 0; i < texts.size(); ++i) {
      const std::uint64_t hash = ValueMemo::Hash(place, texts[i]);
      EXPECT_EQ(memo.Find(hash, place, texts[i]), nullptr);
      EXPECT_FALSE(memo.Recurs(hash)) << texts[i];
      EXPECT_TRUE(memo.Recurs(hash)) << texts[i];
      const std::vector<std::uint32_t> hits = {place, i};
      memo.Keep(hash, place, texts[i], "folded " + texts[i], hits);
    }
  }
  for (std::uint32_t place = 0; place < 3; ++place) {
    for (std::uint32_t i = 0; i < texts.size(); ++i) {
      const auto* found = memo.Find(ValueMemo::Hash(place, texts[i]), place, texts[i]);
      ASSERT_NE(found, nullptr) << texts[i];
      EXPECT_EQ(found->folded(), "folded " + texts[i]);
      ASSERT_EQ(found->hits().size(), 2U);
      EXPECT_EQ(found->hits()[0], place);
      EXPECT_EQ(found->hits()[1], i);
    }
  }
  EXPECT_EQ(memo.Find(ValueMemo::Hash(3, "abc"), 3, "abc"), nullptr);
  EXPECT_EQ(memo.Find(ValueMemo::Hash(0, "abc"), 0, "abe"), nullptr);
}

TEST(ValueMemo, KeepsNothingTooLongAndForgetsAllWhenFull) {
  ValueMemo memo;
  const std::string large(ValueMemo::kValueBytesMax + 1, 'x');
  const std::uint64_t hash = ValueMemo::Hash(0, large);
  memo.Keep(hash, 0, large, large, {});
  EXPECT_EQ(memo.Find(hash, 0, large), nullptr);
  const auto keep = [&](std::size_t number) {
    const std::string text = std::to_string(number);
    memo.Keep(ValueMemo::Hash(0, text), 0, text, text, {});
    return memo.Find(ValueMemo::Hash(0, text), 0, text) != nullptr;
  };
  for (std::size_t i = 0; i < ValueMemo::kEntriesMax; ++i) {
    ASSERT_TRUE(keep(i));
  }
  bool holds = false;
  memo.KeepAnswer(0, 7, true);
  EXPECT_TRUE(memo.FindAnswer(0, 7, holds) && holds);
  EXPECT_FALSE(keep(ValueMemo::kEntriesMax));
  memo.BeginEvent();
  EXPECT_EQ(memo.Find(ValueMemo::Hash(0, "0"), 0, "0"), nullptr);
  EXPECT_FALSE(memo.FindAnswer(0, 7, holds));
  EXPECT_TRUE(keep(ValueMemo::kEntriesMax));
}

TEST(ValueMemo, AMatcherThatForgetsAnswersTheSame) {
  const RuleSet set =
      testing::SetOf(testing::RuleText("    a: {F|contains: '77', G|re: '^x[0-9]+$'}\n"
                                       "    condition: a\n"));
  const auto matcher = Matcher::Build(set);
  Matcher::Session session(*matcher);
  std::size_t matched = 0;
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < ValueMemo::kEntriesMax + 2000; ++i) {
    const std::string number = std::to_string(i);
    const std::string event =
        R"({"F":")" + number + R"(","G":")" + (i % 2 == 0 ? "x" : "y") + number + R"("})";
    const bool holds = number.find("77") != std::string::npos && i % 2 == 0;
    for (int again = 0; again < 3; ++again) {
      const auto fast = session.Match(event);
      ASSERT_TRUE(fast.has_value());
      matched += (*fast)->size();
      wanted += holds ? 1 : 0;
      ASSERT_EQ(matched, wanted) << event;
    }
  }
  EXPECT_GT(matched, 0U);
}

TEST(Announce, LiteralsThatAnExpressionCannotDoWithout) {
  const auto of = [](const std::string& regex) { return Announcers(regex); };
  using List = std::vector<std::string>;
  EXPECT_EQ(of("foo.*BarBaz"), List{"barbaz"});
  EXPECT_EQ(of(R"(\{.*\{.*\{)"), List{"{"});
  EXPECT_EQ(of(R"(\w+`\w)"), List{"`"});
  EXPECT_EQ(of("[a-z]{5}"), List{});
  EXPECT_EQ(of("x*"), List{});
  List either = of("(?i)first|second");
  std::sort(either.begin(), either.end());
  EXPECT_EQ(either, (List{"first", "second"}));
  EXPECT_EQ(LeastBytes(".{1000,}"), 1000U);
  EXPECT_EQ(LeastBytes(".{2,}|.{3,}"), 0U);
  EXPECT_EQ(LeastBytes("(.{2,})"), 0U);
}

}  // namespace
}  // namespace ringfence::sigma

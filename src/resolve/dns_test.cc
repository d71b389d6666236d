// Goal: an answer is believed only when it is the one to this very question, whole and within every
// bound; whatever else comes is refused without reading past its end.
// Method: messages written by hand, byte by byte, then damaged: cut everywhere, every bit flipped,
// with pointers that loop, lengths that lie, chains without end.

#include "resolve/dns.h"

#include <gtest/gtest.h>

#include <functional>

#include "resolve/wire_test.h"

namespace ringfence::resolve {
namespace {

using wire::Address;
using wire::Alias;
using wire::Message;
using wire::Name;

const std::uint32_t kServer = 0xc6336402;  // 198.51.100.2

Query Asked() { return Query{0x1234, std::string(WireName("www.acme.org"))}; }

Message Right() {
  Message message;
  message.question = Asked().name;
  message.records = {Address("www.acme.org", kServer, 300)};
  return message;
}

std::vector<std::uint32_t> AddressesOf(const Message& message) {
  const auto answer = ParseAnswer(message.Write(), Asked());
  EXPECT_TRUE(answer.has_value()) << answer.error().message;
  return answer.has_value() ? answer->found.addresses : std::vector<std::uint32_t>();
}

Code CodeOf(const Message& message) {
  const auto answer = ParseAnswer(message.Write(), Asked());
  return answer.has_value() ? Code::kInternal : answer.error().code;
}

TEST(Dns, NamesOnTheWire) {
  EXPECT_EQ(WireName("www.Acme.org"), std::string("\3www\4acme\3org\0", 14));
}

TEST(Dns, TheRightAnswer) {
  const auto answer = ParseAnswer(Right().Write(), Asked());
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->found.addresses, std::vector<std::uint32_t>{kServer});
  EXPECT_EQ(answer->found.ttl_seconds, 300U);
}

TEST(Dns, AnswersToSomethingElse) {
  Message message = Right();
  message.id = 0x1235;
  EXPECT_EQ(CodeOf(message), Code::kNotFound);
  message = Right();
  message.flags = 0x0100;  // a question
  EXPECT_EQ(CodeOf(message), Code::kNotFound);
  message = Right();
  message.question = WireName("www.evil.org");
  EXPECT_EQ(CodeOf(message), Code::kNotFound);
  message = Right();
  message.question[1] = 'W';  // the case was not echoed
  EXPECT_EQ(CodeOf(message), Code::kNotFound);
  message = Right();
  message.type = 28;
  EXPECT_EQ(CodeOf(message), Code::kNotFound);
  message = Right();
  message.questions = 0;
  EXPECT_EQ(CodeOf(message), Code::kNotFound);
}

TEST(Dns, TheCaseOfEveryLetterIsOurs) {
  const Bytes coins(64, std::byte{1});
  const Query query = MakeQuery(WireName("a-1.acme.org"), 7, coins);
  EXPECT_EQ(query.name, std::string("\3A-1\4ACME\3ORG\0", 14));
  Message message;
  message.id = 7;
  message.question = query.name;
  message.records = {Address("a-1.acme.org", kServer, 60)};  // owners may be of either case
  EXPECT_TRUE(ParseAnswer(message.Write(), query).has_value());
  message.question = WireName("a-1.acme.org");
  EXPECT_FALSE(ParseAnswer(message.Write(), query).has_value());
}

TEST(Dns, AliasesAreFollowedInsideTheAnswerOnly) {
  Message message = Right();
  message.records = {Alias("www.acme.org", "cdn.example.net", 20),
                     Address("cdn.example.net", kServer, 300), Address("other.net", 1, 300)};
  const auto answer = ParseAnswer(message.Write(), Asked());
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->found.addresses, std::vector<std::uint32_t>{kServer});
  EXPECT_EQ(answer->found.ttl_seconds, 20U);                  // the least on the way
  message.records = {Address("www.evil.org", kServer, 300)};  // of a name that nobody asked for
  EXPECT_TRUE(AddressesOf(message).empty());
}

TEST(Dns, ChainsHaveAnEnd) {
  Message message = Right();
  message.records = {Alias("www.acme.org", "a.org", 9), Alias("a.org", "www.acme.org", 9)};
  EXPECT_EQ(CodeOf(message), Code::kCorrupt);
  message.records = {Alias("www.acme.org", "a.org", 9), Alias("www.acme.org", "b.org", 9)};
  EXPECT_EQ(CodeOf(message), Code::kCorrupt);
  const auto chain = [&](std::size_t length) {
    message.records.clear();
    std::string name = "www.acme.org";
    for (std::size_t i = 0; i < length; ++i) {
      const std::string next = "n" + std::to_string(i) + ".org";
      message.records.push_back(Alias(name, next, 9));
      name = next;
    }
    message.records.push_back(Address(name, kServer, 9));
  };
  chain(kAliasesMax);
  EXPECT_EQ(AddressesOf(message), std::vector<std::uint32_t>{kServer});
  chain(kAliasesMax + 1);
  EXPECT_EQ(CodeOf(message), Code::kCorrupt);
}

TEST(Dns, GiantAnswersAreBounded) {
  Message message = Right();
  message.records.clear();
  for (std::uint32_t i = 0; i < kRecordsMax; ++i) {
    message.records.push_back(Address("www.acme.org", kServer + i, 60));
  }
  EXPECT_EQ(AddressesOf(message).size(), kAddressesMax);
  message.records.push_back(Address("www.acme.org", 1, 60));
  EXPECT_EQ(CodeOf(message), Code::kCorrupt);
}

TEST(Dns, PointersThatLoop) {
  // www.acme.org's record begins after the question: its owner points at itself, forward, into the
  // header, and to a place that points back to it.
  const std::size_t at = 12 + Asked().name.size() + 4;
  for (const std::size_t to : {at, at + 40, std::size_t{0}, std::size_t{0x3fff}}) {
    Message message = Right();
    message.records = {std::string{static_cast<char>(0xc0 | (to >> 8U)), static_cast<char>(to)} +
                       Address("", kServer, 60).substr(1)};
    EXPECT_EQ(CodeOf(message), Code::kCorrupt) << to;
  }
}

TEST(Dns, LengthsThatLie) {
  Message message = Right();
  for (const int change : {-1, 1}) {
    std::string record = Address("www.acme.org", kServer, 60);
    record[record.size() - 5] = static_cast<char>(4 + change);
    message.records = {record};
    EXPECT_EQ(CodeOf(message), Code::kCorrupt) << change;
  }
  message.records = {Address("www.acme.org", kServer, 60)};
  message.answers = 2;
  EXPECT_EQ(CodeOf(message), Code::kCorrupt);
}

TEST(Dns, ATtlWithItsHighestBitIsNone) {
  Message message = Right();
  message.records = {Address("www.acme.org", kServer, 0x80000001)};
  EXPECT_EQ(ParseAnswer(message.Write(), Asked())->found.ttl_seconds, 0U);
}

TEST(Dns, TruncatedAndRefused) {
  Message message = Right();
  message.flags = 0x8380;
  auto answer = ParseAnswer(message.Write(), Asked());
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->truncated);
  EXPECT_TRUE(answer->found.addresses.empty());
  message.flags = 0x8183;
  answer = ParseAnswer(message.Write(), Asked());
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->found.rcode, Rcode::kNoName);
}

TEST(Dns, CutAndDamagedEverywhere) {
  Message message = Right();
  message.records = {Alias("www.acme.org", "cdn.example.net", 20),
                     Address("cdn.example.net", kServer, 300)};
  const Bytes whole = message.Write();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(ParseAnswer(cut, Asked()).has_value()) << size;
    (void)ParseQuestion(cut);
  }
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes damaged = whole;
    damaged[bit / 8] ^= std::byte{static_cast<unsigned char>(1U << (bit % 8))};
    const auto answer = ParseAnswer(damaged, Asked());
    if (answer.has_value()) {
      EXPECT_LE(answer->found.addresses.size(), kAddressesMax);
    }
    (void)ParseQuestion(damaged);
  }
}

TEST(Dns, QuestionsOfABox) {
  Message message;
  message.flags = 0x0100;
  message.question = std::string("\3WWW\4acme\3org\0", 14);
  const auto question = ParseQuestion(message.Write());
  ASSERT_TRUE(question.has_value());
  EXPECT_EQ(question->wrong, Rcode::kOk);
  EXPECT_EQ(question->name, WireName("www.acme.org"));
  EXPECT_EQ(question->type, kTypeA);
  // The answer echoes the question as it came, and fits into a plain datagram at its largest.
  Found found;
  found.addresses.assign(kAddressesMax, kServer);
  const Bytes answer = MakeAnswer(*question, found);
  EXPECT_NE(AsText(answer).find("\3WWW"), std::string_view::npos);
  Question longest = *question;
  longest.asked.assign(255 + 4, std::byte{1});
  EXPECT_LE(MakeAnswer(longest, found).size(), kQuestionBytesMax);
}

TEST(Dns, WrongQuestionsOfABox) {
  Message message;
  message.flags = 0x8100;  // an answer: never answered, or two of us would talk for ever
  message.question = WireName("www.acme.org");
  EXPECT_FALSE(ParseQuestion(message.Write()).has_value());
  message.flags = 0x2900;  // an update
  EXPECT_EQ(ParseQuestion(message.Write())->wrong, Rcode::kNotImplemented);
  message.flags = 0x0100;
  message.questions = 2;
  EXPECT_EQ(ParseQuestion(message.Write())->wrong, Rcode::kFormat);
  message.questions = 1;
  message.kind = 3;  // CHAOS
  EXPECT_EQ(ParseQuestion(message.Write())->wrong, Rcode::kRefused);
  EXPECT_FALSE(ParseQuestion(ToBytes("short")).has_value());
}

}  // namespace
}  // namespace ringfence::resolve

// Goal: a box hears of the names of its grant and of no others, only after the jailer has opened
// what they stand for, and never what a resolver above made up.
// Method: the resolver over real sockets of the loopback; the test plays boxes (127.0.0.2, .3), the
// jailer, and resolvers above that tell the truth, lie, are silent, cut short or never end.

#include "resolve/resolver.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "os/socket_pair.h"
#include "resolve/lying_test.h"

namespace ringfence::resolve {
namespace {

using wire::Address;
using wire::Alias;
using wire::Message;
using wire::Name;

constexpr std::uint32_t kHere = 0x7f000001;
constexpr std::uint32_t kBox = 0x7f000002;
constexpr std::uint32_t kOtherBox = 0x7f000003;
constexpr std::uint32_t kServer = 0xc6336402;
constexpr int kAnswerMs = 20'000;  // within it an answer has come, on the slowest machine
constexpr int kSilenceMs = 200;

class ResolverTest : public ::testing::Test {
 protected:
  void TearDown() override {
    jailer_.Reset();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  // `patience` with each try; short where silence is expected.
  void Start(Liar::Script script, std::chrono::milliseconds patience = std::chrono::seconds(10)) {
    above_ = Liar::At({kHere, 0}, std::move(script));
    auto pair = os::MakeSocketPair(kToResolverBytesMax);
    ASSERT_TRUE(pair.has_value());
    jailer_ = std::move(pair->first);
    ASSERT_TRUE(os::SetNonBlocking(pair->second.get(), true).has_value());
    ResolverParts parts;
    parts.jailer = std::move(pair->second);
    parts.streams = std::move(os::ListenTcp({0, 0}, 8).value());
    port_ = os::OwnEnd(parts.streams.get())->port;
    parts.datagrams = std::move(os::BindUdp({0, port_}).value());
    parts.above = {above_->end()};
    parts.patience = patience;
    thread_ = std::jthread([parts = std::make_shared<ResolverParts>(std::move(parts))] {
      const Status done = Resolver(std::move(*parts)).Run();
      EXPECT_TRUE(done.has_value()) << done.error().message;
    });
    Say(AddBox{7, 70, kBox, {"www.acme.org", "pypi.org"}});
  }

  void Say(const ToResolver& message) {
    ASSERT_TRUE(os::SendMessage(jailer_.get(), Encode(message)).has_value());
  }
  // What it wants opened; none within the time.
  std::optional<OpenName> Wanted(int wait_ms = kAnswerMs) {
    pollfd item{jailer_.get(), POLLIN, 0};
    if (poll(&item, 1, wait_ms) != 1) {
      return std::nullopt;
    }
    const auto message = os::ReceiveMessage(jailer_.get(), kToJailerBytesMax);
    EXPECT_TRUE(message.has_value());
    const auto wanted = ParseOpenName(message->bytes);
    EXPECT_TRUE(wanted.has_value());
    return *wanted;
  }
  OpenName OpenNext() {
    const auto wanted = Wanted();
    EXPECT_TRUE(wanted.has_value());
    Say(Opened{wanted.value_or(OpenName()).id, true});
    return wanted.value_or(OpenName());
  }

  static Bytes Question(const std::string& name, std::uint32_t type = 1) {
    Message message;
    message.id = 0x4242;
    message.flags = 0x0100;
    message.question = Name(name);
    message.type = type;
    return message.Write();
  }
  os::UniqueFd Ask(const Bytes& question, std::uint32_t from = kBox) {
    os::UniqueFd socket = std::move(os::BindUdp({from, 0}).value());
    os::SendDatagram(socket.get(), question, {kHere, port_});
    return socket;
  }
  // Empty: none within the time.
  static Bytes Heard(const os::UniqueFd& socket, int wait_ms = kAnswerMs) {
    pollfd item{socket.get(), POLLIN, 0};
    if (poll(&item, 1, wait_ms) != 1) {
      return {};
    }
    return os::ReceiveDatagram(socket.get(), 512).value().bytes;
  }
  static int RcodeOf(const Bytes& answer) {
    return answer.size() < 12 ? -1 : static_cast<int>(answer[3] & std::byte{15});
  }
  static std::vector<std::uint32_t> AddressesOf(const Bytes& answer) {
    std::vector<std::uint32_t> addresses;
    const auto count = GetBigEndian<std::uint16_t>(ByteView(answer).subspan(6));
    for (std::size_t i = 1; i <= count; ++i) {
      addresses.push_back(GetBigEndian<std::uint32_t>(
          ByteView(answer).subspan(answer.size() - 16 * (count - i) - 4)));
    }
    return addresses;
  }
  // Asks, and hears an error without anything being opened.
  void ExpectFailure(const std::string& name, int rcode) {
    const os::UniqueFd box = Ask(Question(name));
    EXPECT_EQ(RcodeOf(Heard(box)), rcode) << name;
    EXPECT_FALSE(Wanted(0).has_value());
  }

  std::atomic<int> asked_ = 0;  // outlives who counts
  std::unique_ptr<Liar> above_;
  os::UniqueFd jailer_;
  std::uint16_t port_ = 0;
  std::jthread thread_;
};

TEST_F(ResolverTest, AnswersOnlyAfterTheJailerHasOpened) {
  Start(Truth(kServer));
  const os::UniqueFd box = Ask(Question("www.acme.org"));
  const auto wanted = Wanted();
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->slot, 7U);
  EXPECT_EQ(wanted->mark, 70U);
  EXPECT_EQ(wanted->name, 0U);
  EXPECT_EQ(wanted->seconds, 300U);
  EXPECT_EQ(wanted->addresses, std::vector<std::uint32_t>{kServer});
  EXPECT_TRUE(Heard(box, kSilenceMs).empty());
  Say(Opened{wanted->id, true});
  const Bytes answer = Heard(box);
  EXPECT_EQ(RcodeOf(answer), 0);
  EXPECT_EQ(GetBigEndian<std::uint16_t>(answer), 0x4242);
  EXPECT_EQ(AddressesOf(answer), std::vector<std::uint32_t>{kServer});
  // Again, while it is open: without asking anybody.
  const os::UniqueFd again = Ask(Question("www.acme.org"));
  EXPECT_EQ(AddressesOf(Heard(again)), std::vector<std::uint32_t>{kServer});
  EXPECT_FALSE(Wanted(0).has_value());
}

TEST_F(ResolverTest, WhatTheJailerRefusesIsNotAnswered) {
  Start(Truth(0x7f000001));
  const os::UniqueFd box = Ask(Question("www.acme.org"));
  const auto wanted = Wanted();
  ASSERT_TRUE(wanted.has_value());
  Say(Opened{wanted->id, false});
  const Bytes answer = Heard(box);
  EXPECT_EQ(RcodeOf(answer), 2);
  EXPECT_TRUE(AddressesOf(answer).empty());
}

TEST_F(ResolverTest, OtherNamesTypesAndBoxes) {
  Start([this](ByteView query, bool stream) {
    ++asked_;
    return Truth(kServer)(query, stream);
  });
  ExpectFailure("evil.org", 5);
  ExpectFailure("x.www.acme.org", 5);
  ExpectFailure("acme.org", 5);
  const os::UniqueFd six = Ask(Question("www.acme.org", 28));
  const Bytes none = Heard(six);
  EXPECT_EQ(RcodeOf(none), 0);
  EXPECT_TRUE(AddressesOf(none).empty());
  for (const std::uint32_t type : {2U, 16U, 255U, 252U}) {  // NS, TXT, ANY, a whole zone
    const os::UniqueFd other = Ask(Question("www.acme.org", type));
    EXPECT_EQ(RcodeOf(Heard(other)), 5) << type;
  }
  const os::UniqueFd stranger = Ask(Question("www.acme.org"), kOtherBox);
  EXPECT_TRUE(Heard(stranger, kSilenceMs).empty());
  Say(AddBox{8, 80, kOtherBox, {"pypi.org"}});
  const os::UniqueFd other = Ask(Question("www.acme.org"), kOtherBox);
  EXPECT_EQ(RcodeOf(Heard(other)), 5);
  EXPECT_EQ(asked_, 0);  // nobody above hears what a box may not ask
}

TEST_F(ResolverTest, ABoxThatHasGoneHearsNothing) {
  Start(Truth(kServer));
  const os::UniqueFd box = Ask(Question("www.acme.org"));
  const auto wanted = Wanted();
  ASSERT_TRUE(wanted.has_value());
  Say(RemoveBox{7, 70});
  Say(AddBox{7, 71, kBox, {"pypi.org"}});  // the address is another's
  Say(Opened{wanted->id, true});
  EXPECT_TRUE(Heard(box, kSilenceMs).empty());
  const os::UniqueFd later = Ask(Question("www.acme.org"));
  EXPECT_EQ(RcodeOf(Heard(later)), 5);
}

TEST_F(ResolverTest, LiesAreNotBelieved) {
  // Before the truth: a wrong id, another question, the case not echoed, rubbish.
  Start([](ByteView query, bool) {
    const Message right = wire::AnswerTo(query);
    std::vector<Bytes> all;
    const auto lie = [&](const std::function<void(Message&)>& change) {
      Message message = right;
      message.records = {Address("www.acme.org", 0x0a000001, 300)};
      change(message);
      all.push_back(message.Write());
    };
    lie([](Message& message) { message.id ^= 1U; });
    lie([](Message& message) { message.question = Name("www.evil.org"); });
    lie([](Message& message) { message.question[1] ^= 0x20; });  // one letter's case
    lie([](Message& message) { message.flags = 0x0100; });
    all.push_back(ToBytes("rubbish"));
    Message truth = right;
    truth.records = {Address("www.acme.org", kServer, 1)};
    all.push_back(truth.Write());
    return all;
  });
  const os::UniqueFd box = Ask(Question("www.acme.org"));
  const OpenName opened = OpenNext();
  EXPECT_EQ(opened.addresses, std::vector<std::uint32_t>{kServer});
  EXPECT_EQ(opened.seconds, kTtlSecondsMin);
  EXPECT_EQ(AddressesOf(Heard(box)), std::vector<std::uint32_t>{kServer});
}

TEST_F(ResolverTest, WhoeverGuessesIsGivenUp) {
  Start([this](ByteView query, bool) {
    ++asked_;
    Message message = wire::AnswerTo(query);
    message.id ^= 1U;
    message.records = {Address("www.acme.org", kServer, 300)};
    return std::vector<Bytes>(kStrangersMax + 1, message.Write());
  });
  ExpectFailure("www.acme.org", 2);
  EXPECT_EQ(asked_, 2);  // each resolver above twice
}

TEST_F(ResolverTest, LoopsGiantsAndNonsenseFail) {
  Start([](ByteView query, bool) {
    Message message = wire::AnswerTo(query);
    if (wire::AskedName(query) == "pypi.org") {
      return std::vector<Bytes>{Bytes(kDatagramBytesMax + 1)};
    }
    message.records = {Alias("www.acme.org", "a.org", 9), Alias("a.org", "www.acme.org", 9),
                       Address("a.org", kServer, 9)};
    return std::vector<Bytes>{message.Write()};
  });
  ExpectFailure("www.acme.org", 2);
  ExpectFailure("pypi.org", 2);
}

TEST_F(ResolverTest, SilenceIsAServersFailure) {
  Start(
      [this](ByteView, bool) {
        ++asked_;
        return std::vector<Bytes>();
      },
      std::chrono::milliseconds(50));
  ExpectFailure("www.acme.org", 2);
  EXPECT_LE(asked_, 2);  // the last may still be on its way
}

TEST_F(ResolverTest, NoSuchNameIsSaid) {
  Start([](ByteView query, bool) {
    Message message = wire::AnswerTo(query);
    message.flags = 0x8183;
    return std::vector<Bytes>{message.Write()};
  });
  ExpectFailure("www.acme.org", 3);
}

TEST_F(ResolverTest, TruncatedGoesOnByStream) {
  Start([this](ByteView query, bool stream) {
    Message message = wire::AnswerTo(query);
    if (!stream) {
      message.flags = 0x8380;
      message.records = {Address("www.acme.org", 0x0a000001, 300)};  // not to be believed
      return std::vector<Bytes>{message.Write()};
    }
    ++asked_;
    for (std::uint32_t i = 0; i < 100; ++i) {
      message.records.push_back(Address("www.acme.org", kServer + i, 600));
    }
    return std::vector<Bytes>{message.Write()};
  });
  const os::UniqueFd box = Ask(Question("www.acme.org"));
  const OpenName opened = OpenNext();
  EXPECT_EQ(opened.addresses.size(), kAddressesMax);
  EXPECT_EQ(opened.addresses.front(), kServer);
  EXPECT_EQ(AddressesOf(Heard(box)).size(), kAddressesMax);
  EXPECT_EQ(asked_, 1);
}

TEST_F(ResolverTest, AStreamWithAWrongLengthOrIdFails) {
  Start([](ByteView query, bool stream) {
    Message message = wire::AnswerTo(query);
    message.flags = stream ? 0x8180 : 0x8380;
    message.id ^= stream ? 1U : 0U;
    return std::vector<Bytes>{message.Write()};
  });
  ExpectFailure("www.acme.org", 2);
}

TEST_F(ResolverTest, BoxesMayAskByStreamToo) {
  Start(Truth(kServer));
  os::UniqueFd box(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = [](std::uint32_t ip, std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(ip);
    at.sin_port = htons(port);
    return at;
  };
  const sockaddr_in own = address(kBox, 0);
  const sockaddr_in to = address(kHere, port_);
  ASSERT_EQ(bind(box.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  ASSERT_EQ(connect(box.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  Bytes two;  // at once: the first is refused
  for (const char* name : {"evil.org", "www.acme.org"}) {
    const Bytes question = Question(name);
    const auto length = PutBigEndian(static_cast<std::uint16_t>(question.size()));
    Append(two, length);
    Append(two, question);
  }
  ASSERT_EQ(send(box.get(), two.data(), two.size(), 0), static_cast<ssize_t>(two.size()));
  OpenNext();
  Bytes got;
  const auto whole = [&got] {
    const std::size_t first = got.size() < 2 ? 2 : 2U + GetBigEndian<std::uint16_t>(got);
    return got.size() >= first + 2 &&
           got.size() >= first + 2U + GetBigEndian<std::uint16_t>(ByteView(got).subspan(first));
  };
  while (!whole()) {
    std::array<std::byte, 512> chunk{};
    const ssize_t more = recv(box.get(), chunk.data(), chunk.size(), 0);
    ASSERT_GT(more, 0);
    Append(got, ByteView(chunk).first(static_cast<std::size_t>(more)));
  }
  const std::size_t second = 4U + GetBigEndian<std::uint16_t>(got);
  EXPECT_EQ(RcodeOf(Bytes(got.begin() + 2, got.end())), 5);
  EXPECT_EQ(AddressesOf(Bytes(got.begin() + static_cast<std::ptrdiff_t>(second), got.end())),
            std::vector<std::uint32_t>{kServer});
}

TEST_F(ResolverTest, AFloodOfOneBoxIsBounded) {
  Start([this](ByteView, bool) {
    ++asked_;
    return std::vector<Bytes>();  // never: all of them stay under way
  });
  os::UniqueFd box = std::move(os::BindUdp({kBox, 0}).value());
  for (std::size_t i = 0; i < kAskingPerBoxMax + 1; ++i) {
    os::SendDatagram(box.get(), Question("www.acme.org"), {kHere, port_});
  }
  EXPECT_EQ(RcodeOf(Heard(box)), 2);  // the one too many, at once
  EXPECT_LE(asked_, static_cast<int>(kAskingPerBoxMax));
}

TEST(Messages, ThereAndBack) {
  const AddBox add{1, 2, 3, {"a.org", "b.c.org"}};
  const auto read = ParseToResolver(Encode(ToResolver(add)));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(std::get<AddBox>(*read).names, add.names);
  const OpenName open{1, 2, 3, 4, 5, {6, 7}};
  const Bytes bytes = Encode(open);
  EXPECT_EQ(ParseOpenName(bytes)->addresses, open.addresses);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseOpenName(ByteView(bytes).first(size)).has_value());
  }
  Bytes longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(ParseOpenName(longer).has_value());
  EXPECT_FALSE(ParseOpenName(Encode(OpenName{1, 2, 3, 4, 5, {}})).has_value());
  EXPECT_FALSE(ParseOpenName(Encode(OpenName{1, 2, 3, 4, 5, std::vector<std::uint32_t>(13, 1)}))
                   .has_value());
}

}  // namespace
}  // namespace ringfence::resolve

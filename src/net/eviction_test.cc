// Goal: connections are capped, and a cap that is reached locks nobody out: who only waits gives
// way to who comes, a request under way never does, and of those who wait the one goes that holds
// up most. Method: a server with few places; clients that hold them in every way there is.

#include <mutex>
#include <vector>

#include "net/server.h"
#include "net/test_support.h"

namespace ringfence::net {
namespace {

const TestCa& Ca() {
  static const TestCa ca;
  return ca;
}

// Answers at once, but for /wait, which waits until Release.
class Room {
 public:
  Server::Handler handler() {
    return [this](const Request& request, const Responder& responder) {
      if (request.path != "/wait") {
        responder.Send(Response::OfText(200, "done."));
        return;
      }
      const std::scoped_lock lock(mutex_);
      waiting_.push_back(responder);
    };
  }
  std::size_t size() {
    const std::scoped_lock lock(mutex_);
    return waiting_.size();
  }
  void Release() {
    const std::scoped_lock lock(mutex_);
    for (const Responder& responder : waiting_) {
      responder.Send(Response::OfText(200, "done."));
    }
    waiting_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<Responder> waiting_;
};

class EvictionTest : public testing::Test {
 protected:
  static constexpr std::size_t kPlaces = 4;

  void Serve(std::size_t per_address, std::size_t all) {
    ServerLimits limits;
    limits.connections_per_address_max = per_address;
    limits.connections_max = all;
    server_ = Server::Start("127.0.0.1:0", Ca().ServerIdentity(), limits, room_.handler()).value();
  }
  std::unique_ptr<RawConnection> Connect() {
    auto raw = std::make_unique<RawConnection>(server_->address(), RawConnection::ContextFor(Ca()));
    EXPECT_TRUE(raw->Handshake());
    return raw;
  }
  bool Answers(RawConnection& raw) {
    return raw.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n") &&
           raw.ReadUntil("done.").find("done.") != std::string::npos;
  }
  bool ANewClientIsAnswered() {
    return MakeClient(server_->address(), Ca())->Send({.target = "/"}).has_value();
  }

  Room room_;
  std::unique_ptr<Server> server_;
};

TEST_F(EvictionTest, TheOneThatWaitedLongestGivesWay) {
  Serve(kPlaces, 100);
  std::vector<std::unique_ptr<RawConnection>> raw;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    raw.push_back(Connect());
    ASSERT_TRUE(Answers(*raw.back()));
  }
  ASSERT_TRUE(Answers(*raw[0]));  // so that the second has waited longest
  EXPECT_TRUE(ANewClientIsAnswered());
  EXPECT_EQ(server_->stats().evicted, 1U);
  EXPECT_EQ(raw[1]->ReadToEnd(), "");
  EXPECT_TRUE(raw[1]->closed());
  for (const std::size_t i : {0U, 2U, 3U}) {
    EXPECT_TRUE(Answers(*raw[i])) << i;
  }
}

TEST_F(EvictionTest, WhoSendsNothingOrHalfAHeadGivesWay) {
  Serve(kPlaces, 100);
  std::vector<std::unique_ptr<RawConnection>> raw;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    raw.push_back(Connect());
    if (i % 2 == 1) {
      ASSERT_TRUE(raw.back()->Send("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "));
    }
  }
  for (std::size_t i = 0; i < 3 * kPlaces; ++i) {
    EXPECT_TRUE(ANewClientIsAnswered()) << i;
  }
}

// Whoever has its answer is idle a moment later only: until then it is at work, and the body that
// is coming is all that can give way. So of several tries one has to show the order.
TEST_F(EvictionTest, ABodyThatIsComingGoesLast) {
  Serve(2, 100);
  bool idle_went_first = false;
  for (int i = 0; i < 20 && !idle_went_first; ++i) {
    const auto body = Connect();
    ASSERT_TRUE(body->Send(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"));
    ASSERT_NE(body->ReadUntil("\r\n\r\n").find("100 Continue"), std::string::npos);
    ASSERT_TRUE(body->Send("x"));
    const auto idle = Connect();
    ASSERT_TRUE(Answers(*idle));
    EXPECT_TRUE(ANewClientIsAnswered());
    idle_went_first =
        body->Send("y") && body->ReadUntil("done.").find("done.") != std::string::npos;
    EXPECT_NE(Answers(*idle), idle_went_first) << "one of them went, and one only";
  }
  EXPECT_TRUE(idle_went_first);
}

TEST_F(EvictionTest, ARequestUnderWayIsNeverBrokenOff) {
  Serve(kPlaces, 100);
  std::vector<std::unique_ptr<RawConnection>> raw;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    raw.push_back(Connect());
    ASSERT_TRUE(raw.back()->Send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"));
  }
  ASSERT_TRUE(Eventually([&] { return room_.size() == kPlaces; }));
  const auto fifth = MakeClient(server_->address(), Ca())->Send({.target = "/"});
  ASSERT_FALSE(fifth.has_value());
  EXPECT_EQ(fifth.error().code, Code::kUnavailable);
  EXPECT_FALSE(fifth.error().hint.empty());
  room_.Release();
  for (const auto& one : raw) {
    EXPECT_NE(one->ReadUntil("done.").find("done."), std::string::npos);
  }
  EXPECT_TRUE(ANewClientIsAnswered());
}

TEST_F(EvictionTest, AllPlacesTakenLockNobodyOutEither) {
  Serve(100, kPlaces);
  std::vector<std::unique_ptr<RawConnection>> raw;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    raw.push_back(Connect());
  }
  EXPECT_TRUE(ANewClientIsAnswered());
  EXPECT_LE(server_->stats().connections_open, kPlaces);
}

}  // namespace
}  // namespace ringfence::net

// Goal: a request is read the same whole or in pieces, targets decode as they should, and limits
// count what they say.
// Method: every cut of good requests; tables of good and bad targets; a clock the test moves.

#include <gtest/gtest.h>

#include <thread>

#include "net/address.h"
#include "net/address_limiter.h"
#include "net/client.h"
#include "net/handler_pool.h"
#include "net/request_reader.h"
#include "net/response_writer.h"
#include "net/target.h"

namespace ringfence::net {
namespace {

constexpr std::string_view kPlain =
    "POST /v1/leases?tenant=acme%2Fresearch&x=a+b HTTP/1.1\r\nHost: h\r\nX-Thing: Value\r\n"
    "Content-Length: 5\r\n\r\nhello";
constexpr std::string_view kChunked =
    "POST /v1/leases?tenant=acme%2Fresearch&x=a+b HTTP/1.1\r\nHost: h\r\nX-Thing: Value\r\n"
    "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nX-Trailer: t\r\n\r\n";

void ExpectTheRequest(RequestReader& reader) {
  ASSERT_EQ(reader.state(), RequestReader::State::kComplete);
  const Request request = reader.Take();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/v1/leases");
  EXPECT_EQ(request.Query("tenant"), "acme/research");
  EXPECT_EQ(request.Query("x"), "a b");
  EXPECT_EQ(request.Query("absent"), "");
  EXPECT_EQ(request.Header("x-thing"), "Value");
  EXPECT_EQ(request.Header("x-trailer"), "") << "a trailer is no header";
  EXPECT_EQ(request.body, "hello");
  EXPECT_EQ(reader.state(), RequestReader::State::kIdle);
}

TEST(RequestReaderTest, EveryCutGivesTheSameRequest) {
  for (const std::string_view message : {kPlain, kChunked}) {
    for (std::size_t cut = 0; cut <= message.size(); ++cut) {
      RequestReader reader({});
      std::size_t used = reader.Feed(message.substr(0, cut));
      EXPECT_EQ(used, cut);
      if (cut < message.size()) {
        ASSERT_NE(reader.state(), RequestReader::State::kComplete) << cut;
      }
      used += reader.Feed(message.substr(cut));
      EXPECT_EQ(used, message.size()) << cut;
      ExpectTheRequest(reader);
    }
    RequestReader reader({});
    for (const char byte : message) {
      EXPECT_EQ(reader.Feed({&byte, 1}), 1U);
    }
    ExpectTheRequest(reader);
  }
}

TEST(RequestReaderTest, BytesOfTheNextRequestAreLeftAlone) {
  for (const std::string_view message : {kPlain, kChunked}) {
    const std::string two = std::string(message) + std::string(message);
    for (std::size_t cut = message.size(); cut <= two.size(); ++cut) {
      RequestReader reader({});
      const std::string_view sent = std::string_view(two).substr(0, cut);
      EXPECT_EQ(reader.Feed(sent), message.size()) << cut;
      ExpectTheRequest(reader);
    }
  }
}

TEST(RequestReaderTest, HeadersMayFillTheirLimitExactly) {
  const std::string start = "GET / HTTP/1.1\r\nHost: h\r\nA: ";
  for (const std::size_t extra : {0U, 1U}) {
    const ReaderLimits limits{.header_bytes_max = 500};
    std::string message = start + std::string(500 - start.size() - 4 + extra, 'a') + "\r\n\r\n";
    RequestReader reader(limits);
    (void)reader.Feed(message);
    EXPECT_EQ(reader.state(),
              extra == 0 ? RequestReader::State::kComplete : RequestReader::State::kRefused);
    if (extra != 0) {
      EXPECT_EQ(reader.refusal().status, 431);
    }
  }
}

TEST(RequestReaderTest, EndlessChunkLinesAndTrailersAreCutOff) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& start : {std::string("1;"), std::string("0\r\nA: ")}) {
    RequestReader reader({});
    (void)reader.Feed(head + start);
    for (int i = 0; i < 100 && reader.state() == RequestReader::State::kBody; ++i) {
      (void)reader.Feed(std::string(1000, 'a'));
    }
    EXPECT_EQ(reader.state(), RequestReader::State::kRefused) << start;
    EXPECT_EQ(reader.refusal().status, 400);
  }
}

TEST(TargetTest, GoodOnesDecode) {
  const auto target = ParseTarget("/a%20b/c%C3%BC?x=%26%3d&&flag&x=2").value();
  EXPECT_EQ(target.path, "/a b/c\u00fc");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"x", "&="}, {"flag", ""}, {"x", "2"}};
  EXPECT_EQ(target.query, expected);
  EXPECT_TRUE(ParseTarget("/").has_value());
  EXPECT_TRUE(ParseTarget("/a..b/...").has_value());
}

TEST(TargetTest, BadOnesAreRefused) {
  std::string many = "/?";
  for (std::size_t i = 0; i <= kQueryPairsMax; ++i) {
    many += "a=b&";
  }
  const std::string bad[] = {
      "",        "*",      "a",     "http://h/", "/a b",
      "/%",      "/%4",    "/%zz",  "/a#b",      "/.",
      "/..",     "/a/./b", "/a/..", "/%2e%2e/",  "/..%2fa",
      "/%00",    "/%0a",   "/%7f",  "/%c3",      "/?a=%00",
      "/?a=%ff", "/?%",    "/\x80", many,        "/" + std::string(kTargetBytesMax, 'a')};
  for (const std::string& text : bad) {
    const auto target = ParseTarget(text);
    ASSERT_FALSE(target.has_value()) << text;
    EXPECT_EQ(target.error().code, Code::kInvalidArgument);
  }
}

TEST(TargetTest, EncodingRoundTripsEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) {
    all += static_cast<char>(i);
  }
  EXPECT_EQ(PercentDecode(UrlEncode(all), false).value(), all);
  EXPECT_EQ(PercentDecode(UrlEncode(all), true).value(), all);
  EXPECT_EQ(UrlEncode("a/b c"), "a%2Fb%20c");
  EXPECT_EQ(UrlEncode("a/b c", true), "a/b%20c");
}

TEST(AddressTest, FormsAreReadAndWrittenBack) {
  for (const char* text : {"127.0.0.1:0", "[::1]:8443", "localhost:65535"}) {
    EXPECT_EQ(FormatAddress(ParseAddress(text).value()), text);
  }
  for (const char* text : {"", ":1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                           "::1:80", "[::1]", "a b:1", "h:1x", "[]:1", "h/:1"}) {
    EXPECT_FALSE(ParseAddress(text).has_value()) << text;
  }
}

TEST(AddressLimiterTest, TokensRunOutAndComeBackWithTime) {
  AddressLimiter limiter({10, 10, 4});
  AddressLimiter::TimePoint now{std::chrono::hours(1)};
  const auto entry = limiter.Enter("a", now);
  ASSERT_NE(entry, nullptr);
  int taken = 0;
  while (limiter.Take(*entry, now)) {
    ++taken;
  }
  EXPECT_EQ(taken, 3) << "a burst of four, less one for connecting";
  now += std::chrono::milliseconds(250);
  EXPECT_TRUE(limiter.Take(*entry, now));
  EXPECT_FALSE(limiter.Take(*entry, now));
  now -= std::chrono::hours(1);
  EXPECT_FALSE(limiter.Take(*entry, now)) << "a clock that goes back gives nothing";
  now += std::chrono::hours(3);
  taken = 0;
  while (limiter.Take(*entry, now)) {
    ++taken;
  }
  EXPECT_EQ(taken, 4) << "never more than the burst";
}

TEST(AddressLimiterTest, PlacesAreCountedPerAddressAndInAll) {
  AddressLimiter limiter({3, 2, 1000});
  const AddressLimiter::TimePoint now{std::chrono::hours(1)};
  const auto a1 = limiter.Enter("a", now);
  const auto a2 = limiter.Enter("a", now);
  ASSERT_TRUE(a1 && a2);
  EXPECT_EQ(limiter.Enter("a", now), nullptr);
  const auto b = limiter.Enter("b", now);
  ASSERT_TRUE(b);
  EXPECT_EQ(limiter.Enter("c", now), nullptr);
  limiter.Leave(a1);
  EXPECT_NE(limiter.Enter("a", now), nullptr);
  EXPECT_EQ(limiter.connections(), 3U);
}

TEST(AddressLimiterTest, IdleAddressesAreForgottenOnlyWhenTheirBucketIsFull) {
  AddressLimiter limiter({10, 10, 2});
  AddressLimiter::TimePoint now{std::chrono::hours(1)};
  for (int i = 0; i < 3; ++i) {
    const auto entry = limiter.Enter("a", now);
    ASSERT_NE(entry, nullptr);
    limiter.Leave(entry);
  }
  EXPECT_NE(limiter.Enter("a", now), nullptr) << "on credit";
  EXPECT_EQ(limiter.Enter("a", now), nullptr) << "connecting and leaving is not free";
  now += std::chrono::seconds(10);
  const auto b = limiter.Enter("b", now);
  EXPECT_EQ(limiter.addresses(), 2U) << "one connection of a was never left";
}

bool TryPush(HandlerPool& pool, HandlerPool::Task task) { return pool.TryPush(task); }

TEST(HandlerPoolTest, AllTasksRunEvenWhileOthersBlock) {
  std::atomic<int> ran{0};
  std::atomic<bool> release{false};
  HandlerPool pool(4, 1000);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(TryPush(pool, [&] {
      while (!release) {
        std::this_thread::yield();
      }
    }));
  }
  for (int i = 0; i < 500; ++i) {
    EXPECT_TRUE(TryPush(pool, [&] { ++ran; }));
  }
  while (ran < 500) {
    std::this_thread::yield();
  }
  release = true;
}

TEST(HandlerPoolTest, NoTaskWaitsForABusyThreadWhileAnotherSleeps) {
  // Each task waits for the next one, so each needs a thread of its own.
  for (int round = 0; round < 200; ++round) {
    constexpr int kThreads = 6;
    std::atomic<int> started{0};
    HandlerPool pool(kThreads, 100);
    for (int i = 0; i < kThreads; ++i) {
      EXPECT_TRUE(TryPush(pool, [&] {
        ++started;
        while (started < kThreads) {
          std::this_thread::yield();
        }
      }));
    }
    while (started < kThreads) {
      std::this_thread::yield();
    }
  }
}

TEST(HandlerPoolTest, StoppingDropsWhatWaits) {
  std::atomic<bool> release{false};
  std::atomic<bool> running{false};
  HandlerPool pool(1, 1);
  ASSERT_TRUE(TryPush(pool, [&] {
    running = true;
    while (!release) {
      std::this_thread::yield();
    }
  }));
  while (!running) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(TryPush(pool, [] { FAIL(); }));
  HandlerPool::Task refused = [] { FAIL(); };
  EXPECT_FALSE(pool.TryPush(refused)) << "the queue holds one";
  EXPECT_TRUE(refused != nullptr) << "what is refused stays the caller's";
  std::jthread stopper([&] { pool.Stop(); });
  while (pool.queued() > 0) {
    std::this_thread::yield();
  }
  release = true;
  stopper.join();
  EXPECT_FALSE(TryPush(pool, [] { FAIL(); }));
}

TEST(HttpTest, ErrorsSurviveTheWire) {
  for (const Code code : {Code::kInvalidArgument, Code::kUnauthenticated, Code::kPermissionDenied,
                          Code::kNotFound, Code::kConflict, Code::kFailedPrecondition,
                          Code::kExhausted, Code::kUnavailable, Code::kCorrupt, Code::kInternal}) {
    const Error error{code, "what \"happened\"", "do this", "spec.gpus"};
    const Response response = Response::OfError(error);
    EXPECT_EQ(response.content_type, "application/problem+json");
    const Error back = ErrorFromResponse(response.status, response.body);
    EXPECT_EQ(back.code, code);
    EXPECT_EQ(back.message, error.message);
    EXPECT_EQ(back.hint, error.hint);
    EXPECT_EQ(back.field, error.field);
    const bool retry = code == Code::kExhausted || code == Code::kUnavailable;
    EXPECT_EQ(!response.headers.empty(), retry);
  }
  EXPECT_EQ(ErrorFromResponse(502, "<html>bad\ngateway</html>").code, Code::kUnavailable);
  EXPECT_EQ(ErrorFromResponse(404, "").code, Code::kNotFound);
  EXPECT_EQ(ErrorFromResponse(418, "{}").code, Code::kInvalidArgument);
  EXPECT_EQ(ErrorFromResponse(500, "{\"code\":7}").code, Code::kInternal);
  EXPECT_EQ(
      ErrorFromResponse(400, Response::OfError({Code::kInvalidArgument, "\xff"}).body).message,
      "?");
}

TEST(HttpTest, NoHeaderOfAHandlerCanSplitAResponse) {
  Response response = Response::OfText(200, "body");
  response.headers = {
      {"X-Good", "yes"},          {"X-Bad", "a\r\nSet-Cookie: b"},  {"X: Bad", "c"},
      {"Content-Length", "9999"}, {"Transfer-Encoding", "chunked"}, {"Cache-Control", "max-age=5"}};
  const std::string text = WriteResponse(response, {.request_id = "id"});
  EXPECT_NE(text.find("X-Good: yes\r\n"), std::string::npos);
  EXPECT_NE(text.find("Cache-Control: max-age=5\r\n"), std::string::npos);
  for (const char* absent : {"Set-Cookie", "X: Bad", "9999", "chunked", "no-store"}) {
    EXPECT_EQ(text.find(absent), std::string::npos) << absent;
  }
  response.status = 204;
  EXPECT_EQ(WriteResponse(response, {}).find("Content-Length"), std::string::npos);
}

TEST(HttpTest, OneResponderAnswersOnce) {
  std::vector<int> sent;
  const auto record = [&](const Response& response) { sent.push_back(response.status); };
  {
    const Responder responder(record);
    const Responder copy = responder;
    copy.Send(Response::OfText(201, ""));
    responder.Send(Response::OfText(202, ""));
  }
  {
    const Responder dropped(record);
  }
  EXPECT_EQ(sent, (std::vector<int>{201, 500}));
}

}  // namespace
}  // namespace ringfence::net

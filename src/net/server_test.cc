// Goal: the server answers right requests under load, refuses wrong ones with a problem and
// nothing worse, holds every limit it states, and no client can harm another.
// Method: a real server on a loopback port; well-behaved clients and connections that send any
// bytes the test likes.

#include "net/server.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "net/test_support.h"

namespace ringfence::net {
namespace {

const TestCa& Ca() {
  static const TestCa ca;
  return ca;
}

// Answers with what it saw.
void Echo(Request request, const Responder& responder) {
  JsonObject body;
  body["method"] = request.method;
  body["path"] = request.path;
  body["bytes"] = request.body.size();
  body["from"] = request.remote_address;
  body["peer"] = request.peer ? request.peer->common_name : "";
  responder.Send(Response::OfJson(200, body));
}

std::unique_ptr<Server> Serve(Server::Handler handler, const ServerLimits& limits = {}) {
  return Server::Start("127.0.0.1:0", Ca().ServerIdentity(), limits, std::move(handler)).value();
}

std::string Ask(const Server& server, std::string_view bytes) {
  RawConnection raw(server.address(), RawConnection::ContextFor(Ca()));
  EXPECT_TRUE(raw.Handshake());
  EXPECT_TRUE(raw.Send(bytes));
  return raw.ReadToEnd();
}

std::string StatusOf(const std::string& answer) { return answer.substr(9, 3); }

TEST(ServerTest, AnswersWithTheHeadersThatEveryAnswerCarries) {
  const auto server = Serve(&Echo);
  const std::string answer =
      Ask(*server, "GET /v1/leases?a=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  for (const char* header : {"Content-Type: application/json\r\n", "Cache-Control: no-store\r\n",
                             "X-Request-Id: ", "X-Content-Type-Options: nosniff\r\n",
                             "Strict-Transport-Security: max-age=", "Connection: close\r\n"}) {
    EXPECT_NE(answer.find(header), std::string::npos) << header << " in " << answer;
  }
  EXPECT_NE(answer.find("\"from\":\"127.0.0.1\""), std::string::npos);
}

TEST(ServerTest, ManyClientsAtOnceAllGetTheirOwnAnswers) {
  const auto server = Serve(&Echo);
  constexpr int kClients = 24;
  constexpr int kRequests = 60;
  std::atomic<int> right{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] {
      const auto client = MakeClient(server->address(), Ca());
      for (int k = 0; k < kRequests; ++k) {
        const std::string path = "/c" + std::to_string(i) + "/" + std::to_string(k);
        ClientRequest request{.method = "POST", .target = path};
        request.body.assign(static_cast<std::size_t>(k * 997 % 50000), 'x');
        const auto response = client->Send(request);
        const std::string expected =
            "\"path\":\"" + path + "\",\"bytes\":" + std::to_string(request.body.size());
        if (response.has_value() && response->body.find(expected) != std::string::npos) {
          ++right;
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(right, kClients * kRequests);
  EXPECT_EQ(server->stats().requests, static_cast<std::uint64_t>(kClients * kRequests));
  EXPECT_EQ(server->stats().connections, static_cast<std::uint64_t>(kClients)) << "keep-alive";
}

TEST(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  const auto server = Serve(&Echo);
  std::string many;
  for (int i = 0; i < 200; ++i) {
    many += "GET /p" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n" +
            (i == 199 ? "Connection: close\r\n\r\n" : "\r\n");
  }
  const std::string answer = Ask(*server, many);
  std::size_t at = 0;
  for (int i = 0; i < 200; ++i) {
    at = answer.find("\"path\":\"/p" + std::to_string(i) + "\"", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST(ServerTest, HeadGetsTheLengthAndNoBody) {
  const auto server = Serve([](const Request& request, const Responder& responder) {
    EXPECT_EQ(request.method, "GET");
    responder.Send(Response::OfText(200, "0123456789"));
  });
  const std::string answer =
      Ask(*server, "HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 10\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST(ServerTest, WrongBytesAreAnsweredWithAProblemAndTheConnectionEnds) {
  const auto server = Serve([](const Request& request, const Responder& responder) {
    ADD_FAILURE() << "handled " << request.path;
    responder.Send({});
  });
  const std::string host = " HTTP/1.1\r\nHost: x\r\n";
  const std::pair<std::string, std::string> cases[] = {
      {std::string("\x16\x03\x01garbage\0\0", 12), "400"},
      {"get / HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"GET /\r\n\r\n", "400"},
      {"GET / HTTP/9.9\r\nHost: x\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n\r\n", "400"},
      {"GET /" + host + "Host: y\r\n\r\n", "400"},
      {"GET http://x/" + host + "\r\n", "400"},
      {"OPTIONS *" + host + "\r\n", "400"},
      {"GET /a/../b" + host + "\r\n", "400"},
      {"GET /a/%2e%2e/b" + host + "\r\n", "400"},
      {"GET /a%00b" + host + "\r\n", "400"},
      {"GET /a%zz" + host + "\r\n", "400"},
      {"GET /a%ff" + host + "\r\n", "400"},
      {"BREW /" + host + "\r\n", "501"},
      {"POST /" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
      {"POST /" + host + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "400"},
      {"POST /" + host + "Content-Length: +3\r\n\r\nabc", "400"},
      {"POST /" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n", "400"},
      {"POST /" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
      {"POST /" + host + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcXY\r\n", "400"},
      {"GET /" + host + "A: b\r\n folded\r\n\r\n", "400"},
      {"GET /" + host + "A : b\r\n\r\n", "400"},
      {"GET /" + host + "A: b\n\r\n", "400"},
      {"GET /" + host + "A: b\rc\r\n\r\n", "400"},
      {"POST /" + host + "Expect: a-miracle\r\nContent-Length: 1\r\n\r\n", "417"},
  };
  for (const auto& [bytes, status] : cases) {
    const std::string answer = Ask(*server, bytes);
    ASSERT_GT(answer.size(), 12U) << "no answer to " << bytes;
    EXPECT_EQ(StatusOf(answer), status) << bytes << "\n" << answer;
    EXPECT_NE(answer.find("application/problem+json"), std::string::npos) << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  }
  EXPECT_EQ(server->stats().refused_malformed, std::size(cases));
}

TEST(ServerTest, TooMuchIsRefusedWhileItIsRead) {
  ServerLimits limits;
  limits.body_bytes_max = 1000;
  limits.long_body_path = "/long";
  limits.long_body_bytes_max = 1500;
  limits.header_bytes_max = 2000;
  const auto server = Serve(&Echo, limits);
  const std::string host = " HTTP/1.1\r\nHost: x\r\n";
  const std::string close = "Connection: close\r\n";
  EXPECT_EQ(StatusOf(Ask(*server, "POST /" + host + "Content-Length: 1001\r\n\r\n")), "413");
  EXPECT_EQ(StatusOf(Ask(*server, "POST /long" + host + close + "Content-Length: 1500\r\n\r\n" +
                                      std::string(1500, 'x'))),
            "200")
      << "the one path that may have more";
  EXPECT_EQ(StatusOf(Ask(*server, "POST /long" + host + "Content-Length: 1501\r\n\r\n")), "413");
  EXPECT_EQ(StatusOf(Ask(*server, "POST /" + host + "Content-Length: 99999999999999999\r\n\r\n")),
            "413");
  EXPECT_EQ(StatusOf(Ask(*server, "POST /" + host + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" +
                                      std::string(1001, 'x'))),
            "413");
  EXPECT_EQ(StatusOf(Ask(*server, "POST /" + host + "Transfer-Encoding: chunked\r\n\r\n1f4\r\n" +
                                      std::string(500, 'x') + "\r\n1f5\r\n")),
            "413")
      << "chunks count together";
  EXPECT_EQ(StatusOf(Ask(*server, "GET /" + host + "A: " + std::string(2000, 'x'))), "431");
  std::string lines;
  for (int i = 0; i < 101; ++i) {
    lines += "A: b\r\n";
  }
  EXPECT_EQ(StatusOf(Ask(*server, "GET /" + host + lines + "\r\n")), "431");
  EXPECT_EQ(StatusOf(Ask(*server, "POST /" + host + close + "Content-Length: 1000\r\n\r\n" +
                                      std::string(1000, 'x'))),
            "200");
  EXPECT_EQ(
      StatusOf(Ask(*server, "POST /" + host + close + "Transfer-Encoding: chunked\r\n\r\n3e8\r\n" +
                                std::string(1000, 'x') + "\r\n0\r\n\r\n")),
      "200");
}

TEST(ServerTest, AClientThatAsksFirstIsToldToContinue) {
  const auto server = Serve(&Echo);
  RawConnection raw(server->address(), RawConnection::ContextFor(Ca()));
  ASSERT_TRUE(raw.Handshake());
  ASSERT_TRUE(
      raw.Send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
               "Content-Length: 5\r\nConnection: close\r\n\r\n"));
  EXPECT_EQ(raw.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(raw.Send("12345"));
  EXPECT_NE(raw.ReadToEnd().find("\"bytes\":5"), std::string::npos);
}

TEST(ServerTest, SlowClientsAreCutOffAndHinderNoOne) {
  ServerLimits limits;
  limits.header_timeout = std::chrono::seconds(1);
  limits.body_timeout = std::chrono::seconds(1);
  limits.handler_threads = 1;
  const auto server = Serve(&Echo, limits);
  std::vector<std::unique_ptr<RawConnection>> slow;
  for (int i = 0; i < 60; ++i) {
    slow.push_back(
        std::make_unique<RawConnection>(server->address(), RawConnection::ContextFor(Ca())));
    if (i % 3 == 0) {
      continue;  // says nothing at all
    }
    ASSERT_TRUE(slow.back()->Handshake());
    ASSERT_TRUE(slow.back()->Send(i % 3 == 1 ? "GET / HT"
                                             : "POST / HTTP/1.1\r\nHost: x\r\n"
                                               "Content-Length: 100\r\n\r\nonly this"));
  }
  const auto client = MakeClient(server->address(), Ca());
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(client->Send({.target = "/"}).has_value());
  }
  EXPECT_TRUE(Eventually([&] { return server->stats().connections_open <= 1; }));
  for (std::size_t i = 0; i < slow.size(); ++i) {
    if (i % 3 != 0) {
      EXPECT_EQ(slow[i]->ReadToEnd(), "");
      EXPECT_TRUE(slow[i]->closed());
    }
  }
}

TEST(ServerTest, AReaderThatDoesNotReadIsCutOff) {
  ServerLimits limits;
  limits.write_timeout = std::chrono::seconds(1);
  const auto server = Serve(
      [](const Request&, const Responder& responder) {
        responder.Send(Response::OfText(200, std::string(60 * 1024, 'x')));
      },
      limits);
  RawConnection raw(server->address(), RawConnection::ContextFor(Ca()));
  ASSERT_TRUE(raw.Handshake());
  std::string many;
  for (int i = 0; i < 400; ++i) {
    many += "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  (void)raw.Send(many);
  EXPECT_TRUE(Eventually([&] { return server->stats().connections_open == 0; }));
}

// Keeps Responders until told.
class WaitingRoom {
 public:
  void Enter(const Responder& responder) {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(responder);
  }
  std::size_t size() {
    const std::scoped_lock lock(mutex_);
    return waiting_.size();
  }
  std::deque<Responder> Empty() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(waiting_, {});
  }

 private:
  std::mutex mutex_;
  std::deque<Responder> waiting_;
};

constexpr std::string_view kWaitRequest = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n";

Server::Handler WaitingHandler(WaitingRoom& room) {
  return [&room](Request request, const Responder& responder) {
    if (request.path == "/wait") {
      room.Enter(responder);
    } else {
      Echo(std::move(request), responder);
    }
  };
}

TEST(ServerTest, WaitingRequestsHoldNoThread) {
  WaitingRoom room;
  ServerLimits limits;
  limits.handler_threads = 2;
  const auto server = Serve(WaitingHandler(room), limits);
  std::vector<std::unique_ptr<RawConnection>> waiting;
  for (int i = 0; i < 200; ++i) {
    waiting.push_back(
        std::make_unique<RawConnection>(server->address(), RawConnection::ContextFor(Ca())));
    ASSERT_TRUE(waiting.back()->Handshake());
    ASSERT_TRUE(waiting.back()->Send(kWaitRequest));
  }
  ASSERT_TRUE(Eventually([&] { return room.size() == 200; }));
  const auto client = MakeClient(server->address(), Ca());
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(client->Send({.target = "/quick"}).has_value());
  }
  int number = 0;
  for (const Responder& responder : room.Empty()) {
    responder.Send(Response::OfText(200, "told" + std::to_string(number++) + "."));
    responder.Send(Response::OfText(500, "a second answer does not count"));
  }
  for (const auto& raw : waiting) {
    EXPECT_EQ(StatusOf(raw->ReadUntil(".")), "200");
  }
}

TEST(ServerTest, AWaitingClientThatGoesIsNoticedAndItsAnswerForgotten) {
  WaitingRoom room;
  const auto server = Serve(WaitingHandler(room));
  for (int i = 0; i < 20; ++i) {
    RawConnection raw(server->address(), RawConnection::ContextFor(Ca()));
    ASSERT_TRUE(raw.Handshake());
    ASSERT_TRUE(raw.Send(kWaitRequest));
    ASSERT_TRUE(Eventually([&] { return room.size() == static_cast<std::size_t>(i + 1); }));
  }
  EXPECT_TRUE(Eventually([&] { return server->stats().connections_open == 0; }));
  for (const Responder& responder : room.Empty()) {
    responder.Send(Response::OfText(200, "too late"));
  }
  EXPECT_TRUE(MakeClient(server->address(), Ca())->Send({.target = "/"}).has_value());
}

TEST(ServerTest, ADroppedOrThrowingRequestIsAnswered500) {
  const auto server = Serve([](const Request& request, const Responder&) {
    if (request.path == "/throw") {
      throw std::runtime_error("a defect");
    }
  });
  const auto client = MakeClient(server->address(), Ca());
  for (const char* path : {"/drop", "/throw"}) {
    const auto response = client->Send({.target = path});
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->status, 500);
    EXPECT_EQ(ErrorFromResponse(500, response->body).code, Code::kInternal);
  }
}

TEST(ServerTest, TimersRunOnAHandlerThreadAfterTheirTime) {
  WaitingRoom room;
  const auto server = Serve(WaitingHandler(room));
  const auto start = SteadyClock::now();
  server->After(std::chrono::milliseconds(50), [&] {
    EXPECT_GE(SteadyClock::now() - start, std::chrono::milliseconds(50));
    for (const Responder& responder : room.Empty()) {
      responder.Send(Response::OfText(200, "time is up"));
    }
  });
  const auto response = MakeClient(server->address(), Ca())->Send({.target = "/wait"});
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->body, "time is up");
}

TEST(ServerTest, RequestsDroppedWhileTheyAreHandedOverAreAnsweredToo) {
  ServerLimits limits;
  limits.requests_per_second_per_address = 1e6;
  const auto server = Serve([](const Request&, const Responder&) {}, limits);
  std::string many;
  constexpr int kCount = 3000;
  for (int i = 0; i < kCount; ++i) {
    many += "GET / HTTP/1.1\r\nHost: x\r\n";
    many += i + 1 == kCount ? "Connection: close\r\n\r\n" : "\r\n";
  }
  RawConnection raw(server->address(), RawConnection::ContextFor(Ca()));
  ASSERT_TRUE(raw.Handshake());
  ASSERT_TRUE(raw.Send(many));
  const std::string answers = raw.ReadToEnd();
  int answered = 0;
  for (std::size_t at = 0; (at = answers.find("HTTP/1.1 500", at)) != std::string::npos; ++at) {
    ++answered;
  }
  EXPECT_EQ(answered, kCount);
}

TEST(ServerTest, BodiesOfAllConnectionsTogetherAreBounded) {
  ServerLimits limits;
  limits.body_bytes_max = 8 * 1024 * 1024;
  const auto server = Serve(&Echo, limits);
  const std::string head =
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(limits.body_bytes_max) +
      "\r\n\r\n";
  const std::string most_of_it(limits.body_bytes_max - 1, 'x');
  std::vector<std::unique_ptr<RawConnection>> clients;
  for (int i = 0; i < 9; ++i) {  // eight fit into 64 MiB
    EXPECT_EQ(server->stats().refused_busy, 0U);
    clients.push_back(
        std::make_unique<RawConnection>(server->address(), RawConnection::ContextFor(Ca())));
    ASSERT_TRUE(clients.back()->Handshake());
    (void)clients.back()->Send(head + most_of_it);  // the ninth may be cut off
  }
  // Two that cross the limit at once may both be refused.
  EXPECT_TRUE(Eventually([&] { return server->stats().refused_busy >= 1; }));
  EXPECT_LE(server->stats().refused_busy, 2U);
  clients.clear();
  EXPECT_TRUE(Eventually([&] { return server->stats().connections_open == 0; }));
  RawConnection after(server->address(), RawConnection::ContextFor(Ca()));
  ASSERT_TRUE(after.Handshake());
  ASSERT_TRUE(after.Send(head + most_of_it + "x"));
  EXPECT_EQ(StatusOf(after.ReadUntil("\"from\"")), "200") << "room comes back";
}

std::string HeaderOf(const Response& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) {
      return value;
    }
  }
  return {};
}

TEST(ServerTest, OverTheRateIs429WithRetryAfterAndTheConnectionGoesOn) {
  ServerLimits limits;
  limits.requests_per_second_per_address = 5;
  const auto server = Serve(&Echo, limits);
  const auto client = MakeClient(server->address(), Ca());
  int refused = 0;
  for (int i = 0; i < 50; ++i) {
    const auto response = client->Send({.target = "/"});
    ASSERT_TRUE(response.has_value());
    if (response->status == 429) {
      ++refused;
      EXPECT_EQ(HeaderOf(*response, "retry-after"), "1");
      EXPECT_EQ(ErrorFromResponse(429, response->body).code, Code::kExhausted);
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 50);
  EXPECT_EQ(server->stats().connections, 1U);
  EXPECT_EQ(server->stats().refused_busy, static_cast<std::uint64_t>(refused));
}

TEST(ServerTest, AFullQueueIs429) {
  std::mutex gate;
  std::atomic<int> handling{0};
  ServerLimits limits;
  limits.handler_threads = 1;
  limits.requests_queued_max = 3;
  const auto server = Serve(
      [&](Request request, const Responder& responder) {
        ++handling;
        const std::scoped_lock lock(gate);
        Echo(std::move(request), responder);
      },
      limits);
  std::vector<std::unique_ptr<RawConnection>> clients;
  int refused = 0;
  {
    const std::scoped_lock lock(gate);
    for (int i = 0; i < 10; ++i) {
      clients.push_back(
          std::make_unique<RawConnection>(server->address(), RawConnection::ContextFor(Ca())));
      ASSERT_TRUE(clients.back()->Handshake());
      ASSERT_TRUE(clients.back()->Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
      if (i == 0) {
        ASSERT_TRUE(Eventually([&] { return handling == 1; }));
      } else if (i > 3) {
        const std::string answer = clients.back()->ReadToEnd();
        EXPECT_EQ(StatusOf(answer), "429");
        EXPECT_NE(answer.find("Retry-After: 1\r\n"), std::string::npos);
        ++refused;
      } else {
        ASSERT_TRUE(Eventually(
            [&] { return server->stats().requests_queued == static_cast<std::uint64_t>(i); }));
      }
    }
  }
  EXPECT_EQ(refused, 6);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(StatusOf(clients[i]->ReadToEnd()), "200");
  }
}

TEST(ServerTest, StoppingLetsRequestsUnderWayFinish) {
  std::atomic<bool> handling{false};
  std::atomic<bool> may_end{false};
  auto server = Serve([&](Request request, const Responder& responder) {
    handling = true;
    while (!may_end) {
      std::this_thread::yield();
    }
    Echo(std::move(request), responder);
  });
  const auto client = MakeClient(server->address(), Ca());
  std::atomic<int> status{0};
  std::jthread asking([&] {
    const auto response = client->Send({.target = "/"});
    status = response.has_value() ? response->status : -1;
  });
  ASSERT_TRUE(Eventually([&] { return handling.load(); }));
  std::jthread stopping([&] { server.reset(); });
  may_end = true;
  stopping.join();
  asking.join();
  EXPECT_EQ(status, 200);
}

TEST(ServerTest, ARespondersAnswerAfterTheServerIsGoneIsHarmless) {
  WaitingRoom room;
  auto server = Serve(WaitingHandler(room));
  RawConnection raw(server->address(), RawConnection::ContextFor(Ca()));
  ASSERT_TRUE(raw.Handshake());
  ASSERT_TRUE(raw.Send(kWaitRequest));
  ASSERT_TRUE(Eventually([&] { return room.size() == 1; }));
  server->After(std::chrono::hours(1), [] { FAIL(); });
  server.reset();
  auto left = room.Empty();
  left.front().Send(Response::OfText(200, "too late"));
  EXPECT_EQ(raw.ReadToEnd(), "");
}

TEST(ServerTest, AddressesThatCannotBeListenedOnAreRefusedWithAHint) {
  const auto server = Serve(&Echo);
  for (const std::string& address :
       {server->address(), std::string("nonsense"), std::string("127.0.0.1:99999"),
        std::string("1.2.3.4:0"), std::string("name:80")}) {
    const auto second = Server::Start(address, Ca().ServerIdentity(), {}, &Echo);
    ASSERT_FALSE(second.has_value()) << address;
    EXPECT_FALSE(second.error().hint.empty()) << address;
  }
  const auto v6 = Server::Start("[::1]:0", Ca().ServerIdentity(), {}, &Echo);
  if (v6.has_value()) {
    EXPECT_TRUE(v6.value()->address().starts_with("[::1]:"));
  }
}

}  // namespace
}  // namespace ringfence::net

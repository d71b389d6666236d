// Goal: the client trusts only the CA it was given, says clearly why it cannot talk, sends nothing
// twice that must not be, and returns when it should.
// Method: a real server with good, expired, foreign and misnamed certificates; a scripted peer
// that closes, lies or stays silent where the test wants.

#include "net/client.h"

#include <atomic>
#include <mutex>
#include <thread>

#include "net/test_support.h"

namespace ringfence::net {
namespace {

const TestCa& Ca() {
  static const TestCa ca;
  return ca;
}

void Hello(const Request& request, const Responder& responder) {
  responder.Send(Response::OfText(
      200, request.peer ? "hello " + request.peer->common_name + " " + request.peer->uris.at(0)
                        : "hello stranger"));
}

std::unique_ptr<Server> Serve(const TlsIdentity& identity, Server::Handler handler = &Hello) {
  return Server::Start("127.0.0.1:0", identity, {}, std::move(handler)).value();
}

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Plays the server's part of one connection after another; each script gets a fresh one.
class ScriptedPeer {
 public:
  using Script = std::function<void(ScriptedPeer&)>;

  explicit ScriptedPeer(std::vector<Script> scripts)
      : acceptor_(loop_, {asio::ip::make_address("127.0.0.1"), 0}),
        context_(MakeServerContext(Ca().ServerIdentity()).value()),
        thread_([this, all = std::move(scripts)] {
          for (const Script& script : all) {
            TcpSocket socket(loop_);
            AsioError failure;
            acceptor_.accept(socket, failure);
            if (failure) {
              return;
            }
            ++accepted;
            tls_ =
                std::make_unique<TlsSocket>(std::move(socket), context_, TlsSocket::Side::kServer);
            (void)tls_->Handshake();
            script(*this);
            tls_.reset();
          }
        }) {}

  // Blocking, as the socket is: one read of what has come.
  std::string Read() {
    char buffer[8192];
    std::size_t got = 0;
    (void)tls_->Read(buffer, sizeof buffer, got);
    return {buffer, got};
  }
  void Write(std::string_view text) {
    std::size_t put = 0;
    (void)tls_->Write(text, put);
  }
  std::string address() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  std::atomic<int> accepted{0};

 private:
  asio::io_context loop_{1};
  TcpAcceptor acceptor_;
  TlsContext context_;
  std::unique_ptr<TlsSocket> tls_;
  std::jthread thread_;
};

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

void AnswerOnceThenDie(ScriptedPeer& peer) {
  (void)peer.Read();
  peer.Write(kOk);
  (void)peer.Read();  // takes the second request and goes
}

void AnswerOnce(ScriptedPeer& peer) {
  (void)peer.Read();
  peer.Write(kOk);
}

TEST(ClientTest, SpeaksWithAndWithoutACertificateOfItsOwn) {
  const auto server = Serve(Ca().ServerIdentity());
  const auto stranger = MakeClient(server->address(), Ca())->Send({.target = "/"});
  ASSERT_TRUE(stranger.has_value());
  EXPECT_EQ(stranger->body, "hello stranger");

  const auto issued = Ca().Issue(crypto::CertificateUse::kClient);
  ClientOptions options = OptionsFor(server->address(), Ca());
  options.certificate_chain_pem = issued.certificate_pem;
  options.private_key_pem = issued.private_key_pem;
  const auto known = Client::Create(options).value()->Send({.target = "/"});
  ASSERT_TRUE(known.has_value()) << known.error().message;
  EXPECT_EQ(known->body, "hello unit ringfence://node/unit");
}

TEST(ClientTest, AServerItCannotTrustIsNamedWithTheReason) {
  const TestCa other;
  const auto now = SystemClock().Now();
  const auto expired = Ca().Issue(crypto::CertificateUse::kServer, now - std::chrono::hours(2),
                                  std::chrono::hours(1));
  const auto early = Ca().Issue(crypto::CertificateUse::kServer, now + std::chrono::hours(24 * 31));
  const auto wrong_use = Ca().Issue(crypto::CertificateUse::kClient);
  struct Case {
    TlsIdentity identity;
    std::string server_name;
    std::string expected;
  };
  const Case cases[] = {
      {{expired.certificate_pem, expired.private_key_pem, ""}, "", "has expired"},
      {{early.certificate_pem, early.private_key_pem, ""}, "", "not valid yet"},
      {{wrong_use.certificate_pem, wrong_use.private_key_pem, ""}, "", "not made for a server"},
      {other.ServerIdentity(), "", "not signed by our CA"},
      {Ca().ServerIdentity(), "other.example", "does not carry the name"},
      {Ca().ServerIdentity(), "127.0.0.2", "does not carry the address"},
  };
  for (const Case& c : cases) {
    const auto server = Serve(c.identity);
    ClientOptions options = OptionsFor(server->address(), Ca());
    options.server_name = c.server_name;
    const auto response = Client::Create(options).value()->Send({.target = "/"});
    ASSERT_FALSE(response.has_value()) << c.expected;
    EXPECT_EQ(response.error().code, Code::kUnavailable);
    EXPECT_TRUE(Contains(response.error().message, c.expected)) << response.error().message;
    EXPECT_TRUE(Eventually([&] { return server->stats().handshakes_failed == 1; }));
    EXPECT_EQ(server->stats().requests, 0U);
  }
  for (const char* name : {"localhost", "127.0.0.1"}) {
    const auto server = Serve(Ca().ServerIdentity());
    ClientOptions options = OptionsFor(server->address(), Ca());
    options.server_name = name;
    EXPECT_TRUE(Client::Create(options).value()->Send({.target = "/"}).has_value()) << name;
  }
}

TEST(ClientTest, AClientCertificateThatIsExpiredOrForeignFailsTheHandshakeWithAReason) {
  const auto server = Serve(Ca().ServerIdentity(), [](const Request&, const Responder&) {
    ADD_FAILURE() << "a request got through";
  });
  const TestCa other;
  const auto expired =
      Ca().Issue(crypto::CertificateUse::kClient, SystemClock().Now() - std::chrono::hours(2),
                 std::chrono::hours(1));
  const auto foreign = other.Issue(crypto::CertificateUse::kClient);
  const auto wrong_use = Ca().Issue(crypto::CertificateUse::kServer);
  const std::pair<crypto::KeyAndCertificate, std::string> cases[] = {
      {expired, "it has expired"}, {foreign, "not by its CA"}, {wrong_use, "wrong kind"}};
  std::uint64_t failed = 0;
  for (const auto& [shown, expected] : cases) {
    ClientOptions options = OptionsFor(server->address(), Ca());
    options.certificate_chain_pem = shown.certificate_pem;
    options.private_key_pem = shown.private_key_pem;
    const auto response = Client::Create(options).value()->Send(
        {.method = "POST", .target = "/", .body = std::string(100000, 'x')});
    ASSERT_FALSE(response.has_value()) << expected;
    EXPECT_TRUE(Contains(response.error().message, expected)) << response.error().message;
    EXPECT_FALSE(response.error().hint.empty());
    ++failed;
    EXPECT_TRUE(Eventually([&] { return server->stats().handshakes_failed == failed; }));
  }
}

TEST(ClientTest, OnlyTls13IsSpoken) {
  const auto server = Serve(Ca().ServerIdentity());
  const TlsContext old(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  ASSERT_EQ(SSL_CTX_set_max_proto_version(old.get(), TLS1_2_VERSION), 1);
  RawConnection raw(server->address(), old);
  EXPECT_FALSE(raw.Handshake());
  EXPECT_TRUE(raw.closed());
  EXPECT_TRUE(Eventually([&] { return server->stats().handshakes_failed == 1; }));

  const TlsContext any(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  RawConnection newer(server->address(), any);
  EXPECT_TRUE(newer.Handshake());
  EXPECT_STREQ(SSL_get_version(newer.tls().ssl()), "TLSv1.3");
}

TEST(ClientTest, SessionsResumeAndAnExpiredCertificateDoesNotComeBackWithOne) {
  const auto server = Serve(Ca().ServerIdentity());
  const TlsContext context = RawConnection::ContextFor(Ca());
  RawConnection first(server->address(), context);
  ASSERT_TRUE(first.Handshake());
  ASSERT_TRUE(first.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  ASSERT_TRUE(Contains(first.ReadUntil("stranger"), "stranger"));
  const std::unique_ptr<SSL_SESSION, void (*)(SSL_SESSION*)> session(
      SSL_get1_session(first.tls().ssl()), &SSL_SESSION_free);
  RawConnection second(server->address(), context);
  ASSERT_EQ(SSL_set_session(second.tls().ssl(), session.get()), 1);
  ASSERT_TRUE(second.Handshake());
  EXPECT_EQ(SSL_session_reused(second.tls().ssl()), 1);

  // Valid long enough to be shown once.
  const auto brief =
      Ca().Issue(crypto::CertificateUse::kClient, SystemClock().Now(), std::chrono::seconds(5));
  const TlsContext with_certificate =
      MakeClientContext({Ca().pem(), brief.certificate_pem, brief.private_key_pem}).value();
  RawConnection shown(server->address(), with_certificate);
  ASSERT_TRUE(shown.Handshake());
  ASSERT_TRUE(shown.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  ASSERT_TRUE(Contains(shown.ReadUntil("unit"), "hello unit"));
  const std::unique_ptr<SSL_SESSION, void (*)(SSL_SESSION*)> kept(
      SSL_get1_session(shown.tls().ssl()), &SSL_SESSION_free);
  const auto facts = crypto::ReadCertificate(brief.certificate_pem).value();
  ASSERT_TRUE(
      Eventually([&] { return SystemClock().Now() > facts.not_after + std::chrono::seconds(1); }));
  RawConnection later(server->address(), with_certificate);
  ASSERT_EQ(SSL_set_session(later.tls().ssl(), kept.get()), 1);
  (void)later.Handshake();
  (void)later.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(later.ReadToEnd(), "");
  EXPECT_EQ(server->stats().requests, 2U);
}

TEST(ClientTest, ReplacedCertificatesServeNewConnectionsAndBadOnesAreRefused) {
  const auto server = Serve(Ca().ServerIdentity());
  const auto old_client = MakeClient(server->address(), Ca());
  ASSERT_TRUE(old_client->Send({.target = "/"}).has_value());
  const TestCa other;
  ASSERT_TRUE(server->Replace(other.ServerIdentity()).has_value());
  EXPECT_TRUE(old_client->Send({.target = "/"}).has_value()) << "a kept connection goes on";
  EXPECT_TRUE(MakeClient(server->address(), other)->Send({.target = "/"}).has_value());
  EXPECT_FALSE(MakeClient(server->address(), Ca())->Send({.target = "/"}).has_value());

  TlsIdentity mixed = Ca().ServerIdentity();
  mixed.private_key_pem = other.ServerIdentity().private_key_pem;
  EXPECT_FALSE(server->Replace(mixed).has_value());
  EXPECT_FALSE(server->Replace({"nonsense", "nonsense", "nonsense"}).has_value());
  EXPECT_TRUE(MakeClient(server->address(), other)->Send({.target = "/"}).has_value());
}

TEST(ClientTest, SomeoneWhoForgotTheSInHttpsIsTold) {
  const auto server = Serve(Ca().ServerIdentity());
  const Address address = ParseAddress(server->address()).value();
  asio::io_context loop;
  TcpSocket socket(loop);
  socket.connect({asio::ip::make_address(address.host), address.port});
  (void)socket.write_some(asio::buffer(std::string_view("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
  std::string answer;
  char buffer[1024];
  AsioError failure;
  while (!failure) {
    answer.append(buffer, socket.read_some(asio::buffer(buffer), failure));
  }
  EXPECT_TRUE(Contains(answer, "https://")) << answer;
}

TEST(ClientTest, NoServerIsSaidSo) {
  std::string address;
  {
    const auto server = Serve(Ca().ServerIdentity());
    address = server->address();
  }
  const auto response = MakeClient(address, Ca())->Send({.target = "/"});
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().message, "connection refused at " + address);
  EXPECT_TRUE(Contains(response.error().hint, "is the server running?"));
}

TEST(ClientTest, ServerRestartedBetweenRequestsIsFoundAgain) {
  auto server = Serve(Ca().ServerIdentity());
  const std::string address = server->address();
  const auto client = MakeClient(address, Ca());
  for (const char* method : {"GET", "POST"}) {
    ASSERT_TRUE(client->Send({.method = method, .target = "/"}).has_value());
    server.reset();
    ASSERT_TRUE(Eventually([&] {  // someone else's outgoing connection may hold the port a moment
      auto started = Server::Start(address, Ca().ServerIdentity(), {}, &Hello);
      if (started.has_value()) {
        server = std::move(started).value();
      }
      return server != nullptr;
    }));
    // The closed connection is seen before anything is sent on it, so even a POST is sent once.
    const auto again = client->Send({.method = method, .target = "/"});
    EXPECT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(server->stats().requests, 1U);
  }
}

TEST(ClientTest, AKeptConnectionThatDiesIsReplacedOnceForWhatMayBeSentTwice) {
  const ClientRequest keyed{.method = "POST", .target = "/", .headers = {{"Idempotency-Key", "k"}}};
  for (const ClientRequest& request : {ClientRequest{.target = "/"}, keyed}) {
    ScriptedPeer peer({&AnswerOnceThenDie, &AnswerOnce});
    const auto client = MakeClient(peer.address(), Ca());
    ASSERT_TRUE(client->Send({.target = "/"}).has_value());
    const auto response = client->Send(request);
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->body, "ok");
    EXPECT_EQ(peer.accepted, 2);
  }
}

TEST(ClientTest, APostWithoutAKeyIsNotSentTwice) {
  ScriptedPeer peer({&AnswerOnceThenDie});
  const auto client = MakeClient(peer.address(), Ca());
  ASSERT_TRUE(client->Send({.target = "/"}).has_value());
  const auto response = client->Send({.method = "POST", .target = "/"});
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_TRUE(Contains(response.error().message, "may or may not")) << response.error().message;
  EXPECT_EQ(peer.accepted, 1);
}

TEST(ClientTest, AnAnswerThatHasBegunIsNotAskedForAgain) {
  ScriptedPeer peer({[](ScriptedPeer& self) {
    AnswerOnce(self);
    (void)self.Read();
    self.Write("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf");
  }});
  const auto client = MakeClient(peer.address(), Ca());
  ASSERT_TRUE(client->Send({.target = "/"}).has_value());
  EXPECT_FALSE(client->Send({.target = "/"}).has_value());
  EXPECT_EQ(peer.accepted, 1);
}

TEST(ClientTest, NonsenseAndTooMuchAreRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not HTTP"},
      {"HTTP/1.1 200 OK\r\n\r\nno length", "how long"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "longer than 1000"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'x'),
       "longer than 1000"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n", "more than its answer"},
      {"HTTP/1.1 200 OK\r\nA: " + std::string(70000, 'x'), "not HTTP"},
  };
  for (const auto& [bytes, expected] : cases) {
    ScriptedPeer peer({[&answer = bytes](ScriptedPeer& self) {
      (void)self.Read();
      for (std::string_view rest = answer; !rest.empty();) {
        self.Write(rest.substr(0, 8192));
        rest.remove_prefix(std::min<std::size_t>(8192, rest.size()));
      }
      (void)self.Read();
    }});
    ClientOptions options = OptionsFor(peer.address(), Ca());
    options.response_bytes_max = 1000;
    const auto response = Client::Create(options).value()->Send({.target = "/"});
    ASSERT_FALSE(response.has_value()) << expected;
    EXPECT_EQ(response.error().code, Code::kUnavailable);
    EXPECT_TRUE(Contains(response.error().message, expected)) << response.error().message;
  }
}

TEST(ClientTest, InterimAnswersAreSkippedAndHeadHasNoBody) {
  ScriptedPeer peer({[](ScriptedPeer& self) {
    (void)self.Read();
    self.Write("HTTP/1.1 100 Continue\r\n\r\n" + std::string(kOk));
    (void)self.Read();
    self.Write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    (void)self.Read();
  }});
  const auto client = MakeClient(peer.address(), Ca());
  const auto answer = client->Send({.target = "/"});
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->body, "ok");
  const auto head = client->Send({.method = "HEAD", .target = "/"});
  ASSERT_TRUE(head.has_value()) << head.error().message;
  EXPECT_EQ(head->body, "");
}

TEST(ClientTest, SilenceEndsInATimeoutAtEveryStage) {
  ScriptedPeer silent({[](ScriptedPeer& self) {
    (void)self.Read();
    (void)self.Read();  // until the client goes
  }});
  ClientOptions options = OptionsFor(silent.address(), Ca());
  options.response_timeout = std::chrono::milliseconds(100);
  const auto no_answer = Client::Create(options).value()->Send({.target = "/"});
  ASSERT_FALSE(no_answer.has_value());
  EXPECT_TRUE(Contains(no_answer.error().message, "waiting for its answer"));

  asio::io_context loop;
  const TcpAcceptor mute(loop, {asio::ip::make_address("127.0.0.1"), 0});
  options.address = "127.0.0.1:" + std::to_string(mute.local_endpoint().port());
  options.connect_timeout = std::chrono::milliseconds(100);
  const auto no_greeting = Client::Create(options).value()->Send({.target = "/"});
  ASSERT_FALSE(no_greeting.has_value());
  EXPECT_TRUE(Contains(no_greeting.error().message, "in time while"));
}

TEST(ClientTest, CancelEndsASendUnderWayAndAllLaterOnes) {
  std::mutex mutex;
  std::vector<Responder> waiting;
  std::atomic<bool> arrived{false};
  const auto server = Serve(Ca().ServerIdentity(), [&](const Request&, const Responder& responder) {
    const std::scoped_lock lock(mutex);
    waiting.push_back(responder);
    arrived = true;
  });
  const auto client = MakeClient(server->address(), Ca());
  std::jthread cancelling([&] {
    EXPECT_TRUE(Eventually([&] { return arrived.load(); }));
    client->Cancel();
  });
  for (int i = 0; i < 2; ++i) {
    const auto response = client->Send({.target = "/"});
    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().code, Code::kUnavailable);
    EXPECT_EQ(response.error().message, "cancelled");
  }
}

TEST(ClientTest, RequestsThatCouldBeReadAsTwoAreNotSent) {
  const auto client = MakeClient("127.0.0.1:1", Ca());
  const ClientRequest wrong[] = {
      {.target = "no-slash"},
      {.target = "/a b"},
      {.target = "/a\r\nX: y"},
      {.method = "GE T", .target = "/"},
      {.target = "/", .headers = {{"A", "b\r\nC: d"}}},
      {.target = "/", .headers = {{"A:", "b"}}},
  };
  for (const ClientRequest& request : wrong) {
    const auto response = client->Send(request);
    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().code, Code::kInvalidArgument) << request.target;
  }
  ClientOptions options = OptionsFor("127.0.0.1:1", Ca());
  options.bearer_token = "x\r\nY: z";
  EXPECT_FALSE(Client::Create(options).has_value());
  options = OptionsFor("127.0.0.1:1", Ca());
  options.ca_pem = "nonsense";
  EXPECT_FALSE(Client::Create(options).has_value());
}

// Of several servers any will do: one that is gone is passed over, one that cannot serve too, and
// what may have been carried out once is not sent to a second.
TEST(ClientTest, GoesOnToTheNextServer) {
  const auto nobody = [] {
    ScriptedPeer peer(std::vector<ScriptedPeer::Script>{});
    return peer.address();
  }();
  const auto server = Serve(Ca().ServerIdentity());
  const auto client = MakeClient(nobody + "," + server->address(), Ca());
  for (int i = 0; i < 3; ++i) {
    const auto answer = client->Send({.method = "POST", .target = "/"});
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(answer->body, "hello stranger");
  }
  constexpr std::string_view kDown = "HTTP/1.1 503 Down\r\nContent-Length: 0\r\n\r\n";
  const auto down = [&](ScriptedPeer& peer) {
    (void)peer.Read();
    peer.Write(kDown);
  };
  {
    ScriptedPeer peer({down});
    const auto answer = MakeClient(peer.address() + "," + server->address(), Ca())
                            ->Send({.method = "GET", .target = "/"});
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->body, "hello stranger");
  }
  {
    ScriptedPeer peer({down});
    const auto other = MakeClient(peer.address() + "," + server->address(), Ca());
    EXPECT_EQ(other->Send({.method = "POST", .target = "/"})->status, 503);
    EXPECT_EQ(other->Send({.method = "POST", .target = "/"})->body, "hello stranger");
  }
  EXPECT_EQ(MakeClient(nobody + "," + nobody, Ca())->Send({.target = "/"}).error().code,
            Code::kUnavailable);
}

}  // namespace
}  // namespace ringfence::net

// The peer that the API is measured against: Beast's HTTP parser and serializer over Asio's TLS
// stream, and nothing else. Every request is answered with the same bytes, those of FILE.
//   echo FILE CA_FILE [THREADS]      prints its address; writes its CA to CA_FILE; ends with stdin

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "crypto/x509.h"

namespace ringfence::bench {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Failure = boost::system::error_code;

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, asio::ssl::context& tls, const std::string& body)
      : stream_(std::move(socket), tls), body_(body) {}

  void Start() {
    stream_.next_layer().set_option(tcp::no_delay(true));
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [self = shared_from_this()](Failure failure) {
                              if (!failure) {
                                self->Read();
                              }
                            });
  }

 private:
  void Read() {
    request_ = {};
    http::async_read(stream_, buffer_, request_,
                     [self = shared_from_this()](Failure failure, std::size_t) {
                       if (!failure) {
                         self->Answer();
                       }
                     });
  }

  void Answer() {
    response_ = {http::status::ok, request_.version()};
    response_.set(http::field::content_type, "application/json");
    response_.keep_alive(request_.keep_alive());
    response_.body() = body_;
    response_.prepare_payload();
    http::async_write(stream_, response_,
                      [self = shared_from_this()](Failure failure, std::size_t) {
                        if (!failure && self->response_.keep_alive()) {
                          self->Read();
                        }
                      });
  }

  asio::ssl::stream<tcp::socket> stream_;
  boost::beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
  const std::string& body_;
};

// Connections go to the loops in turn, one loop for each thread: no locks anywhere.
class Echo {
 public:
  Echo(std::string body, const crypto::KeyAndCertificate& identity, int threads)
      : body_(std::move(body)), tls_(asio::ssl::context::tlsv13_server) {
    tls_.use_certificate_chain(asio::buffer(identity.certificate_pem));
    tls_.use_private_key(asio::buffer(identity.private_key_pem), asio::ssl::context::pem);
    for (int i = 0; i < threads; ++i) {
      loops_.push_back(std::make_unique<asio::io_context>(1));
    }
    acceptor_ = std::make_unique<tcp::acceptor>(
        *loops_.front(), tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));
    Accept();
  }

  int port() const { return acceptor_->local_endpoint().port(); }

  void Run() {
    for (const auto& loop : loops_) {
      threads_.emplace_back([&loop] {
        const auto guard = asio::make_work_guard(*loop);
        loop->run();
      });
    }
  }
  void Stop() {
    for (const auto& loop : loops_) {
      loop->stop();
    }
    threads_.clear();
  }

 private:
  void Accept() {
    asio::io_context& loop = *loops_[next_++ % loops_.size()];
    acceptor_->async_accept(loop, [this](Failure failure, tcp::socket socket) {
      if (!failure) {
        std::make_shared<Session>(std::move(socket), tls_, body_)->Start();
      }
      Accept();
    });
  }

  const std::string body_;
  asio::ssl::context tls_;
  std::vector<std::unique_ptr<asio::io_context>> loops_;
  std::unique_ptr<tcp::acceptor> acceptor_;
  std::size_t next_ = 0;
  std::vector<std::jthread> threads_;
};

int Main(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    std::cerr << "usage: echo FILE CA_FILE [THREADS]\n";
    return 2;
  }
  std::ostringstream body;
  body << std::ifstream(words[0]).rdbuf();
  const Timestamp now = SystemClock().Now();
  const auto ca = crypto::MakeCa("bench CA", now, std::chrono::hours(24));
  if (!ca.has_value()) {
    return 1;
  }
  const crypto::CertificateNames names{
      .common_name = "echo", .dns = {"localhost"}, .ips = {"127.0.0.1"}, .uris = {}};
  const auto identity = crypto::IssueWithKey(*ca, names, crypto::CertificateUse::kServer, now,
                                             std::chrono::hours(24));
  if (!identity.has_value()) {
    return 1;
  }
  std::ofstream(words[1]) << ca->certificate_pem;
  Echo echo(body.str(), *identity, words.size() > 2 ? std::atoi(words[2].c_str()) : 2);
  std::cout << "127.0.0.1:" << echo.port() << std::endl;
  echo.Run();
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  echo.Stop();
  return 0;
}

}  // namespace
}  // namespace ringfence::bench

int main(int argc, char** argv) { return ringfence::bench::Main({argv + 1, argv + argc}); }

#pragma once

// What the tests of this folder share: a CA with certificates, and a client that sends any bytes.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "crypto/x509.h"
#include "net/address.h"
#include "net/asio.h"
#include "net/client.h"
#include "net/server.h"
#include "net/tls.h"
#include "net/tls_socket.h"

namespace ringfence::net {

inline constexpr std::chrono::hours kTestLife{24};
inline constexpr std::chrono::hours kTestCaLife{24 * 90};
inline constexpr std::chrono::seconds kTestPatience{20};  // only a failing test waits this long

class TestCa {
 public:
  TestCa() : ca_(crypto::MakeCa("test CA", SystemClock().Now(), kTestCaLife).value()) {}

  const std::string& pem() const { return ca_.certificate_pem; }
  const crypto::KeyAndCertificate& ca() const { return ca_; }

  crypto::KeyAndCertificate Issue(crypto::CertificateUse use, Timestamp now = SystemClock().Now(),
                                  Milliseconds life = kTestLife) const {
    const crypto::CertificateNames names{.common_name = "unit",
                                         .dns = {"localhost"},
                                         .ips = {"127.0.0.1"},
                                         .uris = {"ringfence://node/unit"}};
    return crypto::IssueWithKey(ca_, names, use, now, life).value();
  }
  TlsIdentity ServerIdentity() const {
    const auto issued = Issue(crypto::CertificateUse::kServer);
    return {issued.certificate_pem, issued.private_key_pem, pem()};
  }

 private:
  crypto::KeyAndCertificate ca_;
};

inline ClientOptions OptionsFor(const std::string& address, const TestCa& ca) {
  ClientOptions options;
  options.address = address;
  options.ca_pem = ca.pem();
  return options;
}

inline std::unique_ptr<Client> MakeClient(const std::string& address, const TestCa& ca) {
  return Client::Create(OptionsFor(address, ca)).value();
}

// A TLS connection under the test's control, byte by byte.
class RawConnection {
 public:
  RawConnection(const std::string& address, TlsContext context)
      : tls_(Connected(loop_, address), std::move(context), TlsSocket::Side::kClient) {}

  static TlsContext ContextFor(const TestCa& ca) {
    return MakeClientContext({ca.pem(), {}, {}}).value();
  }

  bool Handshake() {
    return Until([&] { return tls_.Handshake(); });
  }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      std::size_t put = 0;
      if (!Until([&] { return tls_.Write(bytes, put); })) {
        return false;
      }
      bytes.remove_prefix(put);
    }
    return true;
  }

  // What comes until `until` is seen, the other side closes, or patience ends.
  std::string ReadUntil(std::string_view until) {
    char buffer[4096];
    while (until.empty() || received_.find(until) == std::string::npos) {
      std::size_t got = 0;
      if (!Until([&] { return tls_.Read(buffer, sizeof buffer, got); })) {
        break;
      }
      received_.append(buffer, got);
    }
    return std::exchange(received_, {});
  }
  std::string ReadToEnd() { return ReadUntil({}); }

  bool closed() const { return closed_; }
  TlsSocket& tls() { return tls_; }

 private:
  static TcpSocket Connected(asio::io_context& loop, const std::string& text) {
    const Address address = ParseAddress(text).value();
    TcpSocket socket(loop);
    socket.connect({asio::ip::make_address(address.host), address.port});
    socket.non_blocking(true);
    return socket;
  }

  template <typename Try>
  bool Until(Try attempt) {
    const auto deadline = SteadyClock::now() + kTestPatience;
    for (;;) {
      const TlsSocket::Step step = attempt();
      if (step == TlsSocket::Step::kDone) {
        return true;
      }
      if (step != TlsSocket::Step::kWantRead && step != TlsSocket::Step::kWantWrite) {
        closed_ = true;
        return false;
      }
      const auto ready = std::make_shared<bool>(false);
      tls_.socket().async_wait(
          step == TlsSocket::Step::kWantRead ? TcpSocket::wait_read : TcpSocket::wait_write,
          [ready](AsioError) { *ready = true; });
      loop_.restart();
      while (!*ready && loop_.run_one_until(deadline) > 0) {
      }
      if (!*ready) {
        return false;
      }
    }
  }

  asio::io_context loop_{1};
  TlsSocket tls_;
  std::string received_;
  bool closed_ = false;
};

// Waits for a condition that another thread will make true.
template <typename Condition>
bool Eventually(Condition condition) {
  const auto deadline = SteadyClock::now() + kTestPatience;
  while (!condition()) {
    if (SteadyClock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace ringfence::net

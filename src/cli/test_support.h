#pragma once

// What the tests of this folder share.

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "cli/api.h"
#include "cli/app.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "crypto/x509.h"
#include "net/server.h"
#include "os/file.h"
#include "os/self.h"

namespace ringfence::cli {

struct TestFolder {
  os::TempFolder folder = os::TempFolder::Create("ringfence-cli-test").value();
  std::string Path(const std::string& name) const { return folder.path() + "/" + name; }
  std::string Write(const std::string& name, std::string_view text) const {
    const std::string path = Path(name);
    EXPECT_TRUE(os::MakeDirs(path.substr(0, path.rfind('/'))).has_value());
    EXPECT_TRUE(os::WriteFile(path, AsBytes(text)).has_value());
    return path;
  }
};

struct TestConsole {
  std::ostringstream out;
  std::ostringstream err;
  Console console;
  explicit TestConsole(ConsoleOptions options = {}) : console(out, err, options) {}
};

struct AppResult {
  int status = 0;
  std::string out;
  std::string err;
};

// The command line as a user in `folder` types it. Nothing of the machine's own settings counts.
inline AppResult RunLine(const std::string& folder, std::vector<std::string> words,
                         std::map<std::string, std::string> environment = {}) {
  AppInput input;
  input.words = std::move(words);
  input.settings.environment = std::move(environment);
  input.settings.folder = folder;
  input.settings.search_top = folder;
  input.settings.system_file = folder + "/no-such-file";
  std::ostringstream out;
  std::ostringstream err;
  const int status = RunApp(std::move(input), out, err, SystemClock());
  return {status, out.str(), err.str()};
}

// An HTTPS server with a real certificate whose answers the test decides. It can go away and come
// back at the same address.
class FakeServer {
 public:
  using Handler = std::function<void(const net::Request&, const net::Responder&)>;

  explicit FakeServer(Handler handler)
      : ca_(crypto::MakeCa("test CA", SystemClock().Now(), std::chrono::hours(24)).value()),
        handler_(std::move(handler)) {
    Start("127.0.0.1:0");
    address_ = server_->address();
  }

  const std::string& address() const { return address_; }
  const std::string& ca_pem() const { return ca_.certificate_pem; }
  void Stop() { server_.reset(); }
  void StartAgain() { Start(address_); }

  Connection ConnectionTo() const {
    Connection connection;
    connection.server = address_;
    connection.ca_pem = ca_.certificate_pem;
    connection.token = SecretBytes(AsBytes("rf_test-secret"));
    connection.principal = "admin";
    connection.log_vkey = "ringfence.local/test+00000000+AAAA";
    return connection;
  }
  // As `up` leaves it in a state folder.
  void WriteContextIn(const std::string& state) const {
    ASSERT_TRUE(os::MakeDirs(state + "/cli").has_value());
    ASSERT_TRUE(WriteContext(state + "/cli/context.json", ConnectionTo()).has_value());
  }

 private:
  void Start(const std::string& address) {
    const auto issued =
        crypto::IssueWithKey(
            ca_, {.common_name = "server", .dns = {}, .ips = {"127.0.0.1"}, .uris = {}},
            crypto::CertificateUse::kServer, SystemClock().Now(), std::chrono::hours(1))
            .value();
    net::ServerLimits limits;
    limits.handler_threads = 2;
    auto server = net::Server::Start(
        address, {issued.certificate_pem, issued.private_key_pem, ca_.certificate_pem}, limits,
        [this](const net::Request& request, const net::Responder& responder) {
          handler_(request, responder);
        });
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(server).value();
  }

  crypto::KeyAndCertificate ca_;
  Handler handler_;
  std::string address_;
  std::unique_ptr<net::Server> server_;
};

}  // namespace ringfence::cli

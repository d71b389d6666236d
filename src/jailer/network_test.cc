// Goal: a real box has the network of its grant and no other, its denials come back with its end,
// and nothing of it stays in the router.
// Method: the real jailer, runtime and kernel (see harness_test.h), without an uplink: nothing of
// this machine's own network is touched.

#include "base/json.h"
#include "jailer/harness_test.h"

namespace ringfence::jailer {
namespace {

using NetworkTest = JailerTest;

model::PortRange Ports(const char* text) { return model::PortRange::Parse(text).value(); }

// Says its address, then answers one connection at 8080.
constexpr const char* kServer =
    "import socket\n"
    "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(('192.0.2.1', 9))\n"
    "s = socket.create_server(('0.0.0.0', 8080))\n"
    "print(u.getsockname()[0], flush=True)\n"
    "c, _ = s.accept(); c.sendall(b'hello'); c.close()\n";

std::string Client(const std::string& address, int port) {
  return "import socket,sys\n"
         "try:\n"
         "  c = socket.create_connection(('" +
         address + "', " + std::to_string(port) +
         "), 5); print(c.recv(9).decode())\n"
         "except OSError as e: print(type(e).__name__, e.errno)\n";
}

class Line {
 public:
  explicit Line(int fd) {
    for (char c = 0; read(fd, &c, 1) == 1 && c != '\n';) {
      text_ += c;
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

TEST_F(NetworkTest, NoRuleNoInterface) {
  Start();
  EXPECT_EQ(Shell("ls /sys/class/net").out, "lo\n");
}

TEST_F(NetworkTest, WhatBothGrantsNameAndNothingElse) {
  Start();
  isolate::Grant serving = MakeGrant({"python3", "-c", kServer});
  serving.tenant = "acme/data";
  serving.network.emplace();
  serving.network->lease = serving.lease;
  serving.network->from = {{"acme/research", {Ports("tcp/8080")}}};
  auto server = client_->Start(isolate::SealGrant(server_, serving));
  ASSERT_TRUE(server.has_value()) << server.error().message;
  const std::string address = Line(server->out.get()).text();
  ASSERT_TRUE(address.starts_with("100.96.")) << address << ReadToEnd(server->err.get());

  isolate::Grant asking = MakeGrant({"python3", "-c", Client(address, 9090)});
  asking.network.emplace();
  asking.network->lease = asking.lease;
  asking.network->to = {{"acme/data", {Ports("tcp/8080")}}};
  const Ran denied = Run(asking);
  EXPECT_EQ(denied.out, "OSError 113\n") << denied.err << denied.exit;  // no route to host
  ASSERT_TRUE(denied.exit.starts_with("exited 0\ndenied {")) << denied.exit;
  const Json said = ParseJson(denied.exit.substr(16), 4096).value();
  EXPECT_GE(said.at("packets").as_int64(), 1);
  EXPECT_EQ(said.at("flows").at(0).at("to").as_string(), address);
  EXPECT_EQ(said.at("flows").at(0).at("port").as_int64(), 9090);

  asking.lease = crypto::RandomId("lease");
  asking.command = {"python3", "-c", Client(address, 8080)};
  const Ran allowed = Run(asking);
  EXPECT_EQ(allowed.out, "hello\n") << allowed.err;
  EXPECT_EQ(allowed.exit, "exited 0\n");
  EXPECT_EQ(Collect(std::move(*server)).exit, "exited 0\n");
}

TEST_F(NetworkTest, AJobCannotTouchItsInterfaceOrSendRaw) {
  Start();
  isolate::Grant grant = MakeGrant(
      {"python3", "-c",
       "import socket\n"
       "for family, kind in ((socket.AF_INET, socket.SOCK_RAW), (socket.AF_INET6, "
       "socket.SOCK_RAW), (17, socket.SOCK_RAW)):\n"
       "  try: socket.socket(family, kind, 1); print('made')\n"
       "  except PermissionError: print('refused')\n"
       // RTM_DELLINK of interface 2, with an answer asked for.
       "n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)\n"
       "n.send(bytes([32,0,0,0,17,0,5,0,1,0,0,0,0,0,0,0, 0,0,0,0,2,0,0,0,0,0,0,0,0,0,0,0]))\n"
       "print(int.from_bytes(n.recv(99)[16:20], 'little', signed=True))\n"});
  grant.network.emplace();
  grant.network->lease = grant.lease;
  const Ran ran = Run(grant);
  EXPECT_EQ(ran.out, "refused\nrefused\nrefused\n-1\n") << ran.err;
}

TEST_F(NetworkTest, SlotsAreFreeAgain) {
  Start();
  for (int i = 0; i < 3; ++i) {
    isolate::Grant grant = MakeGrant({"sh", "-c", "ls /sys/class/net | tr '\\n' ' '"});
    grant.network.emplace();
    grant.network->lease = grant.lease;
    const Ran ran = Run(grant);
    EXPECT_EQ(ran.out, "eth0 lo ") << ran.err << ran.exit;
  }
}

TEST_F(NetworkTest, AWrongRuleIsRefused) {
  Start();
  isolate::Grant grant = MakeGrant({"true"});
  grant.network.emplace();  // without a lease's name
  EXPECT_EQ(StartCode(isolate::SealGrant(server_, grant)), Code::kInvalidArgument);
}

}  // namespace
}  // namespace ringfence::jailer

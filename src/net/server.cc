#include "net/server.h"

#include <thread>
#include <vector>

#include "net/address.h"
#include "net/connection.h"
#include "net/tls.h"
#include "os/log.h"
#include "os/tcp_socket.h"

namespace ringfence::net {
namespace {

constexpr std::size_t kLoops = 2;
constexpr std::size_t kTimersMax = 64 * 1024;
constexpr int kBacklog = 512;
constexpr int kAcceptsAtOnce = 64;
constexpr std::chrono::milliseconds kSweepEvery{250};
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::milliseconds kStopGrace{2000};

Error BindError(const std::string& address, const AsioError& failure) {
  if (failure == asio::error::address_in_use) {
    return Error{Code::kConflict, "cannot listen on " + address + ": the address is in use",
                 "stop what listens there, or choose another port (0 picks a free one)"};
  }
  return Error{Code::kFailedPrecondition, "cannot listen on " + address + ": " + failure.message(),
               "choose an address of this machine and a port from 1024 on"};
}

Result<TcpAcceptor> Listen(asio::io_context& context, const std::string& text) {
  RINGFENCE_ASSIGN(const Address address, ParseAddress(text));
  AsioError failure;
  const auto ip = asio::ip::make_address(address.host, failure);
  if (failure) {
    return Error{Code::kInvalidArgument, "not an IP address to listen on: " + address.host,
                 "write it as 127.0.0.1:8443, 0.0.0.0:8443 or [::1]:8443", "address"};
  }
  RINGFENCE_ASSIGN(os::UniqueFd fd,
                   os::TcpSocket(ip.is_v6() ? os::IpVersion::kV6 : os::IpVersion::kV4));
  const asio::ip::tcp::endpoint endpoint(ip, address.port);
  TcpAcceptor acceptor(context);
  (void)acceptor.assign(endpoint.protocol(), fd.get(), failure);
  if (!failure) {
    (void)fd.Release();
    (void)acceptor.set_option(TcpAcceptor::reuse_address(true), failure);
  }
  if (!failure) {
    (void)acceptor.bind(endpoint, failure);
  }
  if (!failure) {
    (void)acceptor.listen(kBacklog, failure);
  }
  if (!failure) {
    (void)acceptor.non_blocking(true, failure);
  }
  if (failure) {
    return BindError(text, failure);
  }
  return acceptor;
}

// Addresses that one machine can choose freely count as one: the /64 of IPv6.
std::string LimiterKey(const asio::ip::address& address) {
  if (address.is_v4()) {
    const auto bytes = address.to_v4().to_bytes();
    return {bytes.begin(), bytes.end()};
  }
  const auto bytes = address.to_v6().to_bytes();
  return {bytes.begin(), bytes.begin() + 8};
}

asio::ip::address Plain(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  if (address.is_v6()) {  // "fe80::1%eth0" is no address that a rule could name
    auto v6 = address.to_v6();
    v6.scope_id(0);
    return v6;
  }
  return address;
}

class AsioServer final : public Server {
 public:
  AsioServer(TlsContext context, const ServerLimits& limits, Handler handler)
      : shared_(std::make_shared<ServerShared>(limits, std::move(handler))),
        context_(std::move(context)) {
    for (std::size_t i = 0; i < kLoops; ++i) {
      loops_.push_back(std::make_shared<Loop>());
    }
  }
  ~AsioServer() override { Stop(); }

  Status Open(const std::string& address);
  std::string address() const override { return address_; }
  ServerStats stats() const override;
  Status Replace(TlsIdentity identity) override;
  void After(std::chrono::milliseconds delay, std::function<void()> task) override;

 private:
  void WaitForClients();
  void AcceptClients();
  void Admit(os::UniqueFd fd);
  static void SweepLater(const std::shared_ptr<Loop>& loop, const std::shared_ptr<Timer>& timer);
  TlsContext CurrentContext();
  void Stop();

  const std::shared_ptr<ServerShared> shared_;
  std::mutex context_mutex_;
  TlsContext context_;
  std::vector<std::shared_ptr<Loop>> loops_;
  std::unique_ptr<TcpAcceptor> acceptor_;  // the first loop's thread, once open
  std::unique_ptr<Timer> pause_;           // likewise
  std::size_t next_loop_ = 0;              // likewise
  std::string address_;
  std::atomic<std::size_t> timers_{0};
  std::vector<std::jthread> threads_;
};

Status AsioServer::Open(const std::string& address) {
  asio::io_context& context = loops_.front()->context;
  RINGFENCE_ASSIGN(TcpAcceptor acceptor, Listen(context, address));
  AsioError failure;
  const auto endpoint = acceptor.local_endpoint(failure);
  if (failure) {
    return BindError(address, failure);
  }
  address_ = FormatAddress({endpoint.address().to_string(), endpoint.port()});
  acceptor_ = std::make_unique<TcpAcceptor>(std::move(acceptor));
  pause_ = std::make_unique<Timer>(context);
  WaitForClients();
  for (const auto& loop : loops_) {
    SweepLater(loop, std::make_shared<Timer>(loop->context));
    threads_.emplace_back([loop] { loop->context.run(); });
  }
  return {};
}

// Looking at all connections a few times a second costs less than a timer for each request.
void AsioServer::SweepLater(const std::shared_ptr<Loop>& loop,
                            const std::shared_ptr<Timer>& timer) {
  timer->expires_after(kSweepEvery);
  timer->async_wait([weak = std::weak_ptr(loop), timer](AsioError failure) {
    const auto alive = weak.lock();
    if (failure || alive == nullptr) {
      return;
    }
    for (const auto& [key, connection] : alive->connections) {
      connection->CloseIfOver(SteadyClock::now());
    }
    SweepLater(alive, timer);
  });
}

void AsioServer::WaitForClients() {
  acceptor_->async_wait(TcpAcceptor::wait_read, [this](AsioError failure) {
    if (!failure && !shared_->stopping) {
      AcceptClients();
    }
  });
}

void AsioServer::AcceptClients() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    auto accepted = os::AcceptTcp(acceptor_->native_handle());
    if (!accepted.has_value()) {
      os::Log(os::Level::kWarning, "accept_failed", {{"why", accepted.error().message}});
      pause_->expires_after(kAcceptPause);
      pause_->async_wait([this](AsioError failure) {
        if (!failure && !shared_->stopping) {
          WaitForClients();
        }
      });
      return;
    }
    if (!accepted->has_value()) {
      break;
    }
    Admit(std::move(**accepted));
  }
  WaitForClients();
}

// Who is over a limit is closed at once: an answer would cost the handshake that the limit saves.
void AsioServer::Admit(os::UniqueFd fd) {
  const std::shared_ptr<Loop> loop = loops_[next_loop_++ % loops_.size()];
  TcpSocket socket(loop->context);
  AsioError failure;
  (void)socket.assign(acceptor_->local_endpoint(failure).protocol(), fd.get(), failure);
  if (failure) {
    return;
  }
  (void)fd.Release();
  const auto remote = Plain(socket.remote_endpoint(failure).address());
  if (failure) {
    return;
  }
  (void)socket.non_blocking(true, failure);
  (void)socket.set_option(asio::ip::tcp::no_delay(true), failure);
  auto entry = shared_->limiter.Enter(LimiterKey(remote), SteadyClock::now());
  if (entry == nullptr) {
    ++shared_->refused_busy;
    return;
  }
  ++shared_->connections;
  Connection::Client client{std::move(socket), remote.to_string(),
                            std::make_unique<Admission>(shared_, std::move(entry))};
  asio::post(loop->context, [weak = std::weak_ptr(loop), shared = shared_,
                             context = CurrentContext(), client = std::move(client)]() mutable {
    if (const auto alive = weak.lock()) {
      const auto connection = std::make_shared<Connection>(std::move(shared), alive,
                                                           std::move(context), std::move(client));
      alive->connections.emplace(connection.get(), connection);
      connection->Start();
    }
  });
}

TlsContext AsioServer::CurrentContext() {
  const std::scoped_lock lock(context_mutex_);
  return context_;
}

ServerStats AsioServer::stats() const {
  ServerStats stats;
  stats.requests = shared_->requests;
  stats.refused_busy = shared_->refused_busy;
  stats.refused_malformed = shared_->refused_malformed;
  stats.handshakes_failed = shared_->handshakes_failed;
  stats.connections = shared_->connections;
  stats.evicted = shared_->evicted;
  stats.connections_open = shared_->limiter.connections();
  stats.requests_queued = shared_->pool.queued();
  return stats;
}

Status AsioServer::Replace(TlsIdentity identity) {
  RINGFENCE_ASSIGN(TlsContext context, MakeServerContext(identity));
  const std::scoped_lock lock(context_mutex_);
  context_.swap(context);
  return {};
}

// More timers than kTimersMax run early instead of piling up: a deadline may come too soon, never
// too late.
void AsioServer::After(std::chrono::milliseconds delay, std::function<void()> task) {
  if (timers_.fetch_add(1) >= kTimersMax) {
    delay = std::chrono::milliseconds(0);
  }
  const auto when = SteadyClock::now() + delay;
  asio::io_context& context = loops_.front()->context;
  asio::post(context, [this, &context, when, task = std::move(task)]() mutable {
    const auto timer = std::make_shared<Timer>(context, when);
    timer->async_wait([this, timer, task = std::move(task)](AsioError failure) mutable {
      --timers_;
      if (!failure) {
        shared_->pool.Push(std::move(task));
      }
    });
  });
}

void AsioServer::Stop() {
  shared_->stopping = true;
  asio::post(loops_.front()->context, [this] {
    AsioError ignored;
    if (acceptor_ != nullptr) {
      (void)acceptor_->close(ignored);
      (void)pause_->cancel();
    }
  });
  for (const auto& loop : loops_) {
    asio::post(loop->context, [weak = std::weak_ptr(loop)] {
      if (const auto alive = weak.lock()) {
        for (const auto& [key, connection] : alive->connections) {
          connection->Stop();
        }
      }
    });
  }
  if (!threads_.empty()) {
    std::unique_lock lock(shared_->closed_mutex);
    (void)shared_->closed.wait_for(lock, kStopGrace,
                                   [this] { return shared_->limiter.connections() == 0; });
  }
  shared_->pool.Stop();
  for (const auto& loop : loops_) {
    loop->context.stop();
  }
  threads_.clear();
  acceptor_.reset();
  pause_.reset();
  // Each connection holds its socket, whose end must come before its context's.
  for (const auto& loop : loops_) {
    const auto connections = std::move(loop->connections);
    loop->connections.clear();
  }
  loops_.clear();
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(const std::string& address, TlsIdentity identity,
                                              ServerLimits limits, Handler handler) {
  if (limits.handler_threads == 0 || limits.header_bytes_max == 0) {
    return Error{Code::kInvalidArgument, "a server needs handler threads and room for headers"};
  }
  RINGFENCE_ASSIGN(TlsContext context, MakeServerContext(identity));
  auto server = std::make_unique<AsioServer>(std::move(context), limits, std::move(handler));
  RINGFENCE_TRY(server->Open(address));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace ringfence::net

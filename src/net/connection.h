#pragma once

// One client's connection: handshake, requests one after another, goodbye. Nothing in it ever
// waits. It reads on the thread of its Loop and writes where the answer was made, which saves a
// thread switch for each request.

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "net/address_limiter.h"
#include "net/asio.h"
#include "net/handler_pool.h"
#include "net/request_reader.h"
#include "net/server.h"
#include "net/tls_socket.h"

namespace ringfence::net {

// Bodies being received or handled, of all connections together.
inline constexpr std::size_t kBodyBytesTotalMax = 64 * 1024 * 1024;

// What the connections of a server have in common. Any thread. Shared: a connection's last handler
// may be dropped after the server.
struct ServerShared {
  ServerShared(const ServerLimits& given, Server::Handler handle)
      : limits(given),
        handler(std::move(handle)),
        limiter({given.connections_max, given.connections_per_address_max,
                 given.requests_per_second_per_address}),
        pool(given.handler_threads, given.requests_queued_max) {}

  const ServerLimits limits;
  const Server::Handler handler;
  AddressLimiter limiter;
  HandlerPool pool;
  std::atomic<bool> stopping{false};
  std::atomic<std::size_t> body_bytes{0};
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> refused_busy{0};
  std::atomic<std::uint64_t> refused_malformed{0};
  std::atomic<std::uint64_t> handshakes_failed{0};
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> evicted{0};
  std::mutex closed_mutex;
  std::condition_variable closed;  // a connection ended while stopping
};

// A place among the connections, given back when dropped.
class Admission {
 public:
  Admission(std::shared_ptr<ServerShared> shared, std::shared_ptr<AddressLimiter::Entry> entry)
      : shared_(std::move(shared)), entry_(std::move(entry)) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;
  ~Admission();
  AddressLimiter::Entry& entry() { return *entry_; }

 private:
  std::shared_ptr<ServerShared> shared_;
  std::shared_ptr<AddressLimiter::Entry> entry_;
};

class Connection;

// One thread's event loop with its connections. Shared: a Responder may outlive the server, and
// looks for the loop through a weak pointer.
struct Loop {
  asio::io_context context{1};
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections;  // the loop's thread
};

// Any thread. Shared: the loop's table, and each wait under way, hold it.
class Connection : public Evictable, public std::enable_shared_from_this<Connection> {
 public:
  struct Client {
    TcpSocket socket;
    std::string address;
    std::unique_ptr<Admission> admission;
  };

  Connection(std::shared_ptr<ServerShared> shared, const std::shared_ptr<Loop>& loop,
             TlsContext context, Client client);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Start();
  void CloseIfOver(SteadyClock::time_point now);
  // Ends it now if no request is being answered, and otherwise after that answer.
  void Stop();
  std::optional<Claim> WaitsForClient() override;
  bool Evict() override;

 private:
  // All that follows is called with `mutex_` held, except OnAnswer.
  enum class Phase { kHandshake, kReading, kHandling, kWriting, kLingering, kClosed };

  void Run();
  bool StepHandshake();  // each step: false when there is nothing more to do for now
  bool StepReading();
  bool StepWriting();
  void FailHandshake();
  bool AfterFeed();
  bool TakeBodyRoom();
  void GiveBodyRoom();
  bool Wait(TlsSocket::Step step);
  void ArmRead();
  void ArmWrite();
  void OnReadable();
  void Close();
  void WatchPeer();
  void Dispatch();
  Request TakeRequest(const std::string& request_id);
  Responder MakeResponder(const std::string& request_id);
  void AnswerNow(const Response& response, bool keep_alive);
  void OnAnswer(std::string bytes, bool keep_alive);
  void BeginWriting(std::string bytes, bool keep_alive);
  void Linger();
  void StepLingering();
  void SetDeadline(std::chrono::milliseconds from_now);

  const std::shared_ptr<ServerShared> shared_;
  const std::weak_ptr<Loop> loop_;
  std::unique_ptr<Admission> admission_;
  const std::string address_;
  std::mutex mutex_;  // guards all that follows
  std::optional<PeerCertificate> peer_;
  TlsSocket tls_;
  RequestReader reader_;
  RequestReader::State seen_ = RequestReader::State::kIdle;
  Phase phase_ = Phase::kHandshake;
  SteadyClock::time_point deadline_ = SteadyClock::time_point::max();
  SteadyClock::time_point since_{};  // in this phase, for as long as it has a deadline
  std::array<char, 16 * 1024> in_;
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::string out_;
  std::size_t out_done_ = 0;
  std::size_t body_room_ = 0;
  std::size_t lingered_bytes_ = 0;
  bool interim_ = false;  // `out_` is "100 Continue": the request's body comes next
  bool keep_alive_ = true;
  bool read_armed_ = false;
  bool write_armed_ = false;
};

}  // namespace ringfence::net

#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "os/wait.h"
#include "store/postgres_connection.h"

namespace ringfence::store {

// Announcements to and from the other servers on a database: LISTEN and NOTIFY, on a connection and
// a thread of its own, made again whenever it breaks. Any thread may call Announce.
class PostgresChannel {
 public:
  using Listener = std::function<void(const std::string& topic)>;

  // `self` marks what this process announces, so that it does not hear itself.
  static Result<std::unique_ptr<PostgresChannel>> Start(const PostgresOptions& options,
                                                        const std::string& self, Listener listener);
  PostgresChannel(const PostgresChannel&) = delete;
  PostgresChannel& operator=(const PostgresChannel&) = delete;
  ~PostgresChannel() = default;  // the thread stops and is waited for

  void Announce(const std::string& topic);

 private:
  PostgresChannel(PostgresOptions options, std::string self, Listener listener, os::Waker waker);
  void Loop(const std::stop_token& stop);
  // Listens and announces until the connection breaks or `stop`.
  Status Serve(PostgresConnection& connection, const std::stop_token& stop);
  Status SendPending(PostgresConnection& connection);
  Status Hear(PostgresConnection& connection);

  const PostgresOptions options_;
  const std::string self_;
  const Listener listener_;
  const os::Waker waker_;
  std::mutex mutex_;
  std::set<std::string> pending_;
  bool missed_ = false;  // the thread's alone: others may have announced while we were not there
  std::jthread thread_;  // last: stops before what it uses goes
};

}  // namespace ringfence::store

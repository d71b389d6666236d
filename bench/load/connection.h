#pragma once

// A TLS connection of the generator, kept alive, with at most one request under way. Raw epoll and
// OpenSSL, so that the generator takes as little as possible of the cores it shares.

#include <openssl/ssl.h>

#include <array>
#include <optional>
#include <string_view>

#include "load/worker.h"

namespace ringfence::bench {

// The worker's thread.
class ClientConnection {
 public:
  ClientConnection(Worker& worker, const Target& target) : worker_(worker), target_(target) {}
  ~ClientConnection() { Drop(); }
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  void Open(TimePoint now);
  // When a closed connection may be tried again.
  TimePoint retry_at() const { return retry_at_; }
  bool closed() const { return state_ == State::kClosed; }

  void Send(const Worker::Due& due, std::string_view bytes);
  void OnEvent(TimePoint now);
  const std::optional<Worker::Due>& under_way() const { return due_; }
  void Forget() { due_.reset(); }

 private:
  enum class State { kClosed, kHandshake, kIdle, kSending, kReading };

  void Watch(bool for_write);
  bool Wants(int returned);
  void Handshake(TimePoint now);
  void Write();
  void Read(TimePoint now);
  bool TakeAnswer(TimePoint now);
  void Fail(TimePoint now);
  void Drop();

  Worker& worker_;
  const Target& target_;
  State state_ = State::kClosed;
  int fd_ = -1;
  SSL* ssl_ = nullptr;
  bool watching_write_ = false;
  TimePoint retry_at_{};
  std::optional<Worker::Due> due_;
  std::string_view out_;
  std::array<char, 16 * 1024> in_{};
  std::size_t in_size_ = 0;
  std::size_t body_left_ = 0;
  bool in_body_ = false;
  int status_ = 0;
  bool close_after_ = false;
  bool retry_after_ = false;
};

}  // namespace ringfence::bench

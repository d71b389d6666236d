#pragma once

// The jailer's end of the socketpair. It knows what may be said when, and nothing of what it means.

#include <deque>
#include <set>
#include <vector>

#include "base/result.h"
#include "isolate/jailer_protocol.h"
#include "os/socket_pair.h"
#include "os/unique_fd.h"

namespace ringfence::jailer {

class Pair {
 public:
  explicit Pair(os::UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  bool open() const { return socket_.valid(); }
  bool wants_to_write() const { return !outgoing_.empty(); }

  // The next request. kUnavailable: none is waiting. kNotFound: the agent has closed. Any other
  // error is a breach of the protocol: its field says which kind ("malformed_request",
  // "out_of_turn"), and the pair must end.
  Result<isolate::Request> Next();
  // Every request is answered once.
  void Answer(isolate::Reply reply, std::vector<os::UniqueFd> fds = {});
  // Sends what the socket takes.
  Status Flush();
  void Close();

 private:
  struct Outgoing {
    std::uint32_t id = 0;
    Bytes frame;
    std::vector<os::UniqueFd> fds;
  };
  Status CheckTurn(const isolate::Request& request);

  os::UniqueFd socket_;
  bool greeted_ = false;
  // Until the answer has been taken: an agent that asks and never reads is soon out of turn.
  std::set<std::uint32_t> outstanding_;
  std::set<std::uint32_t> answered_;  // of those, the ones in outgoing_
  std::deque<Outgoing> outgoing_;
};

}  // namespace ringfence::jailer

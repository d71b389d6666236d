#pragma once

// Local sockets that keep message borders and carry descriptors: how processes of one node talk.

#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

inline constexpr std::size_t kPassedFdsMax = 8;

struct SocketPair {
  UniqueFd first;
  UniqueFd second;
};

// SOCK_SEQPACKET, close-on-exec, with room for one message of `message_bytes_max` each way.
Result<SocketPair> MakeSocketPair(std::size_t message_bytes_max);

struct Message {
  Bytes bytes;
  std::vector<UniqueFd> fds;
};

// One whole message. kExhausted: longer than `bytes_max` or cut by the kernel; kNotFound: the
// other side has closed; kUnavailable: nothing to read (on a non-blocking socket). Never raises
// SIGPIPE.
Result<Message> ReceiveMessage(int socket, std::size_t bytes_max);
// All or nothing. kUnavailable: no room now (on a non-blocking socket); kNotFound: the other side
// has closed.
Status SendMessage(int socket, ByteView bytes, const std::vector<int>& fds = {});

Status SetNonBlocking(int fd, bool on);
// Ends both directions, so that a thread that waits in ReceiveMessage returns.
void ShutDown(int socket);

}  // namespace ringfence::os

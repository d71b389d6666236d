#include "load/connection.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ringfence::bench {
namespace {

constexpr std::chrono::milliseconds kRetryPause{100};

int ConnectTo(const Target& target) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(target.port);
  if (getaddrinfo(target.host.c_str(), port.c_str(), &hints, &found) != 0) {
    return -1;
  }
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int one = 1;
  if (fd >= 0) {
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
      close(fd);
      freeaddrinfo(found);
      return -1;
    }
  }
  freeaddrinfo(found);
  return fd;
}

// The value of a header in `head`, whose name is given in lower case with its colon.
std::string_view HeaderOf(std::string_view head, std::string_view name) {
  std::size_t at = head.find("\r\n");
  while (at != std::string_view::npos && at + 2 < head.size()) {
    const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    if (line.size() > name.size() && strncasecmp(line.data(), name.data(), name.size()) == 0) {
      return line.substr(line[name.size()] == ' ' ? name.size() + 1 : name.size());
    }
    at = head.find("\r\n", at + 2);
  }
  return {};
}

}  // namespace

void ClientConnection::Drop() {
  if (ssl_ != nullptr) {
    SSL_free(ssl_);
    ssl_ = nullptr;
  }
  if (fd_ >= 0) {
    close(fd_);
    fd_ = -1;
  }
  state_ = State::kClosed;
}

void ClientConnection::Open(TimePoint now) {
  Drop();
  in_size_ = 0;
  in_body_ = false;
  fd_ = ConnectTo(target_);
  if (fd_ < 0) {
    Fail(now);
    return;
  }
  ssl_ = SSL_new(target_.tls.get());
  if (ssl_ == nullptr || SSL_set_fd(ssl_, fd_) != 1 ||
      !net::ExpectName(ssl_, target_.host).has_value()) {
    Fail(now);
    return;
  }
  SSL_set_connect_state(ssl_);
  SSL_set_read_ahead(ssl_, 1);
  state_ = State::kHandshake;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT;
  event.data.ptr = this;
  watching_write_ = true;
  (void)epoll_ctl(worker_.epoll_, EPOLL_CTL_ADD, fd_, &event);
}

void ClientConnection::Watch(bool for_write) {
  if (for_write != watching_write_) {
    watching_write_ = for_write;
    epoll_event event{};
    event.events = for_write ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.ptr = this;
    (void)epoll_ctl(worker_.epoll_, EPOLL_CTL_MOD, fd_, &event);
  }
}

// True when OpenSSL only waits for the socket, which is then watched.
bool ClientConnection::Wants(int returned) {
  const int error = SSL_get_error(ssl_, returned);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    Watch(error == SSL_ERROR_WANT_WRITE);
    return true;
  }
  ERR_clear_error();
  return false;
}

void ClientConnection::Fail(TimePoint now) {
  if (state_ == State::kHandshake || fd_ < 0) {
    ++worker_.stats_.connects_failed;
  } else if (due_.has_value()) {
    ++worker_.stats_.cut;
  }
  if (due_.has_value()) {
    worker_.Unanswered(*due_, now);
    due_.reset();
  }
  std::erase(worker_.idle_, this);
  Drop();
  retry_at_ = now + kRetryPause;
}

void ClientConnection::OnEvent(TimePoint now) {
  switch (state_) {
    case State::kClosed:
      break;
    case State::kHandshake:
      Handshake(now);
      break;
    case State::kSending:
      Write();
      break;
    case State::kIdle:
    case State::kReading:
      Read(now);
      break;
  }
}

void ClientConnection::Handshake(TimePoint now) {
  const int returned = SSL_do_handshake(ssl_);
  if (returned != 1) {
    int failure = 0;
    socklen_t size = sizeof failure;
    (void)getsockopt(fd_, SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0 || !Wants(returned)) {
      Fail(now);
    }
    return;
  }
  ++worker_.stats_.connects;
  Watch(false);
  state_ = State::kIdle;
  worker_.idle_.push_back(this);
}

void ClientConnection::Send(const Worker::Due& due, std::string_view bytes) {
  due_ = due;
  out_ = bytes;
  state_ = State::kSending;
  Write();
}

void ClientConnection::Write() {
  while (!out_.empty()) {
    std::size_t put = 0;
    const int returned = SSL_write_ex(ssl_, out_.data(), out_.size(), &put);
    if (returned != 1) {
      if (!Wants(returned)) {
        Fail(Clock::now());
      }
      return;
    }
    out_.remove_prefix(put);
  }
  Watch(false);
  state_ = State::kReading;
}

void ClientConnection::Read(TimePoint now) {
  for (;;) {
    std::size_t got = 0;
    const int returned = SSL_read_ex(ssl_, in_.data() + in_size_, in_.size() - in_size_, &got);
    if (returned != 1) {
      if (!Wants(returned)) {
        Fail(now);
      }
      return;
    }
    in_size_ += got;
    if (TakeAnswer(now)) {
      return;
    }
    if (state_ != State::kReading || in_size_ == in_.size()) {
      Fail(now);  // bytes that nobody asked for, or a head that never ends
      return;
    }
  }
}

// True when the answer is complete.
bool ClientConnection::TakeAnswer(TimePoint now) {
  if (state_ != State::kReading) {
    return false;
  }
  if (!in_body_) {
    const std::string_view text(in_.data(), in_size_);
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string_view::npos) {
      return false;
    }
    const std::string_view head = text.substr(0, end + 2);
    status_ = 0;
    if (head.size() > 12) {
      (void)std::from_chars(head.data() + 9, head.data() + 12, status_);
    }
    body_left_ = 0;
    const std::string_view length = HeaderOf(head, "content-length:");
    (void)std::from_chars(length.data(), length.data() + length.size(), body_left_);
    close_after_ = HeaderOf(head, "connection:").starts_with("close");
    retry_after_ = !HeaderOf(head, "retry-after:").empty();
    in_body_ = true;
    const std::size_t body = in_size_ - end - 4;
    body_left_ -= std::min(body_left_, body);
  } else {
    body_left_ -= std::min(body_left_, in_size_);
  }
  in_size_ = 0;
  if (body_left_ > 0) {
    return false;
  }
  in_body_ = false;
  worker_.Answered(*due_, status_, retry_after_, now);
  due_.reset();
  if (close_after_) {
    Drop();
    retry_at_ = now;
    return true;
  }
  state_ = State::kIdle;
  worker_.idle_.push_back(this);
  return true;
}

}  // namespace ringfence::bench

#include "net/connection.h"

#include <openssl/sslerr.h>

#include <algorithm>

#include "base/encoding.h"
#include "crypto/random.h"
#include "net/problem.h"
#include "net/response_writer.h"

namespace ringfence::net {
namespace {

constexpr std::chrono::milliseconds kLingerTime{1000};
constexpr int kStepsAtOnce = 64;
constexpr std::size_t kLingerBytesMax = 1024 * 1024;
constexpr std::size_t kWriteBytesPerSecondLeast = 64 * 1024;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kPlainHttpAnswer =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    "This port speaks HTTPS: use https:// in the address.\n";

// Asked for many at a time: a call to the random generator costs as much as parsing a request.
std::string NewRequestId() {
  constexpr std::size_t kIdBytes = 10;
  constexpr std::size_t kIdsAtOnce = 64;
  thread_local Bytes random;
  if (random.size() < kIdBytes) {
    random = crypto::RandomBytes(kIdBytes * kIdsAtOnce);
  }
  std::string id = Base32(ByteView(random).last(kIdBytes));
  random.resize(random.size() - kIdBytes);
  return id;
}

}  // namespace

Admission::~Admission() {
  shared_->limiter.Leave(entry_);
  if (shared_->stopping) {
    const std::scoped_lock lock(shared_->closed_mutex);
    shared_->closed.notify_all();
  }
}

Connection::Connection(std::shared_ptr<ServerShared> shared, const std::shared_ptr<Loop>& loop,
                       TlsContext context, Client client)
    : shared_(std::move(shared)),
      loop_(loop),
      admission_(std::move(client.admission)),
      address_(std::move(client.address)),
      tls_(std::move(client.socket), std::move(context), TlsSocket::Side::kServer),
      reader_({shared_->limits.header_bytes_max, shared_->limits.body_bytes_max,
               shared_->limits.long_body_path, shared_->limits.long_body_bytes_max}) {}

Connection::~Connection() { GiveBodyRoom(); }

void Connection::SetDeadline(std::chrono::milliseconds from_now) {
  since_ = SteadyClock::now();
  deadline_ = since_ + from_now;
}

void Connection::Start() {
  shared_->limiter.Register(admission_->entry(), shared_from_this());
  const std::scoped_lock lock(mutex_);
  SetDeadline(shared_->limits.header_timeout);
  if (shared_->stopping) {
    Close();
    return;
  }
  Run();
}

void Connection::Run() {
  bool more = true;
  for (int step = 0; more; ++step) {
    if (step == kStepsAtOnce) {  // others' turn
      asio::post(tls_.socket().get_executor(), [self = shared_from_this()] {
        const std::scoped_lock lock(self->mutex_);
        self->Run();
      });
      return;
    }
    switch (phase_) {
      case Phase::kHandshake:
        more = StepHandshake();
        break;
      case Phase::kReading:
        more = StepReading();
        break;
      case Phase::kWriting:
        more = StepWriting();
        break;
      case Phase::kHandling:
      case Phase::kLingering:
      case Phase::kClosed:
        more = false;
        break;
    }
  }
}

// True when `step` only says what to wait for, which has been arranged.
bool Connection::Wait(TlsSocket::Step step) {
  if (step == TlsSocket::Step::kWantRead) {
    ArmRead();
    return true;
  }
  if (step == TlsSocket::Step::kWantWrite) {
    ArmWrite();
    return true;
  }
  return false;
}

void Connection::ArmRead() {
  if (!read_armed_) {
    read_armed_ = true;
    tls_.socket().async_wait(TcpSocket::wait_read, [self = shared_from_this()](AsioError) {
      const std::scoped_lock lock(self->mutex_);
      self->read_armed_ = false;
      self->OnReadable();
    });
  }
}

void Connection::ArmWrite() {
  if (!write_armed_) {
    write_armed_ = true;
    tls_.socket().async_wait(TcpSocket::wait_write, [self = shared_from_this()](AsioError) {
      const std::scoped_lock lock(self->mutex_);
      self->write_armed_ = false;
      self->Run();
    });
  }
}

void Connection::OnReadable() {
  if (phase_ == Phase::kHandling) {
    WatchPeer();
  } else if (phase_ == Phase::kLingering) {
    StepLingering();
  } else {
    Run();
  }
}

bool Connection::StepHandshake() {
  const TlsSocket::Step step = tls_.Handshake();
  if (Wait(step)) {
    return false;
  }
  if (step != TlsSocket::Step::kDone) {
    FailHandshake();
    return false;
  }
  auto peer = PeerOf(tls_.ssl());
  if (!peer.has_value()) {
    FailHandshake();
    return false;
  }
  peer_ = std::move(peer).value();
  phase_ = Phase::kReading;
  return true;
}

void Connection::FailHandshake() {
  ++shared_->handshakes_failed;
  if (tls_.reason() == SSL_R_HTTP_REQUEST) {
    AsioError ignored;  // a courtesy to someone who typed http://
    (void)tls_.socket().write_some(asio::buffer(kPlainHttpAnswer), ignored);
  }
  Linger();
}

bool Connection::StepReading() {
  if (in_begin_ == in_end_) {
    if (read_armed_ && !tls_.HasPending()) {
      return false;
    }
    std::size_t got = 0;
    const TlsSocket::Step step = tls_.Read(in_.data(), in_.size(), got);
    if (Wait(step)) {
      return false;
    }
    if (step != TlsSocket::Step::kDone) {
      Close();
      return false;
    }
    in_begin_ = 0;
    in_end_ = got;
  }
  in_begin_ += reader_.Feed({in_.data() + in_begin_, in_end_ - in_begin_});
  return AfterFeed();
}

bool Connection::AfterFeed() {
  const RequestReader::State state = reader_.state();
  if (state == RequestReader::State::kRefused) {
    ++shared_->refused_malformed;
    AnswerNow(reader_.refusal(), false);
    return true;
  }
  if (!TakeBodyRoom()) {
    ++shared_->refused_busy;
    AnswerNow(Response::OfError({Code::kExhausted, "the server holds too many request bodies",
                                 "try again in a second"}),
              false);
    return true;
  }
  if (state == RequestReader::State::kComplete) {
    Dispatch();
    return true;
  }
  if (state != seen_) {
    SetDeadline(state == RequestReader::State::kBody ? shared_->limits.body_timeout
                                                     : shared_->limits.header_timeout);
    seen_ = state;
    if (state == RequestReader::State::kBody && reader_.expects_continue()) {
      out_ = kContinue;
      out_done_ = 0;
      interim_ = true;
      phase_ = Phase::kWriting;
    }
  }
  return true;
}

bool Connection::TakeBodyRoom() {
  const std::size_t held = reader_.body_bytes();
  if (held > body_room_) {
    const std::size_t more = held - body_room_;
    body_room_ = held;
    return shared_->body_bytes.fetch_add(more) + more <= kBodyBytesTotalMax;
  }
  return true;
}

void Connection::GiveBodyRoom() {
  shared_->body_bytes.fetch_sub(body_room_);
  body_room_ = 0;
}

void Connection::Dispatch() {
  ++shared_->requests;
  seen_ = RequestReader::State::kIdle;
  if (!shared_->limiter.Take(admission_->entry(), SteadyClock::now())) {
    ++shared_->refused_busy;
    AnswerNow(Response::OfError({Code::kExhausted, "too many requests a second from this address",
                                 "slow down: wait as long as Retry-After says"}),
              reader_.keep_alive());
    return;
  }
  // No Responder may be dropped here: were it the last, it would answer, and find this locked.
  struct Work {
    Request request;
    Responder responder;
  };
  const std::string request_id = NewRequestId();
  Responder responder = MakeResponder(request_id);
  auto work = std::make_shared<Work>(Work{TakeRequest(request_id), std::move(responder)});
  Work* const kept_by_task = work.get();
  HandlerPool::Task task = [shared = shared_.get(), work = std::move(work)] {
    shared->handler(std::move(work->request), std::move(work->responder));
  };
  phase_ = Phase::kHandling;
  deadline_ = SteadyClock::time_point::max();
  if (!shared_->pool.TryPush(task)) {
    ++shared_->refused_busy;
    asio::post(tls_.socket().get_executor(), [kept_by_task, task = std::move(task)] {
      kept_by_task->responder.Send(
          Response::OfError({Code::kExhausted, "the server is busy: its queue is full",
                             "wait as long as Retry-After says"}));
    });
  }
  if (in_begin_ == in_end_) {
    ArmRead();  // so that a client that goes away meanwhile is noticed
  }
}

Request Connection::TakeRequest(const std::string& request_id) {
  Request request = reader_.Take();
  request.remote_address = address_;
  request.peer = peer_;
  std::erase_if(request.headers, [](const auto& header) { return header.first == "x-request-id"; });
  request.headers.emplace_back("x-request-id", request_id);
  return request;
}

Responder Connection::MakeResponder(const std::string& request_id) {
  return Responder([loop = loop_, connection = weak_from_this(), shared = shared_,
                    keep = reader_.keep_alive(), http_1_0 = reader_.http_1_0(),
                    head_only = reader_.head_only(), request_id](const Response& response) {
    const bool keep_alive = keep && !shared->stopping;
    std::string bytes = WriteResponse(response, {keep_alive, http_1_0, head_only, request_id});
    const auto alive = loop.lock();  // its socket needs the loop
    const auto self = connection.lock();
    if (alive != nullptr && self != nullptr) {
      self->OnAnswer(std::move(bytes), keep_alive);
    }
  });
}

// For the loop that is reading: it goes on to write.
void Connection::AnswerNow(const Response& response, bool keep_alive) {
  const std::string request_id = NewRequestId();
  const WriteOptions options{keep_alive, keep_alive && reader_.http_1_0(), reader_.head_only(),
                             request_id};
  if (reader_.state() == RequestReader::State::kComplete) {
    (void)reader_.Take();
  }
  BeginWriting(WriteResponse(response, options), keep_alive);
}

// From a Responder, which is the only one for the request being handled.
void Connection::OnAnswer(std::string bytes, bool keep_alive) {
  const std::scoped_lock lock(mutex_);
  if (phase_ == Phase::kHandling) {
    BeginWriting(std::move(bytes), keep_alive);
    Run();
  }
}

void Connection::BeginWriting(std::string bytes, bool keep_alive) {
  GiveBodyRoom();
  keep_alive_ = keep_alive && !shared_->stopping;
  out_ = std::move(bytes);
  out_done_ = 0;
  phase_ = Phase::kWriting;
  SetDeadline(shared_->limits.write_timeout +
              std::chrono::seconds(out_.size() / kWriteBytesPerSecondLeast));
}

bool Connection::StepWriting() {
  while (out_done_ < out_.size()) {
    std::size_t put = 0;
    const TlsSocket::Step step = tls_.Write(std::string_view(out_).substr(out_done_), put);
    if (Wait(step)) {
      return false;
    }
    if (step != TlsSocket::Step::kDone) {
      Close();
      return false;
    }
    out_done_ += put;
  }
  out_ = {};
  if (interim_) {
    interim_ = false;
    phase_ = Phase::kReading;
    return true;
  }
  if (!keep_alive_) {
    Linger();
    return false;
  }
  phase_ = Phase::kReading;
  SetDeadline(shared_->limits.idle_timeout);
  return true;
}

// A request is being answered: reads ahead only to notice that the client has gone. Bytes of a
// next request stay in `in_`, and then no more is read.
void Connection::WatchPeer() {
  std::size_t got = 0;
  const TlsSocket::Step step = tls_.Read(in_.data(), in_.size(), got);
  if (Wait(step)) {
    return;
  }
  if (step != TlsSocket::Step::kDone) {
    Close();
    return;
  }
  in_begin_ = 0;
  in_end_ = got;
}

// Closing with bytes unread would make the kernel throw away an answer that the client has not
// read yet. So: say goodbye, then read and forget for a moment.
void Connection::Linger() {
  phase_ = Phase::kLingering;
  tls_.SayClose();
  AsioError failure;
  (void)tls_.socket().shutdown(TcpSocket::shutdown_send, failure);
  if (failure || shared_->stopping) {
    Close();
    return;
  }
  SetDeadline(kLingerTime);
  StepLingering();
}

void Connection::StepLingering() {
  while (lingered_bytes_ < kLingerBytesMax) {
    AsioError failure;
    lingered_bytes_ += tls_.socket().read_some(asio::buffer(in_), failure);
    if (failure == asio::error::would_block) {
      ArmRead();
      return;
    }
    if (failure) {
      break;
    }
  }
  Close();
}

void Connection::CloseIfOver(SteadyClock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (now >= deadline_) {
    Close();
  }
}

// Whoever holds the lock just now is at work for it.
std::optional<Evictable::Claim> Connection::WaitsForClient() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || (phase_ != Phase::kHandshake && phase_ != Phase::kReading)) {
    return std::nullopt;
  }
  return Claim{seen_ == RequestReader::State::kBody, since_};
}

bool Connection::Evict() {
  const std::scoped_lock lock(mutex_);
  if (phase_ != Phase::kHandshake && phase_ != Phase::kReading) {
    return false;
  }
  ++shared_->evicted;
  Close();
  return true;
}

void Connection::Stop() {
  const std::scoped_lock lock(mutex_);
  keep_alive_ = false;
  if (phase_ != Phase::kHandling && phase_ != Phase::kWriting) {
    Close();
  }
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) {
    return;
  }
  phase_ = Phase::kClosed;
  deadline_ = SteadyClock::time_point::max();
  AsioError ignored;
  (void)tls_.socket().close(ignored);
  GiveBodyRoom();
  admission_.reset();
  if (const auto loop = loop_.lock()) {
    asio::post(loop->context, [weak = loop_, self = shared_from_this()] {
      if (const auto alive = weak.lock()) {
        alive->connections.erase(self.get());
      }
    });
  }
}

}  // namespace ringfence::net

#include "resolve/inquiry.h"

#include <algorithm>

#include "crypto/random.h"

namespace ringfence::resolve {
namespace {

constexpr std::size_t kLengthBytes = 2;  // before a message over TCP

Query RandomQuery(const std::string& name) {
  const Bytes random = crypto::RandomBytes(2 + name.size());
  return MakeQuery(name, GetBigEndian<std::uint16_t>(random), ByteView(random).subspan(2));
}

}  // namespace

Inquiry::Inquiry(std::string name, std::vector<os::Ipv4End> above,
                 std::chrono::milliseconds patience, TimePoint now)
    : name_(std::move(name)), above_(std::move(above)), patience_(patience) {
  Try(now);
}

// The next resolver above; after the last, or when none can be asked, the result is that there is
// none.
void Inquiry::Try(TimePoint now) {
  by_stream_ = false;
  sending_ = false;
  socket_.Reset();
  while (tries_ < std::min(kTriesMax, 2 * above_.size())) {
    const os::Ipv4End& to = above_[tries_++ % above_.size()];
    query_ = RandomQuery(name_);
    auto socket = os::ConnectUdp(to);
    if (socket.has_value()) {
      socket_ = std::move(*socket);
      deadline_ = now + patience_;
      const auto sent = os::SendSome(socket_.get(), QueryBytes(query_));
      if (sent.has_value() && *sent != 0) {
        return;
      }
    }
  }
  socket_.Reset();
  result_ = Error{Code::kUnavailable, "no resolver above gave an answer"};
}

void Inquiry::AskByStream(TimePoint now) {
  const os::Ipv4End& to = above_[(tries_ - 1) % above_.size()];
  auto socket = os::BeginConnectTcp(to);
  if (!socket.has_value()) {
    Try(now);
    return;
  }
  by_stream_ = true;
  sending_ = true;
  socket_ = std::move(*socket);
  deadline_ = now + patience_;
  query_ = RandomQuery(name_);
  const Bytes query = QueryBytes(query_);
  const auto length = PutBigEndian(static_cast<std::uint16_t>(query.size()));
  in_.clear();
  out_.assign(length.begin(), length.end());
  Append(out_, query);
}

void Inquiry::Take(const Answer& answer, TimePoint now) {
  if (answer.truncated) {
    if (by_stream_) {
      Try(now);
    } else {
      AskByStream(now);
    }
    return;
  }
  if (answer.found.rcode != Rcode::kOk && answer.found.rcode != Rcode::kNoName) {
    Try(now);
    return;
  }
  socket_.Reset();
  result_ = answer.found;
}

void Inquiry::ReadDatagrams(TimePoint now) {
  for (;;) {
    const auto datagram = os::ReceiveDatagram(socket_.get(), kDatagramBytesMax);
    if (!datagram.has_value() && datagram.error().code == Code::kUnavailable) {
      return;
    }
    if (!datagram.has_value()) {  // too long, or nobody is there
      Try(now);
      return;
    }
    const auto answer = ParseAnswer(datagram->bytes, query_);
    if (answer.has_value()) {
      Take(*answer, now);
      return;
    }
    if (answer.error().code != Code::kNotFound || ++strangers_ > kStrangersMax) {
      Try(now);
      return;
    }
  }
}

void Inquiry::GoOnByStream(TimePoint now) {
  if (sending_) {
    const auto sent = os::SendSome(socket_.get(), out_);
    if (!sent.has_value()) {
      Try(now);
      return;
    }
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(*sent));
    sending_ = !out_.empty();
    return;
  }
  const auto more = os::ReceiveSome(socket_.get(), kLengthBytes + kStreamBytesMax - in_.size());
  if (!more.has_value() && more.error().code == Code::kUnavailable) {
    return;
  }
  if (!more.has_value() || more->empty()) {
    Try(now);
    return;
  }
  Append(in_, *more);
  if (in_.size() < kLengthBytes || in_.size() < kLengthBytes + GetBigEndian<std::uint16_t>(in_)) {
    return;
  }
  const ByteView message = ByteView(in_).subspan(kLengthBytes, GetBigEndian<std::uint16_t>(in_));
  const auto answer = ParseAnswer(message, query_);
  if (!answer.has_value()) {
    Try(now);
    return;
  }
  Take(*answer, now);
}

const std::optional<Result<Found>>& Inquiry::Continue(TimePoint now) {
  if (result_.has_value()) {
    return result_;
  }
  if (by_stream_) {
    GoOnByStream(now);
  } else {
    ReadDatagrams(now);
  }
  if (!result_.has_value() && now >= deadline_) {
    Try(now);
  }
  return result_;
}

}  // namespace ringfence::resolve

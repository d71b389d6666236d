#include "resolve/resolver.h"

#include <algorithm>

#include "os/socket_pair.h"

namespace ringfence::resolve {
namespace {

constexpr int kPerTurn = 64;  // datagrams and connections, before others are looked at
constexpr std::size_t kLengthBytes = 2;
constexpr std::size_t kStreamOutBytesMax = 8 * 1024;
constexpr auto kStreamIdle = std::chrono::seconds(10);
constexpr auto kJailerPatience = std::chrono::seconds(5);

Found Failure(Rcode rcode) {
  Found found;
  found.rcode = rcode;
  return found;
}

}  // namespace

Status Resolver::Run() {
  while (!jailer_gone_) {
    RINGFENCE_TRY(Wait(std::chrono::steady_clock::now()));
    RINGFENCE_TRY(ReadJailer());
    const TimePoint now = std::chrono::steady_clock::now();
    ReadDatagrams(now);
    Accept(now);
    for (auto stream = streams_.begin(); stream != streams_.end();) {
      const std::uint64_t id = stream->first;
      ++stream;
      ReadStream(id, now);
    }
    Continue(now);
    DropStreams(now);
  }
  return {};
}

Status Resolver::Wait(TimePoint now) {
  std::vector<os::PollItem> items = {
      {parts_.jailer.get()}, {parts_.datagrams.get()}, {parts_.streams.get()}};
  std::optional<TimePoint> next;
  const auto until = [&next](TimePoint time) {
    next = next.has_value() ? std::min(*next, time) : time;
  };
  for (const auto& [id, stream] : streams_) {
    items.push_back({stream.socket.get(), !stream.out.empty()});
    until(stream.deadline);
  }
  for (const auto& [id, asking] : asking_) {
    if (asking.inquiry.has_value()) {
      items.push_back(asking.inquiry->Item());
      until(asking.inquiry->deadline());
    } else {
      until(asking.give_up);
    }
  }
  std::optional<std::chrono::milliseconds> timeout;
  if (next.has_value()) {
    timeout = std::max(std::chrono::ceil<std::chrono::milliseconds>(*next - now),
                       std::chrono::milliseconds(0));
  }
  return os::Poll(items, timeout);
}

Status Resolver::ReadJailer() {
  for (;;) {
    const auto message = os::ReceiveMessage(parts_.jailer.get(), kToResolverBytesMax);
    if (!message.has_value()) {
      jailer_gone_ = message.error().code == Code::kNotFound;
      return jailer_gone_ || message.error().code == Code::kUnavailable ? Status()
                                                                        : Status(message.error());
    }
    RINGFENCE_ASSIGN(const ToResolver said, ParseToResolver(message->bytes));
    if (const auto* add = std::get_if<AddBox>(&said)) {
      OnAdd(*add);
    } else if (const auto* remove = std::get_if<RemoveBox>(&said)) {
      OnRemove(*remove);
    } else {
      OnOpened(std::get<Opened>(said), std::chrono::steady_clock::now());
    }
  }
}

void Resolver::OnAdd(const AddBox& add) {
  Box box;
  box.slot = add.slot;
  box.mark = add.mark;
  for (const std::string& name : add.names) {
    box.names.push_back(WireName(name));
  }
  boxes_.insert_or_assign(add.address, std::move(box));
}

// What it still asks is dropped: its address may be another's soon.
void Resolver::OnRemove(const RemoveBox& remove) {
  for (auto box = boxes_.begin(); box != boxes_.end(); ++box) {
    if (box->second.slot != remove.slot || box->second.mark != remove.mark) {
      continue;
    }
    const std::uint32_t address = box->first;
    std::erase_if(asking_, [&](const auto& one) { return one.second.box == address; });
    std::erase_if(streams_, [&](const auto& one) { return one.second.from.address == address; });
    boxes_.erase(box);
    return;
  }
}

void Resolver::OnOpened(const Opened& opened, TimePoint now) {
  const auto asking = asking_.find(opened.id);
  if (asking == asking_.end() || asking->second.inquiry.has_value()) {
    return;  // given up meanwhile
  }
  const auto box = boxes_.find(asking->second.box);
  if (!opened.opened || box == boxes_.end()) {
    Finish(asking, Failure(Rcode::kServerFailure));
    return;
  }
  const Found found = asking->second.found;
  box->second.answers[asking->second.name] =
      Known{found, now + std::chrono::seconds(found.ttl_seconds)};
  Finish(asking, found);
}

void Resolver::ReadDatagrams(TimePoint now) {
  for (int i = 0; i < kPerTurn; ++i) {
    const auto datagram = os::ReceiveDatagram(parts_.datagrams.get(), kQuestionBytesMax);
    if (datagram.has_value()) {
      Ask(Asker{datagram->from, 0}, datagram->bytes, now);
    } else if (datagram.error().code == Code::kUnavailable) {
      return;
    }
  }
}

void Resolver::Accept(TimePoint now) {
  for (int i = 0; i < kPerTurn; ++i) {
    auto connection = os::AcceptFrom(parts_.streams.get());
    if (!connection.has_value()) {
      return;
    }
    const auto box = boxes_.find(connection->from.address);
    if (box == boxes_.end() || streams_.size() >= kStreamsMax ||
        box->second.streams >= kStreamsPerBoxMax) {
      continue;  // closed
    }
    ++box->second.streams;
    Stream stream;
    stream.socket = std::move(connection->socket);
    stream.from = connection->from;
    stream.deadline = now + kStreamIdle;
    streams_.emplace(++last_stream_, std::move(stream));
  }
}

void Resolver::ReadStream(std::uint64_t id, TimePoint now) {
  Stream& stream = streams_.find(id)->second;
  if (!stream.out.empty()) {
    const auto sent = os::SendSome(stream.socket.get(), stream.out);
    stream.broken = !sent.has_value();
    if (sent.has_value()) {
      stream.out.erase(stream.out.begin(), stream.out.begin() + static_cast<std::ptrdiff_t>(*sent));
    }
  }
  if (stream.broken || !stream.out.empty()) {
    return;
  }
  const std::size_t room = kLengthBytes + kQuestionBytesMax - stream.in.size();
  const auto more = os::ReceiveSome(stream.socket.get(), room);
  if (!more.has_value() || more->empty()) {
    stream.broken = more.has_value() || more.error().code != Code::kUnavailable;
    return;
  }
  Append(stream.in, *more);
  while (stream.in.size() >= kLengthBytes) {
    const std::size_t length = GetBigEndian<std::uint16_t>(stream.in);
    stream.broken = length > kQuestionBytesMax;
    if (stream.broken || stream.in.size() < kLengthBytes + length) {
      return;
    }
    const auto end = stream.in.begin() + static_cast<std::ptrdiff_t>(kLengthBytes + length);
    const Bytes message(stream.in.begin() + kLengthBytes, end);
    stream.in.erase(stream.in.begin(), end);
    stream.deadline = now + kStreamIdle;
    Ask(Asker{stream.from, id}, message, now);
  }
}

void Resolver::DropStreams(TimePoint now) {
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    if (!stream->second.broken && now < stream->second.deadline) {
      ++stream;
      continue;
    }
    if (const auto box = boxes_.find(stream->second.from.address); box != boxes_.end()) {
      --box->second.streams;
    }
    stream = streams_.erase(stream);
  }
}

void Resolver::Ask(const Asker& asker, ByteView message, TimePoint now) {
  const auto box = boxes_.find(asker.from.address);
  if (box == boxes_.end()) {
    return;
  }
  const auto question = ParseQuestion(message);
  if (!question.has_value()) {
    return;
  }
  if (const auto found = AnswerNow(box->second, asker, *question, now)) {
    Say(asker, *question, *found);
  }
}

std::optional<Found> Resolver::AnswerNow(Box& box, const Asker& asker, const Question& question,
                                         TimePoint now) {
  if (question.wrong != Rcode::kOk) {
    return Failure(question.wrong);
  }
  const auto name = std::find(box.names.begin(), box.names.end(), question.name);
  if (name == box.names.end()) {
    return Failure(Rcode::kRefused);
  }
  if (question.type == kTypeAaaa) {
    return Found();  // the name is there, and has no address of that kind
  }
  if (question.type != kTypeA) {
    return Failure(Rcode::kRefused);
  }
  const auto number = static_cast<std::size_t>(name - box.names.begin());
  if (const auto known = box.answers.find(number);
      known != box.answers.end() && now < known->second.until) {
    Found found = known->second.found;
    found.ttl_seconds = static_cast<std::uint32_t>(
        std::chrono::ceil<std::chrono::seconds>(known->second.until - now).count());
    return found;
  }
  if (asking_.size() >= kAskingMax || box.asking >= kAskingPerBoxMax) {
    return Failure(Rcode::kServerFailure);
  }
  Asking asking;
  asking.box = asker.from.address;
  asking.mark = box.mark;
  asking.name = number;
  asking.question = question;
  asking.asker = asker;
  asking.inquiry.emplace(question.name, parts_.above, parts_.patience, now);
  ++box.asking;
  asking_.emplace(++last_asking_, std::move(asking));
  return std::nullopt;
}

void Resolver::Continue(TimePoint now) {
  for (auto at = asking_.begin(); at != asking_.end();) {
    const auto asking = at++;
    if (!asking->second.inquiry.has_value()) {
      if (now >= asking->second.give_up) {
        Finish(asking, Failure(Rcode::kServerFailure));
      }
      continue;
    }
    const auto& result = asking->second.inquiry->Continue(now);
    if (!result.has_value()) {
      continue;
    }
    if (!result->has_value()) {
      Finish(asking, Failure(Rcode::kServerFailure));
      continue;
    }
    const Found found = **result;
    asking->second.inquiry.reset();
    if (found.addresses.empty()) {
      Finish(asking, found);
    } else if (!Open(asking->first, asking->second, found, now)) {
      Finish(asking, Failure(Rcode::kServerFailure));
    }
  }
}

bool Resolver::Open(std::uint32_t id, Asking& asking, Found found, TimePoint now) {
  const auto box = boxes_.find(asking.box);
  if (box == boxes_.end() || box->second.mark != asking.mark) {
    return false;
  }
  found.ttl_seconds = std::clamp(found.ttl_seconds, kTtlSecondsMin, kTtlSecondsMax);
  asking.found = found;
  asking.give_up = now + kJailerPatience;
  const OpenName open{id,
                      box->second.slot,
                      box->second.mark,
                      static_cast<std::uint16_t>(asking.name),
                      found.ttl_seconds,
                      found.addresses};
  return os::SendMessage(parts_.jailer.get(), Encode(open)).has_value();
}

void Resolver::Finish(std::map<std::uint32_t, Asking>::iterator asking, const Found& found) {
  Say(asking->second.asker, asking->second.question, found);
  const auto box = boxes_.find(asking->second.box);
  if (box != boxes_.end() && box->second.mark == asking->second.mark) {
    --box->second.asking;
  }
  asking_.erase(asking);
}

void Resolver::Say(const Asker& asker, const Question& question, const Found& found) {
  const Bytes answer = MakeAnswer(question, found);
  if (asker.stream == 0) {
    os::SendDatagram(parts_.datagrams.get(), answer, asker.from);
    return;
  }
  const auto stream = streams_.find(asker.stream);
  if (stream == streams_.end()) {
    return;
  }
  const auto length = PutBigEndian(static_cast<std::uint16_t>(answer.size()));
  Append(stream->second.out, length);
  Append(stream->second.out, answer);
  stream->second.broken = stream->second.broken || stream->second.out.size() > kStreamOutBytesMax;
}

}  // namespace ringfence::resolve

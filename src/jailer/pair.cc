#include "jailer/pair.h"

namespace ringfence::jailer {
namespace {

Error OutOfTurn(std::string why) {
  return Error{Code::kFailedPrecondition, std::move(why), "", "out_of_turn"};
}

Error Malformed(std::string why) {
  return Error{Code::kInvalidArgument, std::move(why), "", "malformed_request"};
}

}  // namespace

Status Pair::CheckTurn(const isolate::Request& request) {
  const isolate::RequestType type = isolate::TypeOf(request.body);
  const std::string name(isolate::Name(type));
  if (greeted_ == (type == isolate::RequestType::kHello)) {
    return OutOfTurn(greeted_ ? "a second Hello" : name + " before Hello");
  }
  if (outstanding_.contains(request.id)) {
    return OutOfTurn(name + " with the id of a request that is not answered yet");
  }
  if (outstanding_.size() >= isolate::kRequestsOutstandingMax) {
    return OutOfTurn("more requests at once than allowed");
  }
  return {};
}

Result<isolate::Request> Pair::Next() {
  auto message = os::ReceiveMessage(socket_.get(), isolate::kFrameBytesMax);
  if (!message.has_value()) {
    const Code code = message.error().code;
    if (code == Code::kExhausted) {
      return Malformed("a message that is longer than allowed");
    }
    return Error{code == Code::kUnavailable ? code : Code::kNotFound, message.error().message};
  }
  if (!message->fds.empty()) {
    return Malformed("a message with descriptors");
  }
  auto request = isolate::DecodeRequest(message->bytes);
  if (!request.has_value()) {
    return Malformed("a message that cannot be decoded: " + request.error().message);
  }
  RINGFENCE_TRY(CheckTurn(*request));
  greeted_ = true;
  outstanding_.insert(request->id);
  return request;
}

void Pair::Answer(isolate::Reply reply, std::vector<os::UniqueFd> fds) {
  if (!socket_.valid() || !outstanding_.contains(reply.id) || !answered_.insert(reply.id).second) {
    return;
  }
  outgoing_.push_back({reply.id, isolate::EncodeReply(reply), std::move(fds)});
}

Status Pair::Flush() {
  while (!outgoing_.empty()) {
    std::vector<int> fds;
    for (const os::UniqueFd& fd : outgoing_.front().fds) {
      fds.push_back(fd.get());
    }
    const Status sent = os::SendMessage(socket_.get(), outgoing_.front().frame, fds);
    if (!sent.has_value()) {
      return sent.error().code == Code::kUnavailable ? Status() : sent;
    }
    outstanding_.erase(outgoing_.front().id);
    answered_.erase(outgoing_.front().id);
    outgoing_.pop_front();
  }
  return {};
}

void Pair::Close() {
  socket_.Reset();
  outgoing_.clear();
  outstanding_.clear();
  answered_.clear();
}

}  // namespace ringfence::jailer

#include "isolate/jailer_client.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "isolate/jailer_protocol.h"
#include "os/memory_file.h"
#include "os/socket_pair.h"

namespace ringfence::isolate {
namespace {

// Below the jailer's own limit: callers wait here rather than be taken for an attack.
constexpr std::size_t kCallsMax = kRequestsOutstandingMax / 2;

Error PairEnded() {
  return Error{Code::kUnavailable, "the jailer has ended the connection",
               "see the jailer's log; restart the node's service"};
}

struct Answer {
  Reply reply;
  std::vector<os::UniqueFd> fds;
};

// One thread reads answers and hands each to the call that waits for it.
class Client final : public JailerClient {
 public:
  Client(os::UniqueFd socket, std::function<void()> on_lost)
      : socket_(std::move(socket)),
        on_lost_(std::move(on_lost)),
        reader_([this] { ReadAnswers(); }) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    os::ShutDown(socket_.get());
    reader_.join();
  }

  Result<JailerHello> Hello() override {
    const std::lock_guard lock(hello_mutex_);
    {
      const std::lock_guard inner(mutex_);
      if (ended_) {
        return PairEnded();
      }
    }
    if (!hello_.has_value()) {
      RINGFENCE_ASSIGN(Answer answer, Call(HelloRequest{}));
      hello_ = std::move(answer.reply.hello);
    }
    return *hello_;
  }

  Result<std::string> Inventory() override {
    RINGFENCE_ASSIGN(const Bytes bytes, CallForFile(InventoryRequest{}, kInventoryBytesMax));
    return ToText(bytes);
  }

  Result<StartedBox> Start(std::string_view grant) override {
    RINGFENCE_ASSIGN(Answer answer, CallAfterHello(StartRequest{std::string(grant)}));
    return StartedBox{std::move(answer.fds[0]), std::move(answer.fds[1]), std::move(answer.fds[2])};
  }

  Status End(std::string_view lease) override {
    RINGFENCE_TRY(CallAfterHello(EndRequest{std::string(lease)}));
    return {};
  }

  Result<std::string> Scrub(std::string_view lease, const std::vector<std::string>& gpus) override {
    RINGFENCE_ASSIGN(Answer answer, CallAfterHello(ScrubRequest{std::string(lease), gpus}));
    return std::move(answer.reply.text);
  }

  Result<std::vector<BoxRecord>> List() override {
    RINGFENCE_ASSIGN(const Bytes bytes, CallForFile(ListRequest{}, kBodyFileBytesMax));
    return DecodeRecords(bytes);
  }

  Status Forget(std::string_view lease) override {
    RINGFENCE_TRY(CallAfterHello(ForgetRequest{std::string(lease)}));
    return {};
  }

  Result<std::vector<std::string>> Incidents() override {
    RINGFENCE_ASSIGN(const Bytes bytes, CallForFile(IncidentsRequest{}, kBodyFileBytesMax));
    return DecodeTexts(bytes);
  }

  Status AckIncidents(std::uint32_t count) override {
    RINGFENCE_TRY(CallAfterHello(AckIncidentsRequest{count}));
    return {};
  }

  Result<std::vector<NodeImage>> Images() override {
    RINGFENCE_ASSIGN(const Bytes bytes, CallForFile(ImagesRequest{}, kBodyFileBytesMax));
    return DecodeImages(bytes);
  }

  Result<os::UniqueFd> Sense() override {
    RINGFENCE_ASSIGN(Answer answer, CallAfterHello(SenseRequest{}));
    return std::move(answer.fds[0]);
  }

  Result<std::string> Mig(std::string_view order) override {
    RINGFENCE_ASSIGN(Answer answer, CallAfterHello(MigRequest{std::string(order)}));
    return std::move(answer.reply.text);
  }

 private:
  Result<Answer> CallAfterHello(RequestBody body) {
    RINGFENCE_TRY(Hello());
    return Call(std::move(body));
  }

  Result<Bytes> CallForFile(RequestBody body, std::size_t bytes_max) {
    RINGFENCE_ASSIGN(const Answer answer, CallAfterHello(std::move(body)));
    return os::ReadMemoryFile(answer.fds[0].get(), bytes_max);
  }

  // What the jailer would take for an attack must not leave this process.
  static Status CheckSendable(const Bytes& frame) {
    const auto decoded = DecodeRequest(frame);
    if (!decoded.has_value()) {
      return Error{Code::kInvalidArgument,
                   "not sent to the jailer, which would refuse it: " + decoded.error().message};
    }
    return {};
  }

  Result<Answer> Call(RequestBody body) {
    const RequestType type = TypeOf(body);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || waiting_.size() < kCallsMax; });
    if (ended_) {
      return PairEnded();
    }
    const std::uint32_t id = next_id_++;
    const Bytes frame = EncodeRequest(Request{id, std::move(body)});
    RINGFENCE_TRY(CheckSendable(frame));
    waiting_.emplace(id, std::nullopt);
    lock.unlock();
    if (!os::SendMessage(socket_.get(), frame).has_value()) {
      EndPair();
    }
    lock.lock();
    changed_.wait(lock, [&] { return ended_ || waiting_.at(id).has_value(); });
    auto node = waiting_.extract(id);
    changed_.notify_all();
    if (!node.mapped().has_value()) {
      return PairEnded();
    }
    Answer answer = std::move(*node.mapped());
    if (!answer.reply.status.has_value()) {
      return answer.reply.status.error();
    }
    if (answer.reply.type != type || answer.fds.size() != FdsOf(type)) {
      return Error{Code::kCorrupt, "the jailer's answer does not fit the request"};
    }
    return answer;
  }

  void ReadAnswers() {
    for (;;) {
      auto message = os::ReceiveMessage(socket_.get(), kFrameBytesMax);
      if (!message.has_value()) {
        break;
      }
      auto reply = DecodeReply(message->bytes);
      if (!reply.has_value()) {
        break;
      }
      const std::lock_guard lock(mutex_);
      const auto call = waiting_.find(reply->id);
      if (call == waiting_.end() || call->second.has_value()) {
        break;
      }
      call->second = Answer{std::move(*reply), std::move(message->fds)};
      changed_.notify_all();
    }
    EndPair();
  }

  void EndPair() {
    const std::lock_guard lock(mutex_);
    if (!ended_ && on_lost_) {
      on_lost_();
    }
    ended_ = true;
    os::ShutDown(socket_.get());
    changed_.notify_all();
  }

  os::UniqueFd socket_;
  const std::function<void()> on_lost_;
  std::mutex hello_mutex_;  // taken before mutex_
  std::optional<JailerHello> hello_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint32_t, std::optional<Answer>> waiting_;
  std::uint32_t next_id_ = 1;
  bool ended_ = false;
  std::thread reader_;  // last: starts when all else is there
};

}  // namespace

std::unique_ptr<JailerClient> JailerClient::Attach(os::UniqueFd socket,
                                                   std::function<void()> on_lost) {
  return std::make_unique<Client>(std::move(socket), std::move(on_lost));
}

}  // namespace ringfence::isolate

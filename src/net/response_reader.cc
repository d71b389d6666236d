#include "net/response_reader.h"

#include <optional>

#include "net/beast.h"
#include "net/body_reader.h"
#include "net/head_check.h"

namespace ringfence::net {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t kHeadBytesMax = 64 * 1024;
constexpr int kInterimMax = 4;  // "100 Continue" and its like

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

Error Nonsense(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

}  // namespace

struct ResponseReader::Message {
  explicit Message(const ResponseLimits& limits_given) : limits(limits_given) { Restart(); }

  void Restart() {
    parser.emplace();
    parser->header_limit(static_cast<std::uint32_t>(kHeadBytesMax + 1));
    parser->skip(true);  // the body is read by BodyReader
    head.clear();
  }

  Result<std::size_t> FeedHead(std::string_view bytes);
  Status AcceptHead();
  Status CheckBody() const;
  bool complete() const {
    return parser->is_header_done() && body.state() == BodyReader::State::kDone;
  }

  ResponseLimits limits;
  std::optional<http::response_parser<http::empty_body>> parser;
  std::string head;
  BodyReader body;
  int interim = 0;
};

Result<std::size_t> ResponseReader::Message::FeedHead(std::string_view bytes) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::size_t before = head.size();
  head.append(bytes.substr(0, kHeadBytesMax - before));
  const std::size_t end = head.find(kEnd, before < kEnd.size() ? 0 : before - kEnd.size() + 1);
  if (end == std::string::npos) {
    if (head.size() == kHeadBytesMax) {
      return Nonsense("the server's answer is not HTTP: its head is too long");
    }
    return bytes.size();
  }
  head.resize(end + kEnd.size());
  const std::size_t used = head.size() - before;
  RINGFENCE_TRY(AcceptHead());
  return used;
}

Status ResponseReader::Message::AcceptHead() {
  AsioError failure;
  const std::size_t used = parser->put(asio::buffer(head), failure);
  if ((failure && failure != http::error::need_more) || used != head.size() ||
      !parser->is_header_done()) {
    return Nonsense("the server's answer is not HTTP: " + failure.message());
  }
  const unsigned status = parser->get().result_int();
  if (status / 100 == 1) {
    if (++interim > kInterimMax) {
      return Nonsense("the server answers without end that it will answer");
    }
    Restart();
    return {};
  }
  if (limits.head_only || status == 204 || status == 304) {
    return {};
  }
  if (parser->chunked()) {
    body.BeginChunked(limits.body_bytes_max);
  } else if (const auto length = parser->content_length()) {
    body.BeginLength(*length, limits.body_bytes_max);
  } else {
    return Nonsense("the server's answer does not say how long it is");
  }
  return CheckBody();
}

Status ResponseReader::Message::CheckBody() const {
  if (body.state() == BodyReader::State::kTooLong) {
    return Nonsense("the server's answer is longer than " + std::to_string(limits.body_bytes_max) +
                    " bytes");
  }
  if (body.state() == BodyReader::State::kBad) {
    return Nonsense("the server's answer is not chunked as HTTP says");
  }
  return {};
}

ResponseReader::ResponseReader(const ResponseLimits& limits)
    : message_(std::make_unique<Message>(limits)) {}

ResponseReader::~ResponseReader() = default;

Status ResponseReader::Feed(std::string_view bytes) {
  while (!bytes.empty() && !message_->parser->is_header_done()) {
    RINGFENCE_ASSIGN(const std::size_t used, message_->FeedHead(bytes));
    bytes.remove_prefix(used);
  }
  bytes.remove_prefix(message_->body.Feed(bytes));
  RINGFENCE_TRY(message_->CheckBody());
  if (!bytes.empty()) {
    return Nonsense("the server sent more than its answer");
  }
  return {};
}

bool ResponseReader::complete() const { return message_->complete(); }
bool ResponseReader::keep_alive() const { return message_->parser->get().keep_alive(); }

Response ResponseReader::Take() {
  const auto message = message_->parser->release();
  Response response;
  response.status = static_cast<int>(message.result_int());
  response.content_type.clear();
  for (const auto& field : message) {
    std::string name = LowerAscii(View(field.name_string()));
    if (name == "content-type") {
      response.content_type = std::string(View(field.value()));
    }
    response.headers.emplace_back(std::move(name), std::string(View(field.value())));
  }
  response.body = std::move(message_->body.body());
  return response;
}

}  // namespace ringfence::net

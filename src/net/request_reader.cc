#include "net/request_reader.h"

#include <algorithm>
#include <optional>

#include "net/beast.h"
#include "net/body_reader.h"
#include "net/head_check.h"
#include "net/problem.h"
#include "net/target.h"

namespace ringfence::net {
namespace {

namespace http = boost::beast::http;
using Parser = http::request_parser<http::empty_body>;

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

Error Malformed(std::string message, std::string hint = {}) {
  return Error{Code::kInvalidArgument, std::move(message), std::move(hint)};
}

bool IsKnownMethod(http::verb verb) {
  return verb == http::verb::get || verb == http::verb::head || verb == http::verb::post ||
         verb == http::verb::put || verb == http::verb::patch || verb == http::verb::delete_ ||
         verb == http::verb::options;
}

}  // namespace

struct RequestReader::Message {
  explicit Message(const ReaderLimits& limits) { Reset(limits); }

  void Reset(const ReaderLimits& limits) {
    parser.emplace();
    parser->header_limit(static_cast<std::uint32_t>(limits.header_bytes_max + 1));
    parser->skip(true);  // the body is read by BodyReader
    body = {};
    state = State::kIdle;
    head.clear();
    request = {};
    continue_expected = false;
    head_only = false;
  }

  void Refuse(int status, const Error& error) {
    state = State::kRefused;
    refusal = Problem(status, error);
  }

  std::size_t FeedHead(std::string_view bytes, const ReaderLimits& limits);
  void AcceptHead(const ReaderLimits& limits);
  void BeginBody(const ReaderLimits& limits);
  void AfterBody();
  Status Convert();
  bool AcceptExpectation();

  std::optional<Parser> parser;
  State state = State::kIdle;
  std::string head;  // as received, until its empty line
  BodyReader body;
  Request request;
  bool continue_expected = false;
  bool head_only = false;
  Response refusal;
};

std::size_t RequestReader::Message::FeedHead(std::string_view bytes, const ReaderLimits& limits) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::size_t before = head.size();
  const std::size_t room = limits.header_bytes_max - before;
  head.append(bytes.substr(0, room));
  const std::size_t end = head.find(kEnd, before < kEnd.size() ? 0 : before - kEnd.size() + 1);
  if (end != std::string::npos) {
    head.resize(end + kEnd.size());
  }
  if (const auto bytes_ok = CheckHeadBytes(head, before); !bytes_ok.has_value()) {
    Refuse(400, bytes_ok.error());
    return head.size() - before;
  }
  if (end != std::string::npos) {
    AcceptHead(limits);
  } else if (bytes.size() >= room) {
    Refuse(431, Malformed("the request's headers are longer than " +
                              std::to_string(limits.header_bytes_max) + " bytes",
                          "send fewer or shorter headers"));
  }
  return head.size() - before;
}

void RequestReader::Message::AcceptHead(const ReaderLimits& limits) {
  const auto lines = CheckHeadLines(head);
  if (!lines.has_value()) {
    Refuse(400, lines.error());
    return;
  }
  if (*lines > kHeaderLinesMax) {
    Refuse(431, Malformed("the request has more than " + std::to_string(kHeaderLinesMax) +
                              " header lines",
                          "send fewer headers"));
    return;
  }
  AsioError failure;
  const std::size_t used = parser->put(asio::buffer(head), failure);
  if ((failure && failure != http::error::need_more) || used != head.size() ||
      !parser->is_header_done()) {
    Refuse(400, Malformed("not an HTTP request: " + failure.message()));
    return;
  }
  if (!IsKnownMethod(parser->get().method())) {
    Refuse(501, Malformed("the method is not one that this server knows",
                          "use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS"));
    return;
  }
  if (const Status converted = Convert(); !converted.has_value()) {
    Refuse(400, converted.error());
    return;
  }
  BeginBody(limits);
}

void RequestReader::Message::BeginBody(const ReaderLimits& limits) {
  const bool is_long = !limits.long_body_path.empty() && request.path == limits.long_body_path;
  const std::size_t bytes_max = is_long ? limits.long_body_bytes_max : limits.body_bytes_max;
  if (parser->chunked()) {
    body.BeginChunked(bytes_max);
  } else if (const auto length = parser->content_length()) {
    body.BeginLength(*length, bytes_max);
  }
  if (AcceptExpectation()) {
    AfterBody();
  }
}

void RequestReader::Message::AfterBody() {
  switch (body.state()) {
    case BodyReader::State::kMore:
      state = State::kBody;
      break;
    case BodyReader::State::kDone:
      state = State::kComplete;
      break;
    case BodyReader::State::kTooLong:
      Refuse(413, Malformed("the request's body is too long", "send less at a time"));
      break;
    case BodyReader::State::kBad:
      Refuse(400, Malformed("the request's body is not chunked as HTTP says"));
      break;
  }
}

Status RequestReader::Message::Convert() {
  const auto& message = parser->get();
  RINGFENCE_ASSIGN(Target target, ParseTarget(View(message.target())));
  head_only = message.method() == http::verb::head;
  request.method = head_only ? "GET" : std::string(View(message.method_string()));
  request.path = std::move(target.path);
  request.query = std::move(target.query);
  for (const auto& field : message) {
    request.headers.emplace_back(LowerAscii(View(field.name_string())),
                                 std::string(View(field.value())));
  }
  return CheckHeaders(request.headers, message.version());
}

bool RequestReader::Message::AcceptExpectation() {
  const std::string expect = LowerAscii(request.Header("expect"));
  if (expect.empty()) {
    return true;
  }
  if (expect != "100-continue" || parser->get().version() != 11) {
    Refuse(417, Malformed("the request expects what this server does not do",
                          "leave out the Expect header"));
    return false;
  }
  continue_expected = body.state() == BodyReader::State::kMore;
  return true;
}

RequestReader::RequestReader(const ReaderLimits& limits)
    : message_(std::make_unique<Message>(limits)), limits_(limits) {}

RequestReader::~RequestReader() = default;

std::size_t RequestReader::Feed(std::string_view bytes) {
  std::size_t used = 0;
  if (message_->state == State::kIdle && !bytes.empty()) {
    message_->state = State::kHead;
  }
  if (message_->state == State::kHead) {
    used = message_->FeedHead(bytes, limits_);
  }
  if (message_->state == State::kBody && used < bytes.size()) {
    message_->continue_expected = false;
    used += message_->body.Feed(bytes.substr(used));
    message_->AfterBody();
  }
  return used;
}

RequestReader::State RequestReader::state() const { return message_->state; }
bool RequestReader::keep_alive() const { return message_->parser->get().keep_alive(); }
bool RequestReader::http_1_0() const { return message_->parser->get().version() == 10; }
bool RequestReader::head_only() const { return message_->head_only; }
bool RequestReader::expects_continue() const { return message_->continue_expected; }
std::size_t RequestReader::body_bytes() const { return message_->body.body().size(); }
Response RequestReader::refusal() const { return message_->refusal; }

Request RequestReader::Take() {
  Request request = std::move(message_->request);
  request.body = std::move(message_->body.body());
  message_->Reset(limits_);
  return request;
}

}  // namespace ringfence::net

#include "net/http.h"

#include <algorithm>
#include <atomic>
#include <boost/json/serialize.hpp>

#include "base/code.h"
#include "base/encoding.h"
#include "net/problem.h"

namespace ringfence::net {
namespace {

constexpr std::size_t kProblemBytesMax = 64 * 1024;
constexpr std::size_t kQuotedBytesMax = 200;
constexpr std::string_view kRetryAfterSeconds = "1";

std::string_view Find(const std::vector<std::pair<std::string, std::string>>& list,
                      std::string_view name) {
  for (const auto& [key, value] : list) {
    if (key == name) {
      return value;
    }
  }
  return {};
}

// "permission_denied" becomes "Permission denied".
std::string TitleOf(std::string_view label) {
  std::string title(label);
  std::replace(title.begin(), title.end(), '_', ' ');
  title.front() = static_cast<char>(title.front() - 'a' + 'A');
  return title;
}

// An error's text may quote foreign bytes; JSON must not carry them.
std::string Utf8(const std::string& text) {
  if (IsUtf8(text)) {
    return text;
  }
  std::string clean = text;
  std::replace_if(clean.begin(), clean.end(), [](char c) { return (c & '\x80') != 0; }, '?');
  return clean;
}

Code CodeOfStatus(int status) {
  for (const CodeFacts& facts : kCodeTable) {
    if (facts.http_status == status) {
      return facts.code == Code::kCorrupt ? Code::kInternal : facts.code;
    }
  }
  if (status == 502 || status == 504) {
    return Code::kUnavailable;
  }
  return status >= 400 && status < 500 ? Code::kInvalidArgument : Code::kInternal;
}

std::string TextMember(const JsonObject& object, std::string_view name) {
  const Json* const value = object.if_contains(boost::json::string_view(name.data(), name.size()));
  if (value == nullptr || !value->is_string()) {
    return {};
  }
  return std::string(value->get_string().data(), value->get_string().size());
}

}  // namespace

std::string_view Request::Query(std::string_view name) const { return Find(query, name); }

std::string_view Request::Header(std::string_view lower_case_name) const {
  return Find(headers, lower_case_name);
}

Response Response::OfJson(int status, const Json& body) {
  Response response;
  response.status = status;
  response.body = boost::json::serialize(body);
  return response;
}

Response Response::OfText(int status, std::string body) {
  Response response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(body);
  return response;
}

Response Response::OfError(const Error& error) {
  return Problem(Facts(error.code).http_status, error);
}

Response Problem(int status, const Error& error) {
  const std::string label(Facts(error.code).label);
  JsonObject body;
  body["type"] = "https://ringfence.dev/problems/" + label;
  body["title"] = TitleOf(label);
  body["status"] = status;
  body["detail"] = Utf8(error.message);
  body["code"] = label;
  if (!error.hint.empty()) {
    body["hint"] = Utf8(error.hint);
  }
  if (!error.field.empty()) {
    body["field"] = Utf8(error.field);
  }
  Response response = Response::OfJson(status, body);
  response.content_type = "application/problem+json";
  if (error.code == Code::kExhausted || error.code == Code::kUnavailable) {
    response.headers.emplace_back("Retry-After", kRetryAfterSeconds);
  }
  return response;
}

Error ErrorFromResponse(int status, std::string_view body) {
  const auto json = ParseJson(body, kProblemBytesMax);
  if (json.has_value() && json->is_object()) {
    const JsonObject& object = json->get_object();
    const std::string label = TextMember(object, "code");
    std::string detail = TextMember(object, "detail");
    if (!label.empty() && !detail.empty()) {
      return Error{CodeFromLabel(label), std::move(detail), TextMember(object, "hint"),
                   TextMember(object, "field")};
    }
  }
  std::string quoted = Utf8(std::string(body.substr(0, kQuotedBytesMax)));
  std::replace_if(quoted.begin(), quoted.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  return Error{CodeOfStatus(status), "the server answered with status " + std::to_string(status) +
                                         (quoted.empty() ? "" : ": " + quoted)};
}

struct Responder::State {
  explicit State(std::function<void(Response)> to) : send(std::move(to)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (!sent.load()) {
      send(Response::OfError({Code::kInternal, "the server dropped the request unanswered",
                              "this is a defect of the server; its log may say more"}));
    }
  }
  std::function<void(Response)> send;
  std::atomic<bool> sent{false};
};

Responder::Responder(std::function<void(Response)> send)
    : state_(std::make_shared<State>(std::move(send))) {}

void Responder::Send(Response response) const {
  if (!state_->sent.exchange(true)) {
    state_->send(std::move(response));
  }
}

}  // namespace ringfence::net

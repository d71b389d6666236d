#include "net/head_check.h"

#include <algorithm>

namespace ringfence::net {
namespace {

// Headers whose second copy one reader would ignore and another obey.
constexpr std::string_view kSingle[] = {"host",          "content-length",  "transfer-encoding",
                                        "authorization", "idempotency-key", "content-type",
                                        "expect"};

Error Bad(std::string message, std::string hint = {}) {
  return Error{Code::kInvalidArgument, std::move(message), std::move(hint)};
}

bool IsDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string LowerAscii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return lower;
}

Status CheckHeadBytes(std::string_view head, std::size_t from) {
  for (std::size_t i = from; i < head.size(); ++i) {
    const auto byte = static_cast<unsigned char>(head[i]);
    const char before = i == 0 ? '\0' : head[i - 1];
    if ((byte == '\n') != (before == '\r')) {
      return Bad("not an HTTP request: a line does not end in CR LF");
    }
    if ((byte < 0x20 && byte != '\r' && byte != '\n' && byte != '\t') || byte == 0x7f) {
      return Bad("not an HTTP request: a control character in its head");
    }
    if (i == 0 && (head[0] < 'A' || head[0] > 'Z')) {
      return Bad("not an HTTP request: it does not start with a method");
    }
  }
  return {};
}

Result<std::size_t> CheckHeadLines(std::string_view head) {
  std::size_t lines = 0;
  for (std::size_t at = head.find("\r\n") + 2; at + 2 < head.size();) {
    if (head[at] == ' ' || head[at] == '\t') {
      return Bad("a header is folded over two lines", "send each header on one line");
    }
    ++lines;
    at = head.find("\r\n", at) + 2;
  }
  return lines;
}

Status CheckHeaders(const std::vector<std::pair<std::string, std::string>>& headers,
                    unsigned version) {
  for (const std::string_view name : kSingle) {
    const auto count = std::count_if(headers.begin(), headers.end(),
                                     [&](const auto& header) { return header.first == name; });
    if (count > 1) {
      return Error{Code::kInvalidArgument, "the header " + std::string(name) + " is given twice",
                   "send it once", std::string(name)};
    }
    if (count == 0 && name == "host" && version == 11) {
      return Error{Code::kInvalidArgument, "the Host header is missing", "", "host"};
    }
  }
  bool has_length = false;
  bool has_encoding = false;
  for (const auto& [name, value] : headers) {
    if (name == "content-length") {
      has_length = true;
      if (!IsDigits(value)) {
        return Error{Code::kInvalidArgument, "Content-Length is not a number", "", name};
      }
    } else if (name == "transfer-encoding") {
      has_encoding = true;
      if (LowerAscii(value) != "chunked" || version != 11) {
        return Error{Code::kInvalidArgument,
                     "the only Transfer-Encoding read here is chunked, in HTTP/1.1", "", name};
      }
    }
  }
  if (has_length && has_encoding) {
    return Bad("both Content-Length and Transfer-Encoding are given", "send one of them");
  }
  return {};
}

}  // namespace ringfence::net

#include "net/response_writer.h"

#include <algorithm>

#include "net/head_check.h"
#include "os/log.h"

namespace ringfence::net {
namespace {

struct Reason {
  int status;
  std::string_view text;
};
constexpr Reason kReasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
};

std::string_view ReasonOf(int status) {
  for (const Reason& reason : kReasons) {
    if (reason.status == status) {
      return reason.text;
    }
  }
  return "Other";
}

bool IsCleanName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

bool IsCleanValue(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
  });
}

void AddLine(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

std::string WriteResponse(const Response& response, const WriteOptions& options) {
  const bool no_body = response.status == 204 || response.status == 304;
  std::string out;
  out.reserve(512 + response.body.size());
  out.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ");
  out.append(ReasonOf(response.status)).append("\r\n");
  bool cache_said = false;
  for (const auto& [name, value] : response.headers) {
    if (!IsCleanName(name) || !IsCleanValue(value)) {
      os::Log(os::Level::kError, "response_header_dropped", {{"name", name}});
      continue;
    }
    const std::string lower = LowerAscii(name);
    cache_said = cache_said || lower == "cache-control";
    // Ours to say, below.
    if (lower != "content-length" && lower != "transfer-encoding" && lower != "connection" &&
        lower != "content-type" && lower != "x-request-id") {
      AddLine(out, name, value);
    }
  }
  if (!no_body) {
    if (!response.content_type.empty() && IsCleanValue(response.content_type)) {
      AddLine(out, "Content-Type", response.content_type);
    }
    AddLine(out, "Content-Length", std::to_string(response.body.size()));
  }
  if (!cache_said) {
    AddLine(out, "Cache-Control", "no-store");
  }
  AddLine(out, "X-Content-Type-Options", "nosniff");
  AddLine(out, "Strict-Transport-Security", "max-age=31536000");
  if (!options.request_id.empty()) {
    AddLine(out, "X-Request-Id", options.request_id);
  }
  if (!options.keep_alive) {
    AddLine(out, "Connection", "close");
  } else if (options.http_1_0) {
    AddLine(out, "Connection", "keep-alive");
  }
  out.append("\r\n");
  if (!no_body && !options.head_only) {
    out.append(response.body);
  }
  return out;
}

}  // namespace ringfence::net

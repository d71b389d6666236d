#include "image/reference.h"

#include <algorithm>

#include "image/limits.h"

namespace ringfence::image {
namespace {

constexpr std::string_view kSha256 = "sha256:";
constexpr std::size_t kHexDigits = 64;

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

Error Bad(std::string_view text, std::string why) {
  return Error{Code::kInvalidArgument,
               "image \"" + std::string(text.substr(0, 200)) + "\" " + std::move(why),
               "write it as NAME, NAME:TAG, sha256:HEX or NAME@sha256:HEX; `ringfence image list` "
               "on a node shows what is there",
               "image"};
}

// Takes "@sha256:HEX" off the end.
Result<std::string> TakeDigest(std::string_view whole, std::string_view& rest) {
  const std::size_t at = rest.rfind('@');
  if (at == std::string_view::npos) {
    return std::string();
  }
  const std::string digest(rest.substr(at + 1));
  if (!IsDigest(digest)) {
    return Bad(whole,
               "has something behind @ that is no digest: sha256: and 64 hexadecimal "
               "digits in small letters");
  }
  rest = rest.substr(0, at);
  return digest;
}

}  // namespace

bool IsDigest(std::string_view text) {
  if (!text.starts_with(kSha256) || text.size() != kSha256.size() + kHexDigits) {
    return false;
  }
  text.remove_prefix(kSha256.size());
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string Reference::text() const {
  if (digest.empty() || name.empty()) {
    return name + digest;
  }
  return name + "@" + digest;
}

Result<Reference> ParseReference(std::string_view text) {
  if (text.empty() || text.size() > kReferenceBytesMax) {
    return Bad(text, text.empty() ? "is empty" : "is too long");
  }
  if (IsDigest(text)) {
    return Reference{"", std::string(text)};
  }
  std::string_view rest = text;
  RINGFENCE_ASSIGN(std::string digest, TakeDigest(text, rest));
  const bool plain =
      !rest.empty() && IsWordByte(rest.front()) &&
      std::all_of(rest.begin(), rest.end(), [](char c) {
        return IsWordByte(c) || c == '.' || c == '_' || c == '-' || c == '/' || c == ':';
      });
  if (!plain || rest.find("..") != std::string_view::npos || rest.starts_with(kSha256)) {
    return Bad(text, "is no image's name");
  }
  return Reference{std::string(rest), std::move(digest)};
}

Result<SourceReference> ParseSource(std::string_view text, bool is_folder) {
  std::string_view rest = text;
  SourceReference source;
  struct Scheme {
    std::string_view prefix;
    SourceKind kind;
  };
  constexpr Scheme kSchemes[] = {{"oci:", SourceKind::kLayout},
                                 {"oci-archive:", SourceKind::kArchive},
                                 {"docker-archive:", SourceKind::kArchive},
                                 {"containers-storage:", SourceKind::kContainersStorage}};
  const auto* const scheme =
      std::find_if(std::begin(kSchemes), std::end(kSchemes),
                   [&](const Scheme& one) { return text.starts_with(one.prefix); });
  if (scheme != std::end(kSchemes)) {
    rest.remove_prefix(scheme->prefix.size());
    source.kind = scheme->kind;
  } else if (text.starts_with('/') || text.starts_with('.')) {
    source.kind = is_folder ? SourceKind::kLayout : SourceKind::kArchive;
  } else {
    return Error{Code::kNotFound,
                 "image \"" + std::string(text.substr(0, 200)) + "\" is no path and has no scheme",
                 "write oci:DIR, oci-archive:FILE, docker-archive:FILE or containers-storage:REF, "
                 "or a path that begins with / or ."};
  }
  RINGFENCE_ASSIGN(source.digest, TakeDigest(text, rest));
  if (scheme != std::end(kSchemes) && source.kind == SourceKind::kLayout) {
    const std::size_t colon = rest.rfind(':');
    if (colon != std::string_view::npos && rest.find('/', colon) == std::string_view::npos) {
      source.tag = rest.substr(colon + 1);
      rest = rest.substr(0, colon);
    }
  }
  if (rest.empty() || rest.size() > kTextBytesMax || rest.find('\0') != std::string_view::npos) {
    return Bad(text, "names no place");
  }
  if (source.kind == SourceKind::kContainersStorage && rest.front() == '-') {
    return Bad(text, "begins with a dash");  // it becomes an argument of podman
  }
  source.place = rest;
  return source;
}

}  // namespace ringfence::image

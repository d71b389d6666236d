#include "audit/verify_note.h"

#include <algorithm>
#include <optional>

#include "base/encoding.h"
#include "crypto/sha256.h"

namespace ringfence::audit::verify {
namespace {

constexpr std::size_t kIdBytes = 4;
constexpr std::size_t kTimeBytes = 8;
constexpr std::size_t kSignatureBytes = 64;
constexpr std::size_t kNameBytesLimit = 256;
constexpr std::size_t kSignaturesLimit = 64;
constexpr std::string_view kLineStart = "\xe2\x80\x94 ";
constexpr std::uint64_t kYear9999 = 253402300799;

Error Malformed(std::string_view why) {
  return {Code::kCorrupt, "the note is malformed: " + std::string(why)};
}

bool GoodName(std::string_view name) {
  for (const char c : name) {
    if (c < '!' || c > '~' || c == '+') {
      return false;
    }
  }
  return !name.empty() && name.size() <= kNameBytesLimit;
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::optional<std::uint64_t> Decimal(std::string_view digits) {
  if (digits.empty() || digits.size() > 20 || (digits.size() > 1 && digits[0] == '0')) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  for (const char c : digits) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (c < '0' || c > '9' || value > (UINT64_MAX - digit) / 10) {
      return std::nullopt;
    }
    value = value * 10 + digit;
  }
  return value;
}

bool IsBy(const Signature& signature, const Key& key) {
  return signature.name == key.name &&
         std::equal(key.id.begin(), key.id.begin() + kIdBytes, signature.bytes.begin());
}

Status ReadBody(const std::vector<std::string_view>& lines, Note& note) {
  if (lines.size() != 3) {
    return Malformed("its text must be origin, size and root");
  }
  note.origin = std::string(lines[0]);
  const std::optional<std::uint64_t> size = Decimal(lines[1]);
  const Result<Bytes> root = FromBase64(lines[2]);
  if (note.origin.empty() || !size.has_value()) {
    return Malformed("its origin or its size is not valid");
  }
  if (!root.has_value() || root->size() != note.root.size()) {
    return Malformed("its root is not the base64 of 32 bytes");
  }
  note.size = *size;
  std::copy(root->begin(), root->end(), note.root.begin());
  return {};
}

Result<Signature> ReadSignature(std::string_view line) {
  if (!line.starts_with(kLineStart)) {
    return Malformed("a signature line does not begin with a dash");
  }
  line.remove_prefix(kLineStart.size());
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || !GoodName(line.substr(0, space))) {
    return Malformed("a signature line has no key name");
  }
  Result<Bytes> bytes = FromBase64(line.substr(space + 1));
  if (!bytes.has_value() || bytes->size() <= kIdBytes) {
    return Malformed("a signature is not valid base64");
  }
  return Signature{std::string(line.substr(0, space)), std::move(bytes).value()};
}

}  // namespace

Result<Key> ReadKey(std::string_view vkey) {
  const Error bad{Code::kInvalidArgument,
                  "'" + std::string(vkey.substr(0, 200)) + "' is not a verifier key",
                  "it has the form NAME+HASH+BASE64"};
  const std::size_t first = vkey.find('+');
  if (first == std::string_view::npos || vkey.size() < first + 10 || vkey[first + 9] != '+' ||
      !GoodName(vkey.substr(0, first))) {
    return bad;
  }
  const Result<Bytes> hash = FromHex(vkey.substr(first + 1, 8));
  const Result<Bytes> bytes = FromBase64(vkey.substr(first + 10));
  if (!hash.has_value() || !bytes.has_value() || bytes->size() != 33) {
    return bad;
  }
  Key key;
  key.name = std::string(vkey.substr(0, first));
  key.algorithm = std::to_integer<std::uint8_t>(bytes->front());
  key.id = crypto::Sha256({AsBytes(key.name), AsBytes("\n"), *bytes});
  const bool known = key.algorithm == 1 || key.algorithm == 4;
  if (!known || !std::equal(hash->begin(), hash->end(), key.id.begin())) {
    return bad;
  }
  RINGFENCE_ASSIGN(key.key, crypto::PublicKey::FromRaw(ByteView(*bytes).subspan(1)));
  return key;
}

Result<Note> ReadNote(std::string_view text) {
  if (text.size() > kNoteBytesLimit || !text.ends_with('\n') || !IsUtf8(text)) {
    return Malformed("too long, cut short or not UTF-8");
  }
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return c >= 0 && c < ' ' && c != '\n'; })) {
    return Malformed("it holds control characters");
  }
  const std::vector<std::string_view> lines = Lines(text);
  const auto blank = std::find(lines.rbegin(), lines.rend(), std::string_view());
  if (blank == lines.rend() || blank == lines.rbegin()) {
    return Malformed("there are no signatures below a blank line");
  }
  const auto body_lines = static_cast<std::size_t>(lines.rend() - blank) - 1;
  Note note;
  RINGFENCE_TRY(
      ReadBody({lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(body_lines)}, note));
  for (std::size_t i = 0; i < body_lines; ++i) {
    note.body += std::string(lines[i]) + "\n";
  }
  if (lines.size() - body_lines - 1 > kSignaturesLimit) {
    return Malformed("it has too many signatures");
  }
  for (std::size_t i = body_lines + 1; i < lines.size(); ++i) {
    RINGFENCE_ASSIGN(Signature signature, ReadSignature(lines[i]));
    note.signatures.push_back(std::move(signature));
  }
  return note;
}

Status CheckSigned(const Note& note, const Key& log) {
  if (log.algorithm != 1) {
    return Error{Code::kInvalidArgument, "the key of " + log.name + " is a witness's, not a log's"};
  }
  if (note.origin != log.name) {
    return Error{Code::kCorrupt,
                 "it is a checkpoint of " + note.origin + ", and the key is " + log.name + "'s"};
  }
  bool found = false;
  for (const Signature& signature : note.signatures) {
    if (!IsBy(signature, log)) {
      continue;
    }
    found = true;
    if (!log.key.Verify(AsBytes(note.body), ByteView(signature.bytes).subspan(kIdBytes))) {
      return Error{Code::kCorrupt, "the signature by " + log.name + " is not valid"};
    }
  }
  return found ? Status() : Error{Code::kCorrupt, "there is no signature by " + log.name};
}

Result<Timestamp> CheckCosigned(const Note& note, const Key& witness) {
  if (witness.algorithm != 4) {
    return Error{Code::kInvalidArgument, "the key of " + witness.name + " is not a witness's"};
  }
  for (const Signature& signature : note.signatures) {
    if (!IsBy(signature, witness)) {
      continue;
    }
    const Error bad{Code::kCorrupt, "the cosignature by " + witness.name + " is not valid"};
    if (signature.bytes.size() != kIdBytes + kTimeBytes + kSignatureBytes) {
      return bad;
    }
    const ByteView bytes = signature.bytes;
    const auto seconds = GetBigEndian<std::uint64_t>(bytes.subspan(kIdBytes));
    const std::string message =
        "cosignature/v1\ntime " + std::to_string(seconds) + "\n" + note.body;
    if (seconds > kYear9999 ||
        !witness.key.Verify(AsBytes(message), bytes.subspan(kIdBytes + kTimeBytes))) {
      return bad;
    }
    return Timestamp(std::chrono::seconds(seconds));
  }
  return Error{Code::kNotFound, "there is no cosignature by " + witness.name};
}

}  // namespace ringfence::audit::verify

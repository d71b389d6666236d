#include "audit/note_text.h"

#include <algorithm>
#include <array>

#include "base/encoding.h"
#include "crypto/sha256.h"

namespace ringfence::audit {
namespace {

constexpr std::string_view kDash = "\xe2\x80\x94 ";  // an em dash and a space

Error BadNote(std::string_view why) {
  return {Code::kCorrupt, "not a signed note: " + std::string(why)};
}

}  // namespace

bool IsKeyName(std::string_view name) {
  const auto wrong = [](char c) { return c <= 0x20 || c >= 0x7f || c == '+'; };
  return !name.empty() && name.size() <= kKeyNameBytesMax &&
         std::none_of(name.begin(), name.end(), wrong);
}

std::uint32_t KeyId(std::string_view name, std::uint8_t type, ByteView public_key) {
  const std::array<std::byte, 2> middle = {std::byte{'\n'}, std::byte{type}};
  return GetBigEndian<std::uint32_t>(crypto::Sha256({AsBytes(name), middle, public_key}));
}

std::string SignatureLine(std::string_view name, std::uint32_t key_id, ByteView blob) {
  Bytes all;
  Append(all, PutBigEndian(key_id));
  Append(all, blob);
  return std::string(kDash) + std::string(name) + " " + Base64(all) + "\n";
}

Result<NoteSignature> ParseSignatureLine(std::string_view line) {
  if (line.size() > kNoteBytesMax || !line.starts_with(kDash) || !line.ends_with('\n')) {
    return BadNote("a signature line does not have the form '\xe2\x80\x94 name base64'");
  }
  const std::string_view body = line.substr(kDash.size(), line.size() - kDash.size() - 1);
  const std::size_t space = body.find(' ');
  if (space == std::string_view::npos || !IsKeyName(body.substr(0, space))) {
    return BadNote("a signature line has no valid key name");
  }
  const Result<Bytes> all = FromBase64(body.substr(space + 1));
  if (!all.has_value() || all->size() <= sizeof(std::uint32_t)) {
    return BadNote("a signature is not valid base64 of a key id and a signature");
  }
  return NoteSignature{std::string(body.substr(0, space)), GetBigEndian<std::uint32_t>(*all),
                       Bytes(all->begin() + sizeof(std::uint32_t), all->end()), std::string(line)};
}

Result<NoteParts> SplitNote(std::string_view note) {
  if (note.size() > kNoteBytesMax) {
    return BadNote("longer than " + std::to_string(kNoteBytesMax) + " bytes");
  }
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; };
  if (!IsUtf8(note) || std::any_of(note.begin(), note.end(), control)) {
    return BadNote("not UTF-8, or with control characters");
  }
  const std::size_t blank = note.rfind("\n\n");
  if (blank == std::string_view::npos || blank + 2 == note.size()) {
    return BadNote("no blank line with signatures after it");
  }
  NoteParts parts;
  parts.text = std::string(note.substr(0, blank + 1));
  std::string_view rest = note.substr(blank + 2);
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      return BadNote("the last line has no newline");
    }
    if (parts.signatures.size() == kNoteSignaturesMax) {
      return BadNote("more than " + std::to_string(kNoteSignaturesMax) + " signatures");
    }
    RINGFENCE_ASSIGN(NoteSignature signature, ParseSignatureLine(rest.substr(0, end + 1)));
    parts.signatures.push_back(std::move(signature));
    rest.remove_prefix(end + 1);
  }
  return parts;
}

}  // namespace ringfence::audit

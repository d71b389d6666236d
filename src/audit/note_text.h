#pragma once

// The shape of a C2SP signed note, before any key comes into it. Shared by what writes and reads
// notes here; the verifier has its own.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace ringfence::audit {

inline constexpr std::size_t kNoteBytesMax = 64 * 1024;
inline constexpr std::size_t kNoteSignaturesMax = 64;
inline constexpr std::size_t kKeyNameBytesMax = 256;
inline constexpr std::uint8_t kTypeEd25519 = 1;
inline constexpr std::uint8_t kTypeCosigner = 4;

struct NoteSignature {
  std::string name;
  std::uint32_t key_id = 0;
  Bytes blob;        // what follows the key id
  std::string line;  // as it stands in the note, with its newline
};

struct NoteParts {
  std::string text;  // what is signed, with its last newline
  std::vector<NoteSignature> signatures;
};

// kCorrupt, with the reason, for what is not a note.
Result<NoteParts> SplitNote(std::string_view note);
Result<NoteSignature> ParseSignatureLine(std::string_view line);  // with its newline

// Printable ASCII without space and '+', 1 to kKeyNameBytesMax of it. (C2SP would allow more of
// Unicode; no log or witness of ours needs it.)
bool IsKeyName(std::string_view name);
std::uint32_t KeyId(std::string_view name, std::uint8_t type, ByteView public_key);
std::string SignatureLine(std::string_view name, std::uint32_t key_id, ByteView blob);

}  // namespace ringfence::audit

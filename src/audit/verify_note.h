#pragma once

// The verifier's own reading of keys, signed notes and checkpoints.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "crypto/ed25519.h"

namespace ringfence::audit::verify {

inline constexpr std::size_t kNoteBytesLimit = 64 * 1024;

struct Key {
  std::string name;
  std::uint8_t algorithm = 0;  // 1: the log's signature, 4: a witness's cosignature
  Digest id{};                 // its first four bytes stand in signature lines
  crypto::PublicKey key;
};
// kInvalidArgument when `vkey` is not NAME+HASH+BASE64.
Result<Key> ReadKey(std::string_view vkey);

struct Signature {
  std::string name;
  Bytes bytes;  // key id and all
};
struct Note {
  std::string body;
  std::vector<Signature> signatures;
  std::string origin;
  std::uint64_t size = 0;
  Digest root{};
};
// A checkpoint of exactly three lines, with signatures of any kind that are not yet verified.
Result<Note> ReadNote(std::string_view text);

// OK when `log` has signed the note and the note is of that log.
Status CheckSigned(const Note& note, const Key& log);
// When `witness` cosigned it.
Result<Timestamp> CheckCosigned(const Note& note, const Key& witness);

}  // namespace ringfence::audit::verify

#include "audit/note.h"

#include <algorithm>
#include <charconv>

#include "audit/note_text.h"
#include "audit/tiles.h"
#include "base/check.h"
#include "base/encoding.h"

namespace ringfence::audit {
namespace {

constexpr std::size_t kCosignatureBlobBytes = sizeof(std::uint64_t) + sizeof(crypto::Signature);
// The last second that base/time.h can write: the end of the year 9999.
constexpr std::uint64_t kSecondsMax = 253402300799;

Error BadCheckpoint(std::string_view why) {
  return {Code::kCorrupt, "not a checkpoint: " + std::string(why)};
}

std::string CheckpointText(const Checkpoint& checkpoint) {
  return checkpoint.origin + "\n" + std::to_string(checkpoint.head.size) + "\n" +
         Base64(checkpoint.head.root) + "\n";
}

Result<std::uint64_t> ParseSize(std::string_view text) {
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size() || std::to_string(size) != text) {
    return BadCheckpoint("the second line is not a tree size");
  }
  return size;
}

// Exactly three lines: extension lines are never written here, so they are never read.
Result<Checkpoint> ParseText(std::string_view text) {
  const std::size_t first = text.find('\n');
  const std::size_t second = text.find('\n', first + 1);
  const std::size_t third = second == std::string_view::npos ? second : text.find('\n', second + 1);
  if (third == std::string_view::npos || third + 1 != text.size()) {
    return BadCheckpoint("it must have three lines: origin, size, root");
  }
  Checkpoint checkpoint;
  checkpoint.origin = std::string(text.substr(0, first));
  RINGFENCE_ASSIGN(checkpoint.head.size, ParseSize(text.substr(first + 1, second - first - 1)));
  const Result<Bytes> root = FromBase64(text.substr(second + 1, third - second - 1));
  if (!root.has_value() || root->size() != sizeof(Digest)) {
    return BadCheckpoint("the third line is not the base64 of a root hash");
  }
  std::copy(root->begin(), root->end(), checkpoint.head.root.begin());
  if (checkpoint.head.size == 0 && checkpoint.head.root != EmptyRoot()) {
    return BadCheckpoint("the root of no entries is wrong");
  }
  return checkpoint;
}

std::string CosignedMessage(std::string_view text, std::uint64_t seconds) {
  return "cosignature/v1\ntime " + std::to_string(seconds) + "\n" + std::string(text);
}

}  // namespace

std::string VerifierKey(std::string_view name, std::uint8_t type, const crypto::PublicKey& key) {
  Bytes typed = {std::byte{type}};
  Append(typed, key.raw());
  return std::string(name) + "+" + Hex(PutBigEndian(KeyId(name, type, key.raw()))) + "+" +
         Base64(typed);
}

Result<NamedKey> ParseVerifierKey(std::string_view vkey) {
  const auto bad = [](std::string_view why) {
    return Error{Code::kInvalidArgument, "not a verifier key: " + std::string(why),
                 "it has the form NAME+HASH+BASE64, as `ringfence audit checkpoint` prints it"};
  };
  const std::size_t first = vkey.find('+');
  const std::size_t second = first == std::string_view::npos ? first : vkey.find('+', first + 1);
  if (second == std::string_view::npos || !IsKeyName(vkey.substr(0, first))) {
    return bad("it does not have a name and two '+'");
  }
  const Result<Bytes> typed = FromBase64(vkey.substr(second + 1));
  if (!typed.has_value() || typed->size() != 33) {
    return bad("its last part is not the base64 of a type and an Ed25519 key");
  }
  NamedKey named{
      std::string(vkey.substr(0, first)), std::to_integer<std::uint8_t>((*typed)[0]), {}};
  if (named.type != kTypeEd25519 && named.type != kTypeCosigner) {
    return bad("its type " + std::to_string(named.type) + " is not known here");
  }
  RINGFENCE_ASSIGN(named.key, crypto::PublicKey::FromRaw(ByteView(*typed).subspan(1)));
  if (VerifierKey(named.name, named.type, named.key) != vkey) {
    return bad("its hash does not match its name and key");
  }
  return named;
}

std::string SignCheckpoint(const Checkpoint& checkpoint, const crypto::SigningKey& key) {
  RINGFENCE_CHECK(IsKeyName(checkpoint.origin));
  const std::string text = CheckpointText(checkpoint);
  const std::uint32_t id = KeyId(checkpoint.origin, kTypeEd25519, key.public_key().raw());
  return text + "\n" + SignatureLine(checkpoint.origin, id, key.Sign(AsBytes(text)));
}

Result<Checkpoint> OpenCheckpoint(std::string_view note, const NamedKey& log_key) {
  RINGFENCE_ASSIGN(const NoteParts parts, SplitNote(note));
  const std::uint32_t id = KeyId(log_key.name, log_key.type, log_key.key.raw());
  bool verified = false;
  for (const NoteSignature& signature : parts.signatures) {
    if (signature.name == log_key.name && signature.key_id == id) {
      if (log_key.type != kTypeEd25519 ||
          !log_key.key.Verify(AsBytes(parts.text), signature.blob)) {
        return BadCheckpoint("the signature by " + log_key.name + " does not verify");
      }
      verified = true;
    }
  }
  if (!verified) {
    return BadCheckpoint("it is not signed by " +
                         VerifierKey(log_key.name, log_key.type, log_key.key));
  }
  RINGFENCE_ASSIGN(Checkpoint checkpoint, ParseText(parts.text));
  if (checkpoint.origin != log_key.name) {
    return BadCheckpoint("it is of the log " + checkpoint.origin + ", not of " + log_key.name);
  }
  return checkpoint;
}

std::string Cosign(std::string_view note, std::string_view witness_name,
                   const crypto::SigningKey& key, Timestamp time) {
  const Result<NoteParts> parts = SplitNote(note);
  if (!parts.has_value() || !IsKeyName(witness_name) || time.time_since_epoch().count() < 0) {
    return {};
  }
  const auto seconds = static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count());
  Bytes blob;
  Append(blob, PutBigEndian(seconds));
  Append(blob, key.Sign(AsBytes(CosignedMessage(parts->text, seconds))));
  return SignatureLine(witness_name, KeyId(witness_name, kTypeCosigner, key.public_key().raw()),
                       blob);
}

Result<Timestamp> VerifyCosignature(std::string_view note, const NamedKey& witness) {
  if (witness.type != kTypeCosigner) {
    return Error{Code::kInvalidArgument, "the key of " + witness.name + " is not a cosigner's"};
  }
  RINGFENCE_ASSIGN(const NoteParts parts, SplitNote(note));
  const std::uint32_t id = KeyId(witness.name, kTypeCosigner, witness.key.raw());
  for (const NoteSignature& signature : parts.signatures) {
    if (signature.name != witness.name || signature.key_id != id) {
      continue;
    }
    if (signature.blob.size() != kCosignatureBlobBytes) {
      return Error{Code::kCorrupt, "the cosignature by " + witness.name + " has a wrong length"};
    }
    const auto seconds = GetBigEndian<std::uint64_t>(signature.blob);
    if (seconds > kSecondsMax ||
        !witness.key.Verify(AsBytes(CosignedMessage(parts.text, seconds)),
                            ByteView(signature.blob).subspan(sizeof seconds))) {
      return Error{Code::kCorrupt, "the cosignature by " + witness.name + " does not verify"};
    }
    return Timestamp(std::chrono::seconds(seconds));
  }
  return Error{Code::kNotFound, "the checkpoint has no cosignature by " + witness.name};
}

}  // namespace ringfence::audit

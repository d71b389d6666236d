#include <algorithm>
#include <optional>
#include <span>

#include "audit/verify.h"
#include "audit/verify_json.h"
#include "audit/verify_note.h"
#include "audit/verify_tree.h"
#include "base/encoding.h"
#include "base/json.h"

namespace ringfence::audit {
namespace {

constexpr std::size_t kProofFileLimit = 256 * 1024;
constexpr std::size_t kPathLimit = 64;
constexpr std::size_t kEntryLimit = 65535;

struct ProofFile {
  std::string origin;
  std::uint64_t index = 0;
  Bytes entry;
  std::vector<Digest> path;
  std::string checkpoint;
};

Result<ProofFile> ReadProof(std::string_view text) {
  ProofFile proof;
  RINGFENCE_ASSIGN(const Json document, ParseJson(text, kProofFileLimit));
  RINGFENCE_ASSIGN(JsonReader reader, JsonReader::Open(document));
  RINGFENCE_ASSIGN(proof.origin, reader.String("origin"));
  RINGFENCE_ASSIGN(const std::int64_t index, reader.Int("index", 0, std::int64_t{1} << 53U));
  proof.index = static_cast<std::uint64_t>(index);
  RINGFENCE_ASSIGN(const std::string entry, reader.String("entry", kEntryLimit * 2));
  RINGFENCE_ASSIGN(proof.entry, FromBase64(entry));
  RINGFENCE_ASSIGN(const std::vector<std::string> path, reader.Strings("proof", kPathLimit, 64));
  for (const std::string& hash : path) {
    RINGFENCE_ASSIGN(const Bytes bytes, FromBase64(hash));
    if (bytes.size() != sizeof(Digest)) {
      return Error{Code::kInvalidArgument, "proof holds a hash that does not have 32 bytes"};
    }
    std::copy(bytes.begin(), bytes.end(), proof.path.emplace_back().begin());
  }
  RINGFENCE_ASSIGN(proof.checkpoint, reader.String("checkpoint", verify::kNoteBytesLimit));
  RINGFENCE_TRY(reader.Finish());
  return proof;
}

// The root that a path leads to, as RFC 6962 defines the path: of the larger half first.
std::optional<Digest> Climb(const Digest& leaf, std::uint64_t index, std::uint64_t size,
                            std::span<const Digest> path) {
  if (size <= 1) {
    return path.empty() ? std::optional(leaf) : std::nullopt;
  }
  if (path.empty()) {
    return std::nullopt;
  }
  std::uint64_t left = 1;
  while (left < size - left) {
    left *= 2;
  }
  const Digest& other = path.back();
  path = path.first(path.size() - 1);
  const bool goes_left = index < left;
  const std::optional<Digest> own =
      goes_left ? Climb(leaf, index, left, path) : Climb(leaf, index - left, size - left, path);
  if (!own.has_value()) {
    return std::nullopt;
  }
  return goes_left ? verify::HashPair(*own, other) : verify::HashPair(other, *own);
}

void CheckEntry(const ProofFile& proof, const verify::Note& note, VerifyReport& report) {
  const auto bad = [&](std::string_view why) {
    report.bad.push_back({proof.index, proof.index,
                          "entry " + std::to_string(proof.index) + ": " + std::string(why)});
  };
  if (proof.index >= note.size) {
    bad("the checkpoint covers only " + std::to_string(note.size) + " entries");
    return;
  }
  const std::optional<Digest> root =
      Climb(verify::HashEntry(proof.entry), proof.index, note.size, proof.path);
  if (!root.has_value()) {
    bad("the proof has the wrong length");
  } else if (*root != note.root) {
    bad("the proof does not lead to the signed root");
  }
  const char* const why = verify::WhyNotCanonical(AsText(proof.entry));
  if (proof.entry.size() > kEntryLimit || why != nullptr) {
    bad(why != nullptr ? why : "it is too long");
  }
}

}  // namespace

Result<VerifyReport> VerifyProof(std::string_view proof_json, const std::string& vkey) {
  RINGFENCE_ASSIGN(const verify::Key key, verify::ReadKey(vkey));
  VerifyReport report;
  const Result<ProofFile> proof = ReadProof(proof_json);
  if (!proof.has_value()) {
    report.problems.push_back("the proof file cannot be read: " + proof.error().message);
    return report;
  }
  const Result<verify::Note> note = verify::ReadNote(proof->checkpoint);
  if (!note.has_value()) {
    report.problems.push_back("checkpoint: " + note.error().message);
    return report;
  }
  report.origin = note->origin;
  report.size = note->size;
  report.root = Base64(note->root);
  report.entries_read = 1;
  if (const Status status = verify::CheckSigned(*note, key); !status.has_value()) {
    report.problems.push_back("checkpoint: " + status.error().message);
  }
  if (proof->origin != note->origin) {
    report.problems.push_back("the proof is of the log " + proof->origin + ", its checkpoint of " +
                              note->origin);
  }
  CheckEntry(*proof, *note, report);
  report.ok = report.bad.empty() && report.problems.empty();
  return report;
}

}  // namespace ringfence::audit

#pragma once

// What is inside a backup: a stream of records. Bytes: docs/formats/backup.md.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "store/database.h"

namespace ringfence::backup {

inline constexpr int kFormat = 1;
// A row or an entry: no value of the store comes near it.
inline constexpr std::size_t kRecordBytesMax = std::size_t{16} << 20U;
inline constexpr std::size_t kFilePieceBytes = 32 * 1024;
inline constexpr std::size_t kPathBytesMax = 1024;

enum class Kind : std::uint8_t {
  kAbout = 'A',     // first: About as JSON
  kPart = 'P',      // the name of the part that begins
  kFile = 'F',      // FileHead as JSON
  kPiece = 'D',     // of the file that was named last
  kTable = 'T',     // TableHead as JSON
  kRow = 'R',       // of the table that was named last
  kEntry = 'E',     // an audit entry as it is in the log
  kManifest = 'M',  // last: Manifest as JSON
};

// The parts, in the only order in which they come.
inline constexpr std::string_view kKeysPart = "keys";
inline constexpr std::string_view kPolicyPart = "policy";
inline constexpr std::string_view kRecordsPart = "records";
inline constexpr std::string_view kEntriesPart = "entries";
inline constexpr std::string_view kParts[] = {kKeysPart, kPolicyPart, kRecordsPart, kEntriesPart};

// What it is a backup of, known before the first record is read from anywhere.
struct About {
  std::string version;  // of the product that made it
  int schema = 0;
  Timestamp created;
  std::string origin;      // of the audit log
  std::string vkey;        // the key that verifies its checkpoints
  std::string checkpoint;  // the newest one, with its cosignatures
  bool has_output = true;  // false: what jobs printed was left out
};

struct PartFacts {
  std::string name;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::string sha256;  // hex, over the part's records as they are in the stream
  bool operator==(const PartFacts&) const = default;
};

struct Manifest {
  About about;
  std::vector<PartFacts> parts;
  std::uint64_t log_size = 0;  // that the checkpoint signs
  std::string log_root;        // base64
  std::uint64_t entries = 0;   // acknowledged, some of them maybe not yet under the checkpoint
};

struct FileHead {
  std::string path;  // relative, without "." and ".."
  unsigned mode = 0;
};

struct TableHead {
  std::string table;
  std::vector<std::string> columns;
};

Json AboutToJson(const About& about);
Result<About> AboutFromJson(const Json& json);
Json ManifestToJson(const Manifest& manifest);
Result<Manifest> ManifestFromJson(const Json& json);
Json FileHeadToJson(const FileHead& head);
Result<FileHead> FileHeadFromJson(const Json& json);
Json TableHeadToJson(const TableHead& head);
Result<TableHead> TableHeadFromJson(const Json& json);

Bytes EncodeRow(const store::Row& row);
Result<store::Row> DecodeRow(ByteView bytes, std::size_t columns);

// Whether a path may be written below a folder of ours: relative, no way up, nothing hidden.
bool IsPlainPath(std::string_view path);

}  // namespace ringfence::backup

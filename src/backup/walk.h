#pragma once

// Reads a backup from its first record to its last, strictly: what a writer never writes is
// refused. Both who verifies and who restores look on.

#include <functional>
#include <string>
#include <vector>

#include "backup/format.h"
#include "backup/seal.h"
#include "base/result.h"
#include "crypto/sha256_stream.h"
#include "store/tables.h"

namespace ringfence::backup {

// Called in the order of the stream. An error ends the walk with it.
class Visitor {
 public:
  Visitor() = default;
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;
  virtual ~Visitor() = default;

  virtual Status Begin(const About& about) = 0;
  virtual Status File(std::string_view part, const FileHead& head) = 0;
  virtual Status Piece(ByteView bytes) = 0;  // of the file before
  virtual Status Row(const store::TableSpec& table, const std::vector<std::string_view>& columns,
                     const store::Row& row) = 0;
  virtual Status Entry(std::uint64_t index, ByteView entry) = 0;
};

using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// The manifest, when the whole stream is what it says. kFailedPrecondition for a schema newer than
// this version's, before anything else is read. `progress` counts bytes of the file.
Result<Manifest> Walk(SealedReader& reader, Visitor& visitor, const Progress& progress);

// Adds up a part while it is written or read.
class PartMeter {
 public:
  explicit PartMeter(std::string name);
  void Add(ByteView head, ByteView body);
  PartFacts Finish();

 private:
  PartFacts facts_;
  crypto::Sha256Stream hash_;
};

// Kind and length, as they stand before each record.
std::array<std::byte, 5> RecordHead(Kind kind, std::size_t bytes);

}  // namespace ringfence::backup

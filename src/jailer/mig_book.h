#pragma once

// What was ordered of each GPU's MIG, and what became of it: so that a jailer that was killed
// half-way knows what to put back, and never obeys an order twice. One file, one thread.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::jailer {

struct MigDeed {
  std::string gpu;  // UUID
  std::int64_t serial = 0;
  std::string target;                // gpu::ParseMigTarget
  std::string before;                // what is put back where the target cannot be reached
  std::vector<std::string> touched;  // UUIDs that went
  std::string report;                // the envelope; empty: not done yet
};

class MigBook {
 public:
  static Result<MigBook> Open(const std::string& folder);

  // Null where nothing was ever ordered.
  const MigDeed* Find(const std::string& gpu) const;
  // Returns once durable.
  Status Put(const MigDeed& deed);

 private:
  explicit MigBook(std::string path) : path_(std::move(path)) {}
  Status Save() const;

  std::string path_;
  std::map<std::string, MigDeed> deeds_;  // by GPU
};

}  // namespace ringfence::jailer

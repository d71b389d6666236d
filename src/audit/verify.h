#pragma once

// The offline verifier: reads a copy of a log and says whether it is what was signed. It shares no
// code with the writer: its own Merkle tree, its own note parser, its own entry checks.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::audit {

struct VerifyOptions {
  std::string folder;
  std::vector<std::string> vkeys;  // the log's key; further ones are witnesses that must cosign
  // Signed notes of this log seen earlier (or cosigned elsewhere): the log must extend each.
  std::vector<std::string> earlier_checkpoints;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
  // Files beyond the checkpoint are a finding, unless a newer signed checkpoint covers them within
  // this time: then the log is only being written to while it is verified.
  std::chrono::milliseconds settle{2000};
  unsigned threads = 0;  // 0: as many as the machine has cores, but no more than 8
};

struct BadRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // inclusive; equal to first when one entry is known to be the bad one
  std::string what;        // "entry 17: hash differs from its tile", "tile/1/000 cut short"
};

struct VerifyReport {
  bool ok = false;
  std::string origin;
  std::uint64_t size = 0;
  std::string root;  // base64
  std::uint64_t entries_read = 0;
  std::vector<std::string> witnesses;  // who cosigned, with the time
  std::vector<BadRange> bad;           // damaged entries or tiles, smallest range that is known
  std::vector<std::string> problems;   // bad signature, rollback, fork, unreadable file, ...
};

// An error only when the log cannot be looked at (no such folder, bad key text); what is wrong
// with the log itself is in the report.
Result<VerifyReport> VerifyLog(const VerifyOptions& options);

// One entry against a checkpoint, from a proof file as `ringfence audit prove` prints it.
Result<VerifyReport> VerifyProof(std::string_view proof_json, const std::string& vkey);

}  // namespace ringfence::audit

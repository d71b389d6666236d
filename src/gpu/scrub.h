#pragma once

// Overwrites a GPU's memory, and what its chip keeps, by kernels of our own. For a worker process
// only: it loads the vendor's library and makes a context on the card.

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ringfence::gpu {

// Memory on the chip, of all multiprocessors together. What was reached was overwritten with a
// pattern and with zeros, and both were read back.
struct OnChipScrub {
  std::uint64_t multiprocessors = 0;
  std::uint64_t multiprocessors_reached = 0;
  std::uint64_t shared_bytes = 0;
  std::uint64_t shared_reached_bytes = 0;
  std::uint64_t shared_residue_bytes = 0;  // found not zero by the first kernel
  std::uint64_t register_bytes = 0;
  std::uint64_t register_reached_bytes = 0;
  std::uint64_t l2_bytes = 0;  // displaced by the passes over memory, not read back by itself
};

struct ScrubPass {
  std::string name;
  std::uint64_t duration_us = 0;
};

struct ScrubResult {
  std::string uuid;
  std::uint64_t memory_bytes = 0;    // what the card has
  std::uint64_t reached_bytes = 0;   // what could be allocated, overwritten and read back
  std::uint64_t residue_bytes = 0;   // found not zero before anything was written
  std::uint64_t mismatch_bytes = 0;  // read back other than written; not 0 means not scrubbed
  std::uint64_t duration_us = 0;     // of everything, the driver's own start and end included
  OnChipScrub on_chip{};
  std::vector<ScrubPass> passes{};  // over all of the memory, in their order
  // Of a slice, which is the card here: the GPU that it is cut from, and its shape.
  std::string parent{};
  std::string profile{};
};

inline constexpr std::size_t kPassesMax = 16;
inline constexpr std::size_t kCoverLinesMax = 512;

struct ScrubReport {
  bool simulated = false;
  std::string driver_version;  // CUDA driver API version, "13.0"
  std::string kernel_driver;
  std::string library_digest;  // of libcuda.so.1 as opened
  std::string kernels_digest;  // of the kernels that did it
  std::string pattern;
  std::vector<ScrubResult> gpus;
  std::vector<std::string> covered;
  std::vector<std::string> not_covered;
};

// For each GPU: allocates all the memory that can be had, counts what is not zero before touching
// it, overwrites with a pattern, reads all of it back, then leaves zeros and reads those back; the
// same for shared memory and registers, first and last of all. An error (naming the card and the
// driver's own words) means: treat the card as not scrubbed.
Result<ScrubReport> Scrub(const std::string& driver_root, const std::vector<std::string>& uuids);

std::string ScrubReportToJson(const ScrubReport& report);
Result<ScrubReport> ScrubReportFromJson(std::string_view text);

// One card's part of a report or receipt. kBrief: without what is on the chip and without passes,
// as receipts of format 1 have it.
enum class ScrubDetail { kBrief, kFull };
Json ScrubResultToJson(const ScrubResult& result, ScrubDetail detail);
Result<ScrubResult> ScrubResultFromJson(const Json& json, const std::string& path,
                                        ScrubDetail detail);

}  // namespace ringfence::gpu

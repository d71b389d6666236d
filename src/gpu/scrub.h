#pragma once

// Overwrites a GPU's memory through the CUDA driver interface. For a worker process only: it
// loads the vendor's library and makes a context on the card.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::gpu {

struct ScrubResult {
  std::string uuid;
  std::uint64_t memory_bytes = 0;
  std::uint64_t reached_bytes = 0;
  std::uint64_t residue_bytes = 0;
  std::uint64_t mismatch_bytes = 0;
  std::uint64_t duration_us = 0;
};

struct ScrubReport {
  bool simulated = false;
  std::string driver_version;  // CUDA driver API version, "13.0"
  std::string kernel_driver;
  std::string library_digest;  // of libcuda.so.1 as opened
  std::vector<ScrubResult> gpus;
  std::vector<std::string> not_covered;
};

// For each GPU: allocates all the memory that can be had, counts what is not zero before touching
// it, overwrites with a pattern, reads all of it back, then leaves zeros and reads those back.
// An error (naming the card and CUDA's own words) means: treat the card as not scrubbed.
Result<ScrubReport> Scrub(const std::string& driver_root, const std::vector<std::string>& uuids);

std::string ScrubReportToJson(const ScrubReport& report);
Result<ScrubReport> ScrubReportFromJson(std::string_view text);

}  // namespace ringfence::gpu

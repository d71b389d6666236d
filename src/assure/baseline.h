#pragma once

// The golden baseline: what a machine is made of, recorded once, signed, and compared later.

#include <map>
#include <string>
#include <vector>

#include "assure/machine_view.h"
#include "assure/nvml_view.h"
#include "base/json.h"
#include "base/time.h"
#include "crypto/ed25519.h"

namespace ringfence::assure {

inline constexpr std::size_t kBaselineFactsMax = 2'000;

// "gpu.GPU-….vbios" -> "96.00.A5.00.1A". What is not there has no entry.
using BaselineFacts = std::map<std::string, std::string>;

struct Baseline {
  std::string node;
  Timestamp when{};
  BaselineFacts facts;
};

// What can be read now. `unread` says what could not, and why: nothing of it is recorded.
struct BaselineSight {
  BaselineFacts facts;
  std::vector<std::string> unread;
};
// `nvml` null: what a captured root holds.
BaselineSight SeeBaseline(const MachineView& machine, const NvmlView* nvml);

std::string SignBaseline(const Baseline& baseline, const crypto::SigningKey& key);
// kPermissionDenied: not signed by this key, or changed since.
Result<Baseline> OpenBaseline(std::string_view signed_text, const crypto::PublicKey& key);

struct Drift {
  std::string fact;
  std::string was;  // empty: it was not there
  std::string is;   // empty: it is gone, or cannot be read
  std::string what() const;
};
// Facts that differ; those whose names match one of `ignored` ('*' any text) are left out.
std::vector<Drift> CompareBaseline(const BaselineFacts& recorded, const BaselineFacts& now,
                                   const std::vector<std::string>& ignored);

}  // namespace ringfence::assure

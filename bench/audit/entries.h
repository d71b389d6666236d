#pragma once

// Entries as the server writes them, of four actions in no order. Every one differs from every
// other.

#include <cstdint>
#include <string>
#include <vector>

#include "audit/entry.h"
#include "base/check.h"

namespace ringfence::bench {

inline std::string Padded(std::uint64_t number, std::size_t width) {
  std::string digits = std::to_string(number);
  return std::string(width > digits.size() ? width - digits.size() : 0, '0') + digits;
}

// Lengths and order vary from entry to entry as they do in life, but the same in each run.
inline Bytes SampleEntry(std::uint64_t index) {
  std::uint64_t dice = (index + 1) * 0x9e3779b97f4a7c15U;
  const auto pick = [&dice](std::uint64_t sides) {
    dice ^= dice >> 29U;
    dice *= 0xbf58476d1ce4e5b9U;
    dice ^= dice >> 32U;
    return dice % sides;
  };
  static const std::vector<std::string> kUsers = {
      "alice@acme",     "bob@acme", "c.lovelace@globex",
      "dmitri@initech", "e@x",      "fatima.al-zahra@acme"};
  static const std::vector<std::string> kTenants = {"acme/research/vision", "acme/research",
                                                    "globex/weather/long-range-forecasts",
                                                    "initech", "acme/platform"};
  static const std::vector<std::string> kCommands = {
      "python3 train.py --epochs 12", "nvidia-smi -L", "./run.sh",
      "torchrun --nproc-per-node 4 pretrain.py --config configs/7b.json --resume latest"};
  const auto gpu = [&] { return "GPU-6a1c9f10-" + Padded(pick(100000000), 8); };
  const std::string node = "node-" + std::to_string(pick(400));
  audit::Entry entry;
  entry.time =
      Timestamp(std::chrono::milliseconds(1763200000000 + static_cast<std::int64_t>(index) * 7));
  entry.id = Padded(pick(1000000007), 12) + Padded(index, 14);
  entry.actor = {kUsers[pick(kUsers.size())], "user", "tok-" + Padded(pick(977), 12),
                 "10.0." + std::to_string(pick(256)) + "." + std::to_string(pick(256))};
  entry.tenant = kTenants[pick(kTenants.size())];
  entry.policy = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
  entry.decision = pick(20) == 0 ? "deny" : "allow";
  entry.result = entry.decision == "allow" ? "ok" : "error";
  if (pick(2) == 0) {
    entry.lease = "lease-" + Padded(pick(1000000), 12);
  }
  const std::uint64_t action = pick(4);
  if (action == 0) {
    entry.action = "lease.request";
    entry.decision_reason = "role developer at " + entry.tenant + " allows lease.request";
    entry.detail = {{"command", kCommands[pick(kCommands.size())]},
                    {"gpus", static_cast<std::int64_t>(1 + pick(8))},
                    {"isolation", "gpu"},
                    {"minutes", static_cast<std::int64_t>(pick(1200))}};
  } else if (action == 1) {
    entry.action = "audit.read";
    entry.decision_reason = "role auditor";
    entry.detail = {{"what", "entries " + entry.lease}};
  } else {
    entry.actor = {node, "node", "cert-" + Padded(pick(1000000), 16), "10.0.7.2"};
    entry.node = node;
    entry.gpus = {gpu()};
    if (pick(3) == 0) {
      entry.gpus.push_back(gpu());
    }
    entry.action = action == 2 ? "lease.active" : "gpu.scrubbed";
    entry.detail = action == 2 ? JsonObject{{"box", "started"}, {"step", 4}}
                               : JsonObject{{"bytes", 150754820096},
                                            {"mismatch", 0},
                                            {"passes", 3},
                                            {"residue", static_cast<std::int64_t>(pick(3))}};
  }
  Result<Bytes> bytes = entry.ToBytes();
  RINGFENCE_CHECK(bytes.has_value());
  return std::move(bytes).value();
}

inline std::vector<Bytes> SampleEntries(std::uint64_t first, std::uint64_t count) {
  std::vector<Bytes> entries;
  entries.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    entries.push_back(SampleEntry(first + i));
  }
  return entries;
}

}  // namespace ringfence::bench

#pragma once

// Runs probes on a node: for each a victim and an attacker in boxes of their own, once with all
// walls and once with those taken away that the probe is about. What it finds counts for nobody but
// the reader; the server judges by the jailer's signed endings.

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/api.h"
#include "cli/console.h"
#include "cli/presses.h"
#include "isolate/probe_table.h"

namespace ringfence::cli {

struct TriedProbe {
  const isolate::Probe* probe = nullptr;
  std::string attack;  // lease; empty: it was not tried
  std::string control;
  std::string why;           // why one of them is missing, or what the attacker says it found
  std::string control_says;  // what the attacker found with the walls away
};

class Prover {
 public:
  // All must outlive this.
  Prover(Api& api, Console& console, Presses& presses, std::string node)
      : api_(api), console_(console), presses_(presses), node_(std::move(node)) {}

  // Never fails as a whole while the server is there: what cannot be tried says why.
  Result<TriedProbe> Try(const isolate::Probe& probe);

 private:
  struct Box {
    std::string lease;
    std::vector<std::string> facts;  // what the victim said, KEY=VALUE
    std::string verdict;             // of the attacker: its last line
    int exit_code = -1;
    std::string trouble;  // why there is no verdict
  };
  Result<Box> Round(const isolate::Probe& probe, const std::vector<std::string>& walls_away);
  Result<Box> Start(const isolate::Probe& probe, std::string_view role,
                    const std::vector<std::string>& walls_away,
                    const std::vector<std::string>& facts);
  Status AwaitReady(Box& victim);
  Status AwaitVerdict(Box& attacker);
  // Ends it and waits until its GPUs are clean; does nothing for a box that never was.
  Status Close(const Box& box);

  Api& api_;
  Console& console_;
  Presses& presses_;
  std::string node_;
};

}  // namespace ringfence::cli

#pragma once

// Where each control of a framework stands, by what checks saw, probes proved and the audit log
// holds. docs/compliance.md has the rules.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "assure/check_run.h"
#include "assure/control_spec.h"
#include "assure/oscal_catalog.h"
#include "base/json.h"
#include "base/time.h"

namespace ringfence::assure {

enum class ControlState { kProven, kConfigured, kFailing, kUnknown, kNotAutomated };
std::string_view Name(ControlState state);  // "proven", ..., "cannot tell", "not automated"
inline constexpr ControlState kControlStates[] = {ControlState::kProven, ControlState::kConfigured,
                                                  ControlState::kFailing, ControlState::kUnknown,
                                                  ControlState::kNotAutomated};

// What a probe came to on a node.
struct ProbeEvidence {
  std::string node;
  std::string result;  // "held", "leaked", "could not be tried"
  std::string why;
  Timestamp time{};
  std::string attack;      // lease
  std::string control;     // lease
  bool simulated = false;  // the node's GPUs are
};

// The newest entry of an action.
struct AuditEvidence {
  std::int64_t index = 0;
  Timestamp time{};
  bool proven = false;  // a signed checkpoint covers it
  std::string node;
  std::string principal;
  std::size_t count = 0;  // of those that were looked at
};

struct Evidence {
  const Assessment* assessment = nullptr;                    // must outlive what is made of it
  std::map<std::string, std::vector<ProbeEvidence>> probes;  // by probe
  std::map<std::string, AuditEvidence> audit;                // by action
  std::map<std::string, bool> simulated;                     // by node: its GPUs are
  std::string no_server;  // why no probe and no entry was looked at; empty: they were
  Timestamp now{};
  Milliseconds fresh = std::chrono::hours(24 * 30);  // older proof is none
};

// Results of a node, as GET /v1/nodes/NODE/proofs answers (docs/formats/proofs.md).
Status AddProofs(const Json& document, Evidence& evidence);
// Items of GET /v1/audit/entries, in any order.
Status AddAuditItems(const JsonArray& items, Evidence& evidence);

struct ControlStatus {
  const ControlSpec* control = nullptr;
  ControlState state = ControlState::kUnknown;
  std::string why;                     // one line; for kProven, by what
  std::optional<Timestamp> proven_at;  // of kProven: the oldest of the proofs it rests on
  bool accepted = false;               // of kFailing: somebody answers for every failure
  std::vector<const CheckResult*> checks;
  struct Probe {
    std::string name;
    std::vector<ProbeEvidence> results;  // of each node; none: never tried
  };
  std::vector<Probe> probes;
  struct Audit {
    AuditQuery query;
    std::optional<AuditEvidence> newest;
  };
  std::vector<Audit> audit;
};

struct FrameworkStatus {
  const Framework* framework = nullptr;
  std::vector<ControlStatus> controls;
  std::size_t Count(ControlState state) const;
};

// The framework and the evidence must outlive the result.
FrameworkStatus JudgeFramework(const Framework& framework, const Evidence& evidence);

// The framework as a profile or a catalog wants it: exactly those controls, in that order. One that
// the mapping does not know comes out without checks, and says so.
Framework Tailor(const Framework& framework, const std::vector<OscalControl>& controls);

}  // namespace ringfence::assure

#pragma once

// Controls of a framework, as content/controls/*.yaml has them: which checks, probes and audit
// entries speak about each, and what a person must show besides.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::assure {

// Entries of the audit log that speak about a control.
struct AuditQuery {
  std::string action;  // "lease.scrub"
  std::string shows;   // what an entry is evidence of
  // The entry itself proves that the control works, as a scrub's signed receipt does; otherwise it
  // only supports it.
  bool proof = false;
};

struct ControlSpec {
  std::string framework;  // "nist-800-53"
  std::string id;         // "ac-2.1", "164.312(b)", "32(1)(a)"
  std::string title;
  std::string baseline;             // the least that holds it: "low"; may be empty
  std::vector<std::string> checks;  // ids, or "nist:ac-2" for all checks that name that control
  std::vector<std::string> probes;
  std::vector<AuditQuery> audit;
  std::string person;  // what a person must show; never empty
  bool mapped = true;  // false: a profile asks for it, and Ringfence knows nothing about it

  bool automated() const { return !checks.empty() || !probes.empty() || !audit.empty(); }
};

struct Framework {
  std::string id;
  std::string title;
  std::string prefix;  // of controls in checks: "nist" for "nist:ac-2"
  std::vector<ControlSpec> controls;
};

// A file of controls. kInvalidArgument with every problem, each with its line: a control that is
// left out would be one that nobody misses.
Result<Framework> ParseFramework(std::string_view yaml, const std::string& file);
// All *.yaml of a folder, by name. An id or prefix that two files have is refused.
Result<std::vector<Framework>> LoadFrameworks(const std::string& folder);

// "AC-2(1)", "nist:ac-02.1" and "ac-2.1" are one control of NIST SP 800-53; other frameworks' ids
// are as they are written, without blanks and "Art.".
std::string PlainControlId(std::string_view text);

// The control by its id, with or without the framework's prefix ("gdpr:32"). kNotFound; with
// candidates when several frameworks have it.
Result<const ControlSpec*> FindControl(const std::vector<Framework>& frameworks,
                                       std::string_view text);

}  // namespace ringfence::assure

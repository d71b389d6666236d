#pragma once

// Checks against a machine: what each found, and what the whole comes to.

#include <functional>
#include <string>
#include <vector>

#include "assure/check_spec.h"
#include "assure/probe.h"

namespace ringfence::assure {

struct CheckResult {
  const CheckSpec* check = nullptr;
  Standing standing = Standing::kUnknown;
  std::string why;                    // one line
  std::vector<Observation> evidence;  // what was read; at most 20
  // An exception that is in force.
  std::string excepted_by;  // owner; empty: none
  std::string reason;
};

CheckResult RunCheck(const CheckSpec& check, const ProbeContext& context);

// A finding that somebody answers for until a day.
struct CheckException {
  std::string check;
  std::string owner;
  std::string reason;
  Timestamp until{};
};
Result<std::vector<CheckException>> ParseExceptions(std::string_view yaml, const std::string& file);

struct Assessment {
  std::vector<CheckResult> results;
  std::vector<std::string> expired;  // exceptions that no longer count, or name no check
  int score = 100;                   // 0 to 100
  int risk_lost = 0;                 // in halves: see docs/assess.md
  int risk_all = 0;

  std::size_t Count(Standing standing) const;
  // Failures without an exception, the greatest reduction of risk for the least effort first.
  std::vector<const CheckResult*> ToDo() const;
  bool FailsAt(int severity_rank) const;
};

Assessment Assess(const std::vector<CheckSpec>& checks, const ProbeContext& context,
                  const std::vector<CheckException>& exceptions);

}  // namespace ringfence::assure

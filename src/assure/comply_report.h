#pragma once

// Where controls stand, for people and for other programs.

#include <string>
#include <vector>

#include "assure/assess_report.h"
#include "assure/control_status.h"
#include "base/json.h"

namespace ringfence::assure {

Json ControlJson(const ControlStatus& status);
Json ComplianceJson(const std::vector<FrameworkStatus>& statuses, const Evidence& evidence,
                    const ReportHead& head);
// For people: what fails, each control with its state and evidence, and what a person must show.
std::string ComplianceMarkdown(const std::vector<FrameworkStatus>& statuses,
                               const Evidence& evidence, const ReportHead& head);
// One file with everything in it; no script, nothing loaded from elsewhere.
std::string ComplianceHtml(const std::vector<FrameworkStatus>& statuses, const Evidence& evidence,
                           const ReportHead& head);

}  // namespace ringfence::assure

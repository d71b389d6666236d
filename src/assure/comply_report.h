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

}  // namespace ringfence::assure

#pragma once

// Where controls stand, as OSCAL 1.1.2. Every identifier is a name-based UUID of the node and what
// it names, so that the same finding has the same one in the next report.

#include <string>
#include <vector>

#include "assure/comply_report.h"

namespace ringfence::assure {

// Assessment results: a result for each framework; an observation for each check, probe and audit
// query; a finding for each control about which there is one; a risk for each control that fails.
std::string OscalAssessmentResults(const std::vector<FrameworkStatus>& statuses,
                                   const Evidence& evidence, const ReportHead& head);
// Plan of action and milestones: an item for each control that fails. Where none does, one item
// says so, as OSCAL wants at least one.
std::string OscalPoam(const std::vector<FrameworkStatus>& statuses, const Evidence& evidence,
                      const ReportHead& head);

// Whether the technical part of a control counts as satisfied: it is proven; or there is no probe
// and no proof for it, and all of its checks that apply pass.
bool IsSatisfied(const ControlStatus& status);
// "ac-2" and "hipaa-164.312_a_1": an id that OSCAL takes.
std::string OscalControlId(const Framework& framework, const ControlSpec& control);

}  // namespace ringfence::assure

#pragma once

// An assessment for people and for other programs.

#include <string>

#include "assure/check_run.h"
#include "base/json.h"

namespace ringfence::assure {

struct ReportHead {
  std::string node;
  std::string root;
  Timestamp when{};
};

Json AssessmentJson(const Assessment& assessment, const ReportHead& head);
std::string Sarif(const Assessment& assessment, const ReportHead& head);  // SARIF 2.1.0
std::string Markdown(const Assessment& assessment, const ReportHead& head);
std::string Junit(const Assessment& assessment, const ReportHead& head);
std::string Prometheus(const Assessment& assessment, const ReportHead& head);
// One file with everything in it; no script, nothing loaded from elsewhere.
std::string Html(const Assessment& assessment, const ReportHead& head);

// docs/checks.md, from the checks themselves.
std::string ChecksDocument(const std::vector<CheckSpec>& checks);

std::string EscapeXml(std::string_view text);

}  // namespace ringfence::assure

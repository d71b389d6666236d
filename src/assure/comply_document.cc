// Reports about controls that people read.

#include "assure/comply_report.h"

namespace ringfence::assure {
namespace {

// A table cell: one line, and nothing that Markdown would take for its own.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '<' || c == '`' || c == '*' || c == '_' || c == '[') {
      out += '\\';
    }
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string SourceLine(const Evidence& evidence) {
  return evidence.no_server.empty() ? "Checks of this machine, probes and audit entries of the "
                                      "cluster; proof counts for " +
                                          FormatDuration(evidence.fresh) + "."
                                    : "Checks of this machine only: " + evidence.no_server + ".";
}

std::string When(const ControlStatus& status) {
  return status.proven_at.has_value() ? FormatTime(*status.proven_at) : "";
}

std::string StateText(const ControlStatus& status) {
  return std::string(Name(status.state)) + (status.accepted ? " (accepted)" : "");
}

constexpr std::string_view kStyle =
    "<style>:root{--proven:#1a7f37;--configured:#0969da;--failing:#b3261e;--unknown:#9a6700;"
    "--none:#8c959f}body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;"
    "padding:0 1rem;color:#1f2328;background:#fff}h1{margin:0}h2{margin-top:2rem;border-bottom:1px "
    "solid #d0d7de}table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:"
    "top;padding:.35rem .6rem;border-bottom:1px solid #d0d7de;overflow-wrap:anywhere}th{font-size:"
    ".85em}td:first-child{white-space:nowrap}.proven{color:var(--proven);font-weight:600}"
    ".configured{color:var(--configured)}.failing{color:var(--failing);font-weight:600}.unknown{"
    "color:var(--unknown)}.none{color:var(--none)}code{background:#f6f8fa;padding:.1em .3em}"
    "small{color:#59636e}@media print{body{margin:0;max-width:none;font-size:10pt}tr{break-inside:"
    "avoid}h2{break-after:avoid}}</style>";

struct Look {
  std::string_view name;
  std::string_view colour;
};

Look LookOf(ControlState state) {
  static constexpr Look kLooks[] = {{"proven", "#1a7f37"},
                                    {"configured", "#54aeff"},
                                    {"failing", "#b3261e"},
                                    {"unknown", "#d4a72c"},
                                    {"none", "#d0d7de"}};
  return kLooks[static_cast<std::size_t>(state)];
}

// One bar: how many controls are in each state.
std::string Bar(const FrameworkStatus& framework) {
  constexpr std::size_t kWidth = 700;
  std::string out =
      "<svg role=\"img\" aria-label=\"Controls by state\" viewBox=\"0 0 700 20\" "
      "width=\"100%\">";
  std::size_t x = 0;
  for (const ControlState state : kControlStates) {
    const std::size_t count = framework.Count(state);
    const std::size_t width = count * kWidth / std::max<std::size_t>(1, framework.controls.size());
    if (count > 0) {
      out += "<rect x=\"" + std::to_string(x) + "\" y=\"0\" width=\"" + std::to_string(width) +
             "\" height=\"20\" fill=\"" + std::string(LookOf(state).colour) + "\"><title>" +
             std::to_string(count) + " " + std::string(Name(state)) + "</title></rect>";
    }
    x += width;
  }
  return out + "</svg>";
}

std::string EvidenceHtml(const ControlStatus& status) {
  std::string out;
  for (const CheckResult* result : status.checks) {
    if (result->standing == Standing::kFail) {
      out += "<div><code>" + EscapeXml(result->check->id) + "</code> " + EscapeXml(result->why) +
             "; fix: " + EscapeXml(result->check->fix) + "</div>";
    }
  }
  for (const ControlStatus::Probe& probe : status.probes) {
    for (const ProbeEvidence& result : probe.results) {
      if (result.result == "leaked") {
        out += "<div><code>" + EscapeXml(probe.name) + "</code> got through on " +
               EscapeXml(result.node) + "</div>";
      }
    }
  }
  return out;
}

}  // namespace

std::string ComplianceMarkdown(const std::vector<FrameworkStatus>& statuses,
                               const Evidence& evidence, const ReportHead& head) {
  std::string out = "# Controls of " + Cell(head.node) + "\n\n" + FormatTime(head.when) + ". " +
                    SourceLine(evidence) + "\n\n| framework | controls |";
  for (const ControlState state : kControlStates) {
    out += " " + std::string(Name(state)) + " |";
  }
  out += "\n|---|---|---|---|---|---|---|\n";
  for (const FrameworkStatus& framework : statuses) {
    out += "| " + Cell(framework.framework->title) + " | " +
           std::to_string(framework.controls.size()) + " |";
    for (const ControlState state : kControlStates) {
      out += " " + std::to_string(framework.Count(state)) + " |";
    }
    out += "\n";
  }
  for (const FrameworkStatus& framework : statuses) {
    out += "\n## " + Cell(framework.framework->title) +
           "\n\n| control | status | proven | evidence | a person must show "
           "|\n|---|---|---|---|---|\n";
    for (const ControlStatus& status : framework.controls) {
      out += "| " + Cell(status.control->id) + " " + Cell(status.control->title) + " | " +
             StateText(status) + " | " + When(status) + " | " +
             (status.state == ControlState::kNotAutomated ? "" : Cell(status.why)) + " | " +
             Cell(status.control->person) + " |\n";
    }
  }
  return out;
}

std::string ComplianceHtml(const std::vector<FrameworkStatus>& statuses, const Evidence& evidence,
                           const ReportHead& head) {
  std::string out =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>Controls of " +
      EscapeXml(head.node) + "</title>" + std::string(kStyle) + "</head><body><h1>Controls of " +
      EscapeXml(head.node) + "</h1><small>" + FormatTime(head.when) + ". " +
      EscapeXml(SourceLine(evidence)) + "</small>";
  for (const FrameworkStatus& framework : statuses) {
    out += "<h2>" + EscapeXml(framework.framework->title) + "</h2>" + Bar(framework) + "<p>";
    for (const ControlState state : kControlStates) {
      out += "<span class=\"" + std::string(LookOf(state).name) + "\">" +
             std::to_string(framework.Count(state)) + " " + std::string(Name(state)) + "</span> ";
    }
    out +=
        "</p><table><tr><th>Control</th><th>Status</th><th>Evidence</th><th>A person must "
        "show</th></tr>";
    for (const ControlStatus& status : framework.controls) {
      const bool automated = status.state != ControlState::kNotAutomated;
      out +=
          "<tr><td>" + EscapeXml(status.control->id) + "</td><td class=\"" +
          std::string(LookOf(status.state).name) + "\">" + EscapeXml(StateText(status)) +
          "</td><td><b>" + EscapeXml(status.control->title) + "</b>" +
          (automated ? "<br>" + EscapeXml(status.why) : "") +
          (status.proven_at.has_value() ? "<br><small>proven " + When(status) + "</small>" : "") +
          EvidenceHtml(status) + "</td><td>" + EscapeXml(status.control->person) + "</td></tr>";
    }
    out += "</table>";
  }
  return out + "</body></html>\n";
}

}  // namespace ringfence::assure

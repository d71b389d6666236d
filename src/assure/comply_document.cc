// Reports about controls that people read.

#include "assure/comply_report.h"
#include "assure/report_page.h"

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

std::string HtmlRow(const ControlStatus& status) {
  const bool automated = status.state != ControlState::kNotAutomated;
  return "<tr><td>" + EscapeXml(status.control->id) + "<br><span class=\"" +
         std::string(LookOf(status.state).name) + "\">" + EscapeXml(StateText(status)) +
         "</span></td><td class=\"wide\"><b>" + EscapeXml(status.control->title) + "</b>" +
         (automated ? "<br>" + EscapeXml(status.why) : "") +
         (status.proven_at.has_value() ? "<br><small>proven " + When(status) + "</small>" : "") +
         EvidenceHtml(status) +
         (status.control->person.empty()
              ? ""
              : "<div>A person must show: " + EscapeXml(status.control->person) + "</div>") +
         "</td></tr>";
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
  std::string out = PageBegin("Controls of " + head.node) + "<h1>Controls of " +
                    EscapeXml(head.node) + "</h1><small>" + FormatTime(head.when) + ". " +
                    EscapeXml(SourceLine(evidence)) + "</small>";
  for (const FrameworkStatus& framework : statuses) {
    out += "<h2>" + EscapeXml(framework.framework->title) + "</h2>" + Bar(framework) + "<p>";
    for (const ControlState state : kControlStates) {
      out += "<span class=\"" + std::string(LookOf(state).name) + "\">" +
             std::to_string(framework.Count(state)) + " " + std::string(Name(state)) + "</span> ";
    }
    out += "</p><table><thead><tr><th>Control</th><th>Evidence</th></tr></thead>";
    for (const ControlStatus& status : framework.controls) {
      out += HtmlRow(status);
    }
    out += "</table>";
  }
  return out + "</body></html>\n";
}

}  // namespace ringfence::assure

#include "assure/oscal_report.h"

#include <algorithm>

#include "assure/oscal_builder.h"

namespace ringfence::assure {
namespace {

std::string StatementId(const Framework& framework, const ControlSpec& control) {
  const std::string id = OscalControlId(framework, control);
  return framework.prefix == "nist" ? id + "_smt" : id;
}

JsonObject Finding(OscalBuilder& builder, const Framework& framework, const ControlStatus& status,
                   const JsonArray& observations) {
  const std::string id = OscalControlId(framework, *status.control);
  const bool satisfied = IsSatisfied(status);
  const bool failing = status.state == ControlState::kFailing;
  JsonObject target{
      {"type", "statement-id"},
      {"target-id", StatementId(framework, *status.control)},
      {"status", JsonObject{{"state", satisfied ? "satisfied" : "not-satisfied"},
                            {"reason", satisfied ? "pass"
                                       : failing ? "fail"
                                                 : "other"},
                            {"remarks", OscalLine("The technical part only. A person must show: " +
                                                  status.control->person)}}}};
  JsonArray props{OscalBuilder::Property("status", Name(status.state))};
  if (status.proven_at.has_value()) {
    props.push_back(OscalBuilder::Property("proven-at", FormatTime(*status.proven_at)));
  }
  JsonObject finding{
      {"uuid", builder.Id("finding/" + id)},
      {"title", OscalLine(id + " " + status.control->title)},
      {"description", OscalLine(std::string(Name(status.state)) + ": " + status.why)},
      {"props", std::move(props)},
      {"origins", builder.Origins()},
      {"target", std::move(target)}};
  if (!observations.empty()) {
    finding["related-observations"] = observations;
  }
  if (failing) {
    finding["related-risks"] = JsonArray{JsonObject{{"risk-uuid", builder.Id("risk/" + id)}}};
  }
  return finding;
}

JsonObject ResultOf(OscalBuilder& builder, const FrameworkStatus& framework,
                    const ReportHead& head) {
  JsonArray reviewed;
  JsonArray findings;
  JsonArray risks;
  std::string left_out;
  for (const ControlStatus& status : framework.controls) {
    const std::string id = OscalControlId(*framework.framework, *status.control);
    if (status.state == ControlState::kNotAutomated) {
      left_out += (left_out.empty() ? "" : ", ") + id;
      continue;
    }
    reviewed.push_back(JsonObject{{"control-id", id}});
    const JsonArray observations = builder.Observe(status);
    findings.push_back(Finding(builder, *framework.framework, status, observations));
    if (status.state == ControlState::kFailing) {
      risks.push_back(builder.Risk(id, status, observations));
    }
  }
  JsonObject selection;
  if (reviewed.empty()) {
    selection["include-all"] = JsonObject();  // OSCAL has no way to say that none was
  } else {
    selection["include-controls"] = std::move(reviewed);
  }
  JsonObject result{
      {"uuid", builder.Id("result/" + framework.framework->id)},
      {"title", OscalLine(framework.framework->title)},
      {"description",
       "What checks saw on the node, what probes came to and what the audit log holds."},
      {"start", FormatTime(head.when)},
      {"end", FormatTime(head.when)},
      {"reviewed-controls", JsonObject{{"control-selections", JsonArray{std::move(selection)}}}}};
  JsonArray observations = builder.TakeObservations();
  result["local-definitions"] = JsonObject{{"components", builder.Components()}};
  if (!observations.empty()) {
    result["observations"] = std::move(observations);
  }
  if (!risks.empty()) {
    result["risks"] = std::move(risks);
  }
  if (!findings.empty()) {
    result["findings"] = std::move(findings);
  }
  if (!left_out.empty()) {
    result["remarks"] = "Not assessed by the tool, a person must show these: " + left_out;
  }
  return result;
}

}  // namespace

std::string OscalControlId(const Framework& framework, const ControlSpec& control) {
  std::string id = framework.prefix == "nist" ? "" : framework.prefix + "-";
  for (const char c : control.id) {
    if (c == '(') {
      id += '_';
    } else if (c != ')') {
      id += c;
    }
  }
  return id;
}

bool IsSatisfied(const ControlStatus& status) {
  if (status.state != ControlState::kConfigured) {
    return status.state == ControlState::kProven;
  }
  const bool wants_proof =
      !status.probes.empty() ||
      std::any_of(status.audit.begin(), status.audit.end(),
                  [](const ControlStatus::Audit& audit) { return audit.query.proof; });
  const auto count = [&](Standing standing) {
    return std::count_if(status.checks.begin(), status.checks.end(),
                         [standing](const CheckResult* one) { return one->standing == standing; });
  };
  return !wants_proof && count(Standing::kPass) > 0 && count(Standing::kUnknown) == 0;
}

std::string OscalAssessmentResults(const std::vector<FrameworkStatus>& statuses,
                                   const Evidence& evidence, const ReportHead& head) {
  OscalBuilder builder(evidence, head);
  JsonArray results;
  for (const FrameworkStatus& framework : statuses) {
    results.push_back(ResultOf(builder, framework, head));
  }
  const std::string plan = builder.Id("plan");
  const Json document = JsonObject{
      {"assessment-results",
       JsonObject{{"uuid", builder.Id("assessment-results")},
                  {"metadata", builder.Metadata("Assessment results")},
                  {"import-ap", JsonObject{{"href", "#" + plan}}},
                  {"results", std::move(results)},
                  {"back-matter",
                   JsonObject{{"resources",
                               JsonArray{JsonObject{
                                   {"uuid", plan},
                                   {"title", "Plan"},
                                   {"description",
                                    "All checks, probes and audit queries that Ringfence has for "
                                    "the controls; docs/compliance.md says how they count."},
                                   {"rlinks",
                                    JsonArray{JsonObject{{"href", "docs/compliance.md"}}}}}}}}}}}};
  return PrettyJson(document) + "\n";
}

std::string OscalPoam(const std::vector<FrameworkStatus>& statuses, const Evidence& evidence,
                      const ReportHead& head) {
  OscalBuilder builder(evidence, head);
  JsonArray items;
  JsonArray risks;
  for (const FrameworkStatus& framework : statuses) {
    for (const ControlStatus& status : framework.controls) {
      if (status.state != ControlState::kFailing) {
        continue;
      }
      const std::string id = OscalControlId(*framework.framework, *status.control);
      const JsonArray observations = builder.Observe(status);
      risks.push_back(builder.Risk(id, status, observations));
      items.push_back(JsonObject{
          {"uuid", builder.Id("poam-item/" + id)},
          {"title", OscalLine(id + " " + status.control->title)},
          {"description", OscalLine(status.why)},
          {"props", JsonArray{OscalBuilder::Property("control", id)}},
          {"related-observations", observations},
          {"related-risks", JsonArray{JsonObject{{"risk-uuid", builder.Id("risk/" + id)}}}}});
    }
  }
  if (items.empty()) {
    items.push_back(JsonObject{{"uuid", builder.Id("poam-item/none")},
                               {"title", "No control is failing"},
                               {"description",
                                "No check failed and no probe got through. Controls that are not "
                                "proven are in the assessment results."}});
  }
  JsonObject poam{{"uuid", builder.Id("poam")},
                  {"metadata", builder.Metadata("Plan of action and milestones")},
                  {"system-id", JsonObject{{"identifier-type", "https://ietf.org/rfc/rfc4122"},
                                           {"id", builder.Id("system")}}},
                  {"poam-items", std::move(items)}};
  JsonArray observations = builder.TakeObservations();
  poam["local-definitions"] = JsonObject{{"components", builder.Components()}};
  if (!observations.empty()) {
    poam["observations"] = std::move(observations);
  }
  if (!risks.empty()) {
    poam["risks"] = std::move(risks);
  }
  const Json document = JsonObject{{"plan-of-action-and-milestones", std::move(poam)}};
  return PrettyJson(document) + "\n";
}

}  // namespace ringfence::assure

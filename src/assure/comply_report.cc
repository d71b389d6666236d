#include "assure/comply_report.h"

#include <algorithm>

namespace ringfence::assure {
namespace {

std::string KeyOf(ControlState state) {
  std::string key(Name(state));
  std::replace(key.begin(), key.end(), ' ', '_');
  return key;
}

JsonArray ProbesJson(const ControlStatus& status) {
  JsonArray probes;
  for (const ControlStatus::Probe& probe : status.probes) {
    JsonArray results;
    for (const ProbeEvidence& one : probe.results) {
      results.push_back(JsonObject{{"node", one.node},
                                   {"result", one.result},
                                   {"why", one.why},
                                   {"time", FormatTime(one.time)},
                                   {"attack", one.attack},
                                   {"control", one.control},
                                   {"simulated", one.simulated}});
    }
    probes.push_back(JsonObject{{"name", probe.name}, {"results", std::move(results)}});
  }
  return probes;
}

JsonArray AuditJson(const ControlStatus& status) {
  JsonArray queries;
  for (const ControlStatus::Audit& audit : status.audit) {
    JsonObject one{
        {"action", audit.query.action}, {"shows", audit.query.shows}, {"proof", audit.query.proof}};
    if (audit.newest.has_value()) {
      one["newest"] = JsonObject{{"index", audit.newest->index},
                                 {"time", FormatTime(audit.newest->time)},
                                 {"proven", audit.newest->proven},
                                 {"node", audit.newest->node},
                                 {"principal", audit.newest->principal}};
    }
    queries.push_back(std::move(one));
  }
  return queries;
}

}  // namespace

Json ControlJson(const ControlStatus& status) {
  const ControlSpec& control = *status.control;
  JsonArray checks;
  for (const CheckResult* result : status.checks) {
    checks.push_back(JsonObject{{"id", result->check->id},
                                {"result", std::string(Name(result->standing))},
                                {"severity", result->check->severity()},
                                {"seen", result->why},
                                {"excepted_by", result->excepted_by}});
  }
  JsonObject object{{"id", control.id},
                    {"framework", control.framework},
                    {"title", control.title},
                    {"baseline", control.baseline},
                    {"mapped", control.mapped},
                    {"status", KeyOf(status.state)},
                    {"why", status.why},
                    {"accepted", status.accepted},
                    {"person", control.person},
                    {"checks", std::move(checks)},
                    {"probes", ProbesJson(status)},
                    {"audit", AuditJson(status)}};
  if (status.proven_at.has_value()) {
    object["proven_at"] = FormatTime(*status.proven_at);
  }
  return object;
}

Json ComplianceJson(const std::vector<FrameworkStatus>& statuses, const Evidence& evidence,
                    const ReportHead& head) {
  JsonArray frameworks;
  for (const FrameworkStatus& status : statuses) {
    JsonObject counts;
    for (const ControlState state : kControlStates) {
      counts[KeyOf(state)] = status.Count(state);
    }
    JsonArray controls;
    for (const ControlStatus& one : status.controls) {
      controls.push_back(ControlJson(one));
    }
    frameworks.push_back(JsonObject{{"id", status.framework->id},
                                    {"title", status.framework->title},
                                    {"counts", std::move(counts)},
                                    {"controls", std::move(controls)}});
  }
  return JsonObject{{"node", head.node},
                    {"root", head.root},
                    {"when", FormatTime(head.when)},
                    {"fresh", FormatDuration(evidence.fresh)},
                    {"server_asked", evidence.no_server.empty()},
                    {"frameworks", std::move(frameworks)}};
}

}  // namespace ringfence::assure

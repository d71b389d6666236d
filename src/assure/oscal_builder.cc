#include "assure/oscal_builder.h"

#include <algorithm>

#include "base/encoding.h"

namespace ringfence::assure {

std::string OscalLine(std::string_view text) {
  std::string out;
  const bool utf8 = IsUtf8(text);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? ' ' : byte >= 0x80 && !utf8 ? '?' : c;
  }
  const std::size_t first = out.find_first_not_of(' ');
  if (first == std::string::npos) {
    return "-";
  }
  return out.substr(first, out.find_last_not_of(' ') - first + 1);
}

OscalBuilder::OscalBuilder(const Evidence& evidence, const ReportHead& head)
    : evidence_(evidence),
      head_(head),
      node_namespace_(crypto::NameUuid(crypto::NameUuid(crypto::kUrlNamespace, kOscalNamespace),
                                       "node/" + head.node)) {}

std::string OscalBuilder::Id(std::string_view name) const {
  return crypto::FormatUuid(crypto::NameUuid(node_namespace_, name));
}

JsonObject OscalBuilder::Property(std::string_view name, std::string_view value) {
  return {{"name", std::string(name)},
          {"ns", std::string(kOscalNamespace)},
          {"value", OscalLine(value)}};
}

Json OscalBuilder::Metadata(std::string_view title) const {
  return JsonObject{{"title", OscalLine(std::string(title) + " of " + head_.node)},
                    {"last-modified", FormatTime(head_.when)},
                    {"version", FormatTime(head_.when)},
                    {"oscal-version", std::string(kOscalVersion)}};
}

JsonArray OscalBuilder::Origins() const {
  return {
      JsonObject{{"actors", JsonArray{JsonObject{{"type", "tool"}, {"actor-uuid", Id("tool")}}}}}};
}

JsonArray OscalBuilder::Subjects(const std::string& node) {
  nodes_.insert(node);
  return {JsonObject{{"subject-uuid", Id("component/" + node)}, {"type", "component"}}};
}

JsonArray OscalBuilder::Components() const {
  const JsonObject operational{{"state", "operational"}};
  JsonArray components{JsonObject{
      {"uuid", Id("tool")},
      {"type", "software"},
      {"title", "Ringfence"},
      {"description",
       "The program that ran the checks and probes, version " + std::string(RINGFENCE_VERSION)},
      {"status", operational}}};
  for (const std::string& node : nodes_) {
    components.push_back(JsonObject{{"uuid", Id("component/" + node)},
                                    {"type", "hardware"},
                                    {"title", OscalLine(node)},
                                    {"description", "A machine of the cluster"},
                                    {"status", operational}});
  }
  return components;
}

bool OscalBuilder::Refer(const std::string& uuid, JsonArray& references) {
  references.push_back(JsonObject{{"observation-uuid", uuid}});
  return made_.insert(uuid).second;
}

void OscalBuilder::ObserveCheck(const CheckResult& result, JsonArray& references) {
  const CheckSpec& check = *result.check;
  const std::string uuid = Id("observation/check/" + check.id);
  if (!Refer(uuid, references)) {
    return;
  }
  JsonArray evidence;
  for (const Observation& seen : result.evidence) {
    evidence.push_back(JsonObject{{"description", OscalLine(seen.where + ": " + seen.value)}});
  }
  JsonObject observation{
      {"uuid", uuid},
      {"title", OscalLine(check.title)},
      {"description", OscalLine(result.why)},
      {"props", JsonArray{Property("check", check.id), Property("result", Name(result.standing)),
                          Property("severity", check.severity())}},
      {"methods", JsonArray{"EXAMINE"}},
      {"types", JsonArray{result.standing == Standing::kFail ? "finding" : "control-objective"}},
      {"origins", Origins()},
      {"subjects", Subjects(head_.node)},
      {"collected", FormatTime(head_.when)}};
  if (!evidence.empty()) {
    observation["relevant-evidence"] = std::move(evidence);
  }
  observations_.push_back(std::move(observation));
}

void OscalBuilder::ObserveProbe(const std::string& probe, const ProbeEvidence& result,
                                JsonArray& references) {
  const std::string uuid = Id("observation/probe/" + probe + "/" + result.node);
  if (!Refer(uuid, references)) {
    return;
  }
  JsonObject observation{
      {"uuid", uuid},
      {"title", OscalLine("Probe " + probe + " on " + result.node)},
      {"description", OscalLine("The attack " +
                                (result.result == "held"     ? std::string("was held")
                                 : result.result == "leaked" ? "got through"
                                                             : "could not be tried") +
                                (result.why.empty() ? "" : ": " + result.why))},
      {"props", JsonArray{Property("probe", probe), Property("result", result.result),
                          Property("simulated-gpus", result.simulated ? "yes" : "no")}},
      {"methods", JsonArray{"TEST"}},
      {"types", JsonArray{result.result == "leaked" ? "finding" : "control-objective"}},
      {"origins", Origins()},
      {"subjects", Subjects(result.node)},
      {"collected", FormatTime(result.time)},
      {"expires", FormatTime(result.time + evidence_.fresh)}};
  if (!result.attack.empty()) {
    observation["relevant-evidence"] = JsonArray{JsonObject{
        {"description", OscalLine("Lease " + result.attack + " tried it, lease " + result.control +
                                  " was its control; both endings are "
                                  "signed by the node")}}};
  }
  observations_.push_back(std::move(observation));
}

void OscalBuilder::ObserveAudit(const ControlStatus::Audit& audit, JsonArray& references) {
  if (!audit.newest.has_value()) {
    return;
  }
  const AuditEvidence& newest = *audit.newest;
  const std::string uuid = Id("observation/audit/" + audit.query.action);
  if (!Refer(uuid, references)) {
    return;
  }
  const std::string index = std::to_string(newest.index);
  JsonObject observation{
      {"uuid", uuid},
      {"title", OscalLine("Audit entries of " + audit.query.action)},
      {"description", OscalLine("The newest of them is entry " + index +
                                (newest.proven ? ", which a signed checkpoint covers"
                                               : ", which no signed checkpoint covers yet"))},
      {"props", JsonArray{Property("action", audit.query.action), Property("audit-index", index)}},
      {"methods", JsonArray{"EXAMINE"}},
      {"types", JsonArray{"control-objective"}},
      {"origins", Origins()},
      {"relevant-evidence",
       JsonArray{JsonObject{{"description", "`ringfence audit prove " + index +
                                                "` gives a proof that can be checked offline"}}}},
      {"collected", FormatTime(newest.time)}};
  observations_.push_back(std::move(observation));
}

JsonArray OscalBuilder::Observe(const ControlStatus& status) {
  JsonArray references;
  for (const CheckResult* result : status.checks) {
    if (result->standing != Standing::kNotApplicable) {
      ObserveCheck(*result, references);
    }
  }
  for (const ControlStatus::Probe& probe : status.probes) {
    for (const ProbeEvidence& result : probe.results) {
      ObserveProbe(probe.name, result, references);
    }
  }
  for (const ControlStatus::Audit& audit : status.audit) {
    ObserveAudit(audit, references);
  }
  return references;
}

JsonArray OscalBuilder::TakeObservations() {
  made_.clear();
  return std::exchange(observations_, {});
}

JsonObject OscalBuilder::Risk(const std::string& control_id, const ControlStatus& status,
                              const JsonArray& observations) const {
  int worst = 0;
  std::string causes;
  JsonArray remediations;
  std::string accepted;
  for (const CheckResult* result : status.checks) {
    if (result->standing != Standing::kFail) {
      continue;
    }
    worst = std::max(worst, result->check->risk());
    causes += (causes.empty() ? "" : " ") + result->check->why;
    remediations.push_back(
        JsonObject{{"uuid", Id("remediation/" + control_id + "/" + result->check->id)},
                   {"lifecycle", "recommendation"},
                   {"title", OscalLine(result->check->title)},
                   {"description", OscalLine(result->check->fix)}});
    if (!result->excepted_by.empty()) {
      accepted += (accepted.empty() ? "" : "; ") + result->check->id + ": " + result->excepted_by +
                  ": " + result->reason;
    }
  }
  for (const ControlStatus::Probe& probe : status.probes) {
    for (const ProbeEvidence& result : probe.results) {
      if (result.result == "leaked") {
        worst = 25;
        causes += (causes.empty() ? "" : " ") +
                  ("The attack " + probe.name + " got through on " + result.node + ".");
      }
    }
  }
  JsonObject risk{{"uuid", Id("risk/" + control_id)},
                  {"title", OscalLine(control_id + " " + status.control->title + " is failing")},
                  {"description", OscalLine(status.why)},
                  {"statement", OscalLine(causes)},
                  {"status", status.accepted ? "deviation-approved" : "open"},
                  {"origins", Origins()},
                  {"characterizations",
                   JsonArray{JsonObject{
                       {"origin", Origins().at(0)},
                       {"facets", JsonArray{JsonObject{{"name", "severity"},
                                                       {"system", std::string(kOscalNamespace)},
                                                       {"value", RiskSeverity(worst)}}}}}}},
                  {"related-observations", observations}};
  if (!remediations.empty()) {
    risk["remediations"] = std::move(remediations);
  }
  if (!accepted.empty()) {
    risk["props"] = JsonArray{Property("accepted", accepted)};
  }
  return risk;
}

}  // namespace ringfence::assure

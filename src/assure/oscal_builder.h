#pragma once

// Pieces of OSCAL documents, shared by those that write one.

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "assure/comply_report.h"
#include "base/json.h"
#include "crypto/name_uuid.h"

namespace ringfence::assure {

inline constexpr std::string_view kOscalVersion = "1.1.2";
inline constexpr std::string_view kOscalNamespace = "https://ringfence.dev/ns/oscal";

// One line without blanks around it and in UTF-8, as OSCAL's strings want it; never empty.
std::string OscalLine(std::string_view text);

class OscalBuilder {
 public:
  // All must outlive this.
  OscalBuilder(const Evidence& evidence, const ReportHead& head);

  // The name-based UUID of something about this node.
  std::string Id(std::string_view name) const;
  Json Metadata(std::string_view title) const;
  // The components that observations speak about, and the tool; call last.
  JsonArray Components() const;
  JsonArray Origins() const;

  // The observations of a control's evidence, each made once; their references.
  JsonArray Observe(const ControlStatus& status);
  JsonArray TakeObservations();
  // Of a control that fails. `observations` as Observe gave them.
  JsonObject Risk(const std::string& control_id, const ControlStatus& status,
                  const JsonArray& observations) const;
  static JsonObject Property(std::string_view name, std::string_view value);

 private:
  JsonArray Subjects(const std::string& node);
  void ObserveCheck(const CheckResult& result, JsonArray& references);
  void ObserveProbe(const std::string& probe, const ProbeEvidence& result, JsonArray& references);
  void ObserveAudit(const ControlStatus::Audit& audit, JsonArray& references);
  // Whether it is new.
  bool Refer(const std::string& uuid, JsonArray& references);

  const Evidence& evidence_;
  const ReportHead& head_;
  crypto::Uuid node_namespace_;
  std::set<std::string> nodes_;
  std::set<std::string> made_;
  JsonArray observations_;
};

}  // namespace ringfence::assure

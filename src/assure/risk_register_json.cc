// The register's file, and the documents that it is fed from.

#include <algorithm>

#include "assure/risk_register.h"

namespace ringfence::assure {
namespace {

constexpr std::string_view kFormat = "ringfence-risk-1";
constexpr std::size_t kTextMax = 4'096;
constexpr std::size_t kNameMax = 128;
constexpr std::size_t kProofsMax = 500;
constexpr std::int64_t kRiskSumMax = std::int64_t{1} << 40U;

Error Wrong(const std::string& what) { return {Code::kInvalidArgument, what}; }

Result<Timestamp> ReadTime(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(const std::string text, reader.String(name, 40));
  auto time = ParseTime(text);
  if (!time.has_value()) {
    return Wrong(reader.Path(name) + ": \"" + text + "\" is no time");
  }
  return *time;
}

// Names are part of ids, "NODE/CHECK".
Result<std::string> ReadName(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(std::string text, reader.String(name, kNameMax));
  if (text.empty() || text.find('/') != std::string::npos) {
    return Wrong(reader.Path(name) + ": a name, without /");
  }
  return text;
}

Result<Standing> ReadStandingName(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(const std::string text, reader.String(name, 32));
  for (const Standing standing :
       {Standing::kPass, Standing::kFail, Standing::kUnknown, Standing::kNotApplicable}) {
    if (text == Name(standing)) {
      return standing;
    }
  }
  return Wrong(reader.Path(name) + ": \"" + text + "\" is no result of a check");
}

Result<RiskFinding> ReadFinding(JsonReader& reader, std::string_view id_name) {
  RiskFinding finding;
  RINGFENCE_ASSIGN(finding.check, ReadName(reader, id_name));
  RINGFENCE_ASSIGN(finding.title, reader.String("title", kTextMax));
  RINGFENCE_ASSIGN(finding.area, reader.String("class", kNameMax));
  RINGFENCE_ASSIGN(finding.standing, ReadStandingName(reader, "result"));
  RINGFENCE_ASSIGN(const auto likelihood, reader.Int("likelihood", 1, 5));
  RINGFENCE_ASSIGN(const auto impact, reader.Int("impact", 1, 5));
  RINGFENCE_ASSIGN(const auto effort, reader.IntOr("effort", 2, 1, 3));
  RINGFENCE_ASSIGN(finding.seen, reader.StringOr("seen", "", kTextMax));
  RINGFENCE_ASSIGN(finding.fix, reader.StringOr("fix", "", kTextMax));
  RINGFENCE_ASSIGN(finding.command, reader.StringOr("command", "", kTextMax));
  finding.likelihood = static_cast<int>(likelihood);
  finding.impact = static_cast<int>(impact);
  finding.effort = static_cast<int>(effort);
  return finding;
}

Result<Exposure> ReadExposure(const Json& value, const std::string& where) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(value, where));
  Exposure exposure;
  if (reader.Has("tenants")) {
    RINGFENCE_ASSIGN(const auto tenants, reader.Int("tenants", 0, 100'000));
    exposure.tenants = static_cast<int>(tenants);
  }
  RINGFENCE_ASSIGN(exposure.classification, reader.StringOr("classification", "", 32));
  if (!exposure.classification.empty() && !KnownClassification(exposure.classification)) {
    return Wrong(reader.Path("classification") + ": no classification");
  }
  if (reader.Has("reachable")) {
    RINGFENCE_ASSIGN(exposure.reachable, reader.Bool("reachable"));
  }
  RINGFENCE_ASSIGN(exposure.simulated, reader.BoolOr("simulated", false));
  RINGFENCE_ASSIGN(const auto proofs, reader.Array("proofs", kProofsMax));
  RINGFENCE_TRY(reader.Finish());
  for (const Json* item : proofs) {
    RINGFENCE_ASSIGN(auto one, JsonReader::Open(*item, where + ".proofs"));
    Proof proof;
    RINGFENCE_ASSIGN(proof.probe, one.String("probe", kNameMax));
    RINGFENCE_ASSIGN(proof.result, one.String("result", 64));
    RINGFENCE_ASSIGN(proof.when, ReadTime(one, "when"));
    RINGFENCE_TRY(one.Finish());
    exposure.proofs.push_back(std::move(proof));
  }
  return exposure;
}

Json ExposureJson(const Exposure& exposure) {
  JsonArray proofs;
  for (const Proof& proof : exposure.proofs) {
    proofs.push_back(JsonObject{
        {"probe", proof.probe}, {"result", proof.result}, {"when", FormatTime(proof.when)}});
  }
  JsonObject object{{"classification", exposure.classification},
                    {"simulated", exposure.simulated},
                    {"proofs", std::move(proofs)}};
  if (exposure.tenants) {
    object["tenants"] = *exposure.tenants;
  }
  if (exposure.reachable) {
    object["reachable"] = *exposure.reachable;
  }
  return object;
}

Result<RegisterNode> ReadNode(const Json& value, const std::string& where) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(value, where));
  RegisterNode node;
  RINGFENCE_ASSIGN(node.name, ReadName(reader, "name"));
  RINGFENCE_ASSIGN(node.when, ReadTime(reader, "when"));
  RINGFENCE_ASSIGN(node.held, reader.Int("held", 0, kRiskSumMax));
  RINGFENCE_ASSIGN(const Json* exposure, reader.Any("exposure"));
  RINGFENCE_ASSIGN(node.exposure, ReadExposure(*exposure, where + ".exposure"));
  RINGFENCE_ASSIGN(const auto points, reader.Array("trend", kTrendPointsMax));
  RINGFENCE_TRY(reader.Finish());
  for (const Json* item : points) {
    RINGFENCE_ASSIGN(auto one, JsonReader::Open(*item, where + ".trend"));
    TrendPoint point;
    RINGFENCE_ASSIGN(point.when, ReadTime(one, "when"));
    RINGFENCE_ASSIGN(const auto score, one.Int("score", 0, 100));
    RINGFENCE_ASSIGN(point.lost, one.Int("lost", 0, kRiskSumMax));
    RINGFENCE_ASSIGN(point.all, one.Int("all", 0, kRiskSumMax));
    RINGFENCE_ASSIGN(const auto open, one.Int("open", 0, 1'000'000));
    RINGFENCE_TRY(one.Finish());
    point.score = static_cast<int>(score);
    point.open = static_cast<int>(open);
    node.trend.push_back(point);
  }
  return node;
}

Result<RiskDecision> ReadDecision(const Json& value, const std::string& where) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(value, where));
  RiskDecision decision;
  RINGFENCE_ASSIGN(decision.kind, reader.String("kind", 16));
  if (decision.kind != "fix" && decision.kind != "accept" && decision.kind != "transfer") {
    return Wrong(reader.Path("kind") + ": none of fix, accept, transfer");
  }
  RINGFENCE_ASSIGN(decision.owner, reader.String("owner", kNameMax));
  RINGFENCE_ASSIGN(decision.reason, reader.String("reason", kTextMax));
  RINGFENCE_ASSIGN(decision.until, ReadTime(reader, "until"));
  RINGFENCE_ASSIGN(decision.when, ReadTime(reader, "when"));
  RINGFENCE_ASSIGN(const auto risk, reader.Int("risk", 0, 25));
  RINGFENCE_TRY(reader.Finish());
  decision.risk = static_cast<int>(risk);
  return decision;
}

Result<Risk> ReadRisk(const Json& value, const std::string& where) {
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(value, where));
  Risk risk;
  RINGFENCE_ASSIGN(risk.node, ReadName(reader, "node"));
  RINGFENCE_ASSIGN(risk.finding, ReadFinding(reader, "check"));
  RINGFENCE_ASSIGN(risk.open, reader.Bool("open"));
  RINGFENCE_ASSIGN(risk.first, ReadTime(reader, "first"));
  RINGFENCE_ASSIGN(risk.last, ReadTime(reader, "last"));
  if (reader.Has("decision")) {
    RINGFENCE_ASSIGN(const Json* decision, reader.Any("decision"));
    RINGFENCE_ASSIGN(risk.decision, ReadDecision(*decision, where + ".decision"));
  }
  RINGFENCE_ASSIGN(const auto history, reader.Array("history", kRiskHistoryMax));
  RINGFENCE_TRY(reader.Finish());
  for (const Json* item : history) {
    RINGFENCE_ASSIGN(auto one, JsonReader::Open(*item, where + ".history"));
    RiskEvent event;
    RINGFENCE_ASSIGN(event.when, ReadTime(one, "when"));
    RINGFENCE_ASSIGN(event.who, one.String("who", kNameMax));
    RINGFENCE_ASSIGN(event.what, one.String("what", 2 * kTextMax));
    RINGFENCE_TRY(one.Finish());
    risk.history.push_back(std::move(event));
  }
  return risk;
}

Json NodeJson(const RegisterNode& node) {
  JsonArray trend;
  for (const TrendPoint& point : node.trend) {
    trend.push_back(JsonObject{{"when", FormatTime(point.when)},
                               {"score", point.score},
                               {"lost", point.lost},
                               {"all", point.all},
                               {"open", point.open}});
  }
  return JsonObject{{"name", node.name},
                    {"when", FormatTime(node.when)},
                    {"held", node.held},
                    {"exposure", ExposureJson(node.exposure)},
                    {"trend", std::move(trend)}};
}

Json RiskJson(const Risk& risk) {
  JsonArray history;
  for (const RiskEvent& event : risk.history) {
    history.push_back(
        JsonObject{{"when", FormatTime(event.when)}, {"who", event.who}, {"what", event.what}});
  }
  const RiskFinding& finding = risk.finding;
  JsonObject object{{"node", risk.node},
                    {"check", finding.check},
                    {"title", finding.title},
                    {"class", finding.area},
                    {"result", std::string(Name(finding.standing))},
                    {"likelihood", finding.likelihood},
                    {"impact", finding.impact},
                    {"effort", finding.effort},
                    {"seen", finding.seen},
                    {"fix", finding.fix},
                    {"command", finding.command},
                    {"open", risk.open},
                    {"first", FormatTime(risk.first)},
                    {"last", FormatTime(risk.last)},
                    {"history", std::move(history)}};
  if (!risk.decision.kind.empty()) {
    object["decision"] = JsonObject{{"kind", risk.decision.kind},
                                    {"owner", risk.decision.owner},
                                    {"reason", risk.decision.reason},
                                    {"until", FormatTime(risk.decision.until)},
                                    {"when", FormatTime(risk.decision.when)},
                                    {"risk", risk.decision.risk}};
  }
  return object;
}

}  // namespace

Result<Register> ParseRegister(std::string_view text) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kRegisterBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_ASSIGN(const std::string format, reader.String("format", 32));
  if (format != kFormat) {
    return Wrong("format: \"" + format + "\" is not " + std::string(kFormat));
  }
  RINGFENCE_ASSIGN(const auto nodes, reader.Array("nodes", kRegisterNodesMax));
  RINGFENCE_ASSIGN(const auto risks, reader.Array("risks", kRegisterRisksMax));
  RINGFENCE_TRY(reader.Finish());
  Register reg;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string where = "nodes[" + std::to_string(i) + "]";
    RINGFENCE_ASSIGN(RegisterNode node, ReadNode(*nodes[i], where));
    const std::string name = node.name;
    if (!reg.nodes.emplace(name, std::move(node)).second) {
      return Wrong(where + ".name: the node \"" + name + "\" is there twice");
    }
  }
  for (std::size_t i = 0; i < risks.size(); ++i) {
    const std::string where = "risks[" + std::to_string(i) + "]";
    RINGFENCE_ASSIGN(Risk risk, ReadRisk(*risks[i], where));
    const std::string id = risk.id();
    if (!reg.nodes.contains(risk.node)) {
      return Wrong(where + ".node: there is no node \"" + risk.node + "\"");
    }
    if (!reg.risks.emplace(id, std::move(risk)).second) {
      return Wrong(where + ": the risk \"" + id + "\" is there twice");
    }
  }
  return reg;
}

std::string RegisterText(const Register& reg) {
  JsonArray nodes;
  for (const auto& [name, node] : reg.nodes) {
    nodes.push_back(NodeJson(node));
  }
  JsonArray risks;
  for (const auto& [id, risk] : reg.risks) {
    risks.push_back(RiskJson(risk));
  }
  return PrettyJson(JsonObject{{"format", std::string(kFormat)},
                               {"nodes", std::move(nodes)},
                               {"risks", std::move(risks)}}) +
         "\n";
}

NodeFindings FindingsOf(const Assessment& assessment, const std::string& node, Timestamp when) {
  NodeFindings found{node, when, {}};
  for (const CheckResult& result : assessment.results) {
    const CheckSpec& check = *result.check;
    found.findings.push_back({check.id, check.title, check.area, result.standing, check.likelihood,
                              check.impact, check.effort, result.why.substr(0, 1'000), check.fix,
                              check.command});
  }
  return found;
}

Result<NodeFindings> ParseFindings(std::string_view text) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, kRegisterBytesMax));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  NodeFindings found;
  RINGFENCE_ASSIGN(found.node, ReadName(reader, "node"));
  RINGFENCE_ASSIGN(found.when, ReadTime(reader, "when"));
  RINGFENCE_ASSIGN(const auto results, reader.Array("results", 10'000));
  for (std::size_t i = 0; i < results.size(); ++i) {
    RINGFENCE_ASSIGN(auto one, JsonReader::Open(*results[i], "results[" + std::to_string(i) + "]"));
    RINGFENCE_ASSIGN(RiskFinding finding, ReadFinding(one, "id"));
    found.findings.push_back(std::move(finding));
  }
  return found;
}

Status ParseProofs(std::string_view text, Exposure& exposure) {
  RINGFENCE_ASSIGN(const Json json, ParseJson(text, std::size_t{4} << 20U));
  RINGFENCE_ASSIGN(auto reader, JsonReader::Open(json));
  RINGFENCE_ASSIGN(exposure.simulated, reader.BoolOr("simulated", false));
  RINGFENCE_ASSIGN(const Json* probes, reader.Any("probes"));
  const JsonObject* object = probes->if_object();
  if (object == nullptr || object->size() > kProofsMax) {
    return Wrong("probes: a map of results, as `ringfence prove -o json` prints it");
  }
  exposure.proofs.clear();
  for (const auto& member : *object) {
    const std::string name(member.key());
    RINGFENCE_ASSIGN(auto one, JsonReader::Open(member.value(), "probes." + name));
    Proof proof;
    proof.probe = name.substr(0, kNameMax);
    RINGFENCE_ASSIGN(proof.result, one.String("result", 64));
    RINGFENCE_ASSIGN(proof.when, ReadTime(one, "time"));
    exposure.proofs.push_back(std::move(proof));
  }
  return {};
}

}  // namespace ringfence::assure

#pragma once

// The register of risks: a file. What was found where, what it weighs, who answers for it, and how
// it came to be so.

#include <map>
#include <string>
#include <vector>

#include "assure/check_run.h"
#include "assure/risk.h"
#include "base/json.h"

namespace ringfence::assure {

inline constexpr std::size_t kRegisterBytesMax = std::size_t{64} << 20U;
inline constexpr std::size_t kRegisterNodesMax = 10'000;
inline constexpr std::size_t kRegisterRisksMax = 200'000;
inline constexpr std::size_t kRiskHistoryMax = 50;
inline constexpr std::size_t kTrendPointsMax = 400;
// The longest that a risk can be accepted for at once.
inline constexpr std::chrono::days kAcceptDays{366};
// How far a node's clock may be ahead of ours.
inline constexpr std::chrono::minutes kClockSkew{5};

// What a check said of a node.
struct RiskFinding {
  std::string check;
  std::string title;
  std::string area;
  Standing standing = Standing::kUnknown;
  int likelihood = 1;
  int impact = 1;
  int effort = 2;
  std::string seen;
  std::string fix;
  std::string command;
};

struct RiskDecision {
  std::string kind;  // "fix", "accept", "transfer"; empty: nobody decided
  std::string owner;
  std::string reason;  // of "transfer": to whom, and why
  Timestamp until{};   // the day by which it is mended, or to which it is accepted
  Timestamp when{};
  int risk = 0;  // at that time
};

struct RiskEvent {
  Timestamp when{};
  std::string who;
  std::string what;
};

struct Risk {
  std::string node;
  RiskFinding finding;
  bool open = true;
  Timestamp first{};
  Timestamp last{};  // seen
  RiskDecision decision;
  std::vector<RiskEvent> history;  // oldest first; the first is kept when others go

  std::string id() const { return node + "/" + finding.check; }
};

// A node's numbers at one time. Risks in halves, as a check that cannot tell counts half.
struct TrendPoint {
  Timestamp when{};
  int score = 100;
  std::int64_t lost = 0;
  std::int64_t all = 0;
  int open = 0;  // that fail
};

struct RegisterNode {
  std::string name;
  Timestamp when{};  // of its last assessment
  Exposure exposure;
  std::int64_t held = 0;  // weight of the checks that pass, in halves
  std::vector<TrendPoint> trend;
};

struct Register {
  std::map<std::string, RegisterNode> nodes;
  std::map<std::string, Risk> risks;  // by id
};

Result<Register> ParseRegister(std::string_view text);
std::string RegisterText(const Register& reg);

struct NodeFindings {
  std::string node;
  Timestamp when{};
  std::vector<RiskFinding> findings;
};
NodeFindings FindingsOf(const Assessment& assessment, const std::string& node, Timestamp when);
// A document of `ringfence assess -o json`.
Result<NodeFindings> ParseFindings(std::string_view text);
// A document of `ringfence prove -o json`.
Status ParseProofs(std::string_view text, Exposure& exposure);

struct UpdateCounts {
  int opened = 0;
  int reopened = 0;
  int closed = 0;
  int lost_sight = 0;  // failed before, and cannot be told now: stays open
};
// Brings in what was found on a node. Checks that were not run keep what is known of them.
// Assessments come in their order, and none from the future.
Result<UpdateCounts> UpdateRegister(Register& reg, const RiskModel& model,
                                    const NodeFindings& found, const Exposure& exposure,
                                    Timestamp now);

Weighed WeighRisk(const Register& reg, const RiskModel& model, const Risk& risk, Timestamp now);
// In halves: a failure counts whole, one that cannot be told half, one that is closed nothing.
std::int64_t LostBy(const Risk& risk, const Weighed& weighed);

enum class Footing { kUndecided, kFix, kOverdue, kAccepted, kLapsed, kTransferred };
std::string_view Name(Footing footing);
// What its decision is worth now. An acceptance lapses after its day, and when the risk has grown.
Footing FootingOf(const Risk& risk, const Weighed& weighed, Timestamp now);

Status Decide(Register& reg, const RiskModel& model, const std::string& id, RiskDecision decision,
              Timestamp now);

struct NodeScore {
  std::string node;
  std::int64_t held = 0;
  std::int64_t lost = 0;
  std::int64_t all = 0;
  int open = 0;
  int doubtful = 0;
  int score() const { return ScoreOf(lost, all); }
};
NodeScore ScoreNode(const Register& reg, const RiskModel& model, const RegisterNode& node,
                    Timestamp now);
std::vector<NodeScore> ScoreNodes(const Register& reg, const RiskModel& model, Timestamp now);
NodeScore ScoreFleet(const std::vector<NodeScore>& nodes);

// The same mending on each node that needs it.
struct Mending {
  const RiskFinding* finding = nullptr;
  int nodes = 0;
  int risk = 0;   // taken away, of all nodes
  int score = 0;  // of the fleet afterwards, when those before it are done too
};
// By risk taken away for the effort; accepted and transferred ones are not among them.
std::vector<Mending> TopMendings(const Register& reg, const RiskModel& model, Timestamp now,
                                 std::size_t most);

struct Heat {
  int cells[5][5] = {};  // [likelihood-1][impact-1]: open failures
};
Heat HeatOf(const Register& reg, const RiskModel& model, Timestamp now);

// A page of its own, without scripts, that prints well.
std::string RiskHtml(const Register& reg, const RiskModel& model, Timestamp now);

}  // namespace ringfence::assure

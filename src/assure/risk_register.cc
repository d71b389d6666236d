#include "assure/risk_register.h"

#include <algorithm>

namespace ringfence::assure {
namespace {

// The first entry says how it began, so it stays; the oldest of the others go.
void Note(Risk& risk, Timestamp when, const std::string& who, const std::string& what) {
  if (risk.history.size() >= kRiskHistoryMax) {
    risk.history.erase(risk.history.begin() + 1);
  }
  risk.history.push_back({when, who, what});
}

constexpr char kAssessment[] = "assessment";

bool Counts(Standing standing) {
  return standing == Standing::kFail || standing == Standing::kUnknown;
}

class Update {
 public:
  Update(Register& reg, const RiskModel& model, const NodeFindings& found)
      : reg_(reg), model_(model), found_(found) {}

  Result<UpdateCounts> Run(const Exposure& exposure) {
    RegisterNode& node = reg_.nodes[found_.node];
    node.name = found_.node;
    node.when = found_.when;
    node.exposure = exposure;
    node.held = 0;
    for (const RiskFinding& finding : found_.findings) {
      Take(finding);
      if (finding.standing == Standing::kPass) {
        node.held +=
            2 * Weigh(model_,
                      {finding.check, finding.area, finding.likelihood, finding.impact, false},
                      exposure, found_.when)
                    .risk();
      }
    }
    if (reg_.risks.size() > kRegisterRisksMax || reg_.nodes.size() > kRegisterNodesMax) {
      return Error{Code::kExhausted, "the register holds too many nodes or risks",
                   "keep a register for each part of the fleet: --register FILE"};
    }
    AddPoint(node);
    return counts_;
  }

 private:
  void Take(const RiskFinding& finding) {
    const std::string id = found_.node + "/" + finding.check;
    const auto known = reg_.risks.find(id);
    if (known == reg_.risks.end()) {
      if (Counts(finding.standing)) {
        Risk risk;
        risk.node = found_.node;
        risk.finding = finding;
        risk.first = risk.last = found_.when;
        Note(risk, found_.when, kAssessment,
             "opened: " + std::string(Name(finding.standing)) + ": " + finding.seen);
        reg_.risks.emplace(id, std::move(risk));
        counts_.opened += finding.standing == Standing::kFail ? 1 : 0;
      }
      return;
    }
    Refresh(known->second, finding);
  }

  void Refresh(Risk& risk, const RiskFinding& finding) {
    const bool failed_before = risk.open && risk.finding.standing == Standing::kFail;
    if (!Counts(finding.standing)) {
      if (risk.open) {
        counts_.closed += failed_before ? 1 : 0;
        Note(risk, found_.when, kAssessment,
             "closed: " + std::string(Name(finding.standing)) + ": " + finding.seen);
      }
      risk.open = false;
      risk.finding = finding;
      risk.decision = {};
      return;
    }
    risk.last = found_.when;
    if (failed_before && finding.standing == Standing::kUnknown) {
      // Blindness is no proof that it was mended.
      ++counts_.lost_sight;
      if (risk.history.empty() ||
          risk.history.back().what != "cannot be told any more: " + finding.seen) {
        Note(risk, found_.when, kAssessment, "cannot be told any more: " + finding.seen);
      }
      return;
    }
    if (!risk.open) {
      counts_.reopened += finding.standing == Standing::kFail ? 1 : 0;
      Note(risk, found_.when, kAssessment,
           "opened again: " + std::string(Name(finding.standing)) + ": " + finding.seen);
    } else if (!failed_before && finding.standing == Standing::kFail) {
      ++counts_.opened;
      Note(risk, found_.when, kAssessment, "seen to fail: " + finding.seen);
    }
    risk.open = true;
    risk.finding = finding;
  }

  void AddPoint(RegisterNode& node) {
    const NodeScore own = ScoreNode(reg_, model_, node, found_.when);
    if (node.trend.size() >= kTrendPointsMax) {
      node.trend.erase(node.trend.begin());
    }
    node.trend.push_back({found_.when, own.score(), own.lost, own.all, own.open});
  }

  Register& reg_;
  const RiskModel& model_;
  const NodeFindings& found_;
  UpdateCounts counts_;
};

}  // namespace

Result<UpdateCounts> UpdateRegister(Register& reg, const RiskModel& model,
                                    const NodeFindings& found, const Exposure& exposure,
                                    Timestamp now) {
  if (found.node.empty() || found.node.find('/') != std::string::npos || found.node.size() > 128) {
    return Error{Code::kInvalidArgument, "\"" + found.node + "\" is no name of a node",
                 "name it: --node NAME"};
  }
  // Taken in, it would be the newest until its day has come.
  if (found.when > now + kClockSkew) {
    return Error{Code::kInvalidArgument,
                 "the assessment of " + found.node + " is of " + FormatTime(found.when) +
                     ", which is to come",
                 "set that node's clock right, and assess it again"};
  }
  const auto known = reg.nodes.find(found.node);
  if (known != reg.nodes.end() && found.when < known->second.when &&
      known->second.when <= now + kClockSkew) {
    return Error{
        Code::kFailedPrecondition,
        found.node + " was assessed later than this already, at " + FormatTime(known->second.when),
        "bring in assessments in their order"};
  }
  return Update(reg, model, found).Run(exposure);
}

Weighed WeighRisk(const Register& reg, const RiskModel& model, const Risk& risk, Timestamp now) {
  const auto node = reg.nodes.find(risk.node);
  return Weigh(model,
               {risk.finding.check, risk.finding.area, risk.finding.likelihood, risk.finding.impact,
                risk.decision.kind == "transfer"},
               node == reg.nodes.end() ? Exposure{} : node->second.exposure, now);
}

std::int64_t LostBy(const Risk& risk, const Weighed& weighed) {
  return !risk.open                                 ? 0
         : risk.finding.standing == Standing::kFail ? 2 * weighed.risk()
                                                    : weighed.risk();
}

std::string_view Name(Footing footing) {
  switch (footing) {
    case Footing::kUndecided:
      return "undecided";
    case Footing::kFix:
      return "to be fixed";
    case Footing::kOverdue:
      return "overdue";
    case Footing::kAccepted:
      return "accepted";
    case Footing::kLapsed:
      return "acceptance lapsed";
    case Footing::kTransferred:
      return "transferred";
  }
  return "undecided";
}

Footing FootingOf(const Risk& risk, const Weighed& weighed, Timestamp now) {
  const RiskDecision& decision = risk.decision;
  if (decision.kind == "fix") {
    return now > decision.until ? Footing::kOverdue : Footing::kFix;
  }
  if (decision.kind == "accept") {
    return now > decision.until || weighed.risk() > decision.risk ? Footing::kLapsed
                                                                  : Footing::kAccepted;
  }
  return decision.kind == "transfer" ? Footing::kTransferred : Footing::kUndecided;
}

Status Decide(Register& reg, const RiskModel& model, const std::string& id, RiskDecision decision,
              Timestamp now) {
  const auto found = reg.risks.find(id);
  if (found == reg.risks.end()) {
    return Error{Code::kNotFound, "there is no risk \"" + id + "\"",
                 "`ringfence risk list` shows them"};
  }
  Risk& risk = found->second;
  if (!risk.open) {
    return Error{Code::kFailedPrecondition, id + " is closed: there is nothing to decide"};
  }
  const bool dated = decision.kind != "transfer";
  if (dated && decision.until <= now) {
    return Error{Code::kInvalidArgument, "the day is over", "choose one that is to come", "until"};
  }
  if (decision.kind == "accept" && decision.until - now > kAcceptDays) {
    return Error{Code::kInvalidArgument, "a risk is accepted for a year at most",
                 "choose an earlier day, and look at it again then", "until"};
  }
  decision.when = now;
  decision.risk = WeighRisk(reg, model, risk, now).risk();
  Note(risk, now, decision.owner,
       decision.kind + (dated ? " until " + FormatTime(decision.until).substr(0, 10) : "") +
           " at risk " + std::to_string(decision.risk) +
           (decision.reason.empty() ? "" : ": " + decision.reason));
  risk.decision = std::move(decision);
  return {};
}

}  // namespace ringfence::assure

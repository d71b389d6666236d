// What the register comes to: scores, the heat map, and what to do first.

#include <algorithm>

#include "assure/risk_register.h"

namespace ringfence::assure {

NodeScore ScoreNode(const Register& reg, const RiskModel& model, const RegisterNode& node,
                    Timestamp now) {
  NodeScore score;
  score.node = node.name;
  score.held = node.held;
  score.all = node.held;
  const std::string prefix = node.name + "/";
  for (auto at = reg.risks.lower_bound(prefix);
       at != reg.risks.end() && at->first.starts_with(prefix); ++at) {
    const Risk& risk = at->second;
    if (!risk.open) {
      continue;
    }
    const Weighed weighed = WeighRisk(reg, model, risk, now);
    score.lost += LostBy(risk, weighed);
    score.all += 2 * weighed.risk();
    const bool fails = risk.finding.standing == Standing::kFail;
    score.open += fails ? 1 : 0;
    score.doubtful += fails ? 0 : 1;
  }
  return score;
}

std::vector<NodeScore> ScoreNodes(const Register& reg, const RiskModel& model, Timestamp now) {
  std::vector<NodeScore> list;
  for (const auto& [name, node] : reg.nodes) {
    list.push_back(ScoreNode(reg, model, node, now));
  }
  return list;
}

NodeScore ScoreFleet(const std::vector<NodeScore>& nodes) {
  NodeScore fleet;
  fleet.node = "fleet";
  for (const NodeScore& node : nodes) {
    fleet.held += node.held;
    fleet.lost += node.lost;
    fleet.all += node.all;
    fleet.open += node.open;
    fleet.doubtful += node.doubtful;
  }
  return fleet;
}

std::vector<Mending> TopMendings(const Register& reg, const RiskModel& model, Timestamp now,
                                 std::size_t most) {
  std::map<std::string, Mending> by_check;
  for (const auto& [id, risk] : reg.risks) {
    if (!risk.open || risk.finding.standing != Standing::kFail) {
      continue;
    }
    const Weighed weighed = WeighRisk(reg, model, risk, now);
    const Footing footing = FootingOf(risk, weighed, now);
    if (footing == Footing::kAccepted || footing == Footing::kTransferred) {
      continue;
    }
    Mending& mending = by_check[risk.finding.check];
    mending.finding = &risk.finding;
    ++mending.nodes;
    mending.risk += weighed.risk();
  }
  std::vector<Mending> list;
  for (const auto& [check, mending] : by_check) {
    list.push_back(mending);
  }
  // Effort is spent on each node, so the quotient is that of the mean risk.
  std::stable_sort(list.begin(), list.end(), [](const Mending& a, const Mending& b) {
    const std::int64_t left = std::int64_t{a.risk} * b.nodes * b.finding->effort;
    const std::int64_t right = std::int64_t{b.risk} * a.nodes * a.finding->effort;
    return left != right ? left > right : a.risk > b.risk;
  });
  list.resize(std::min(list.size(), most));
  NodeScore fleet = ScoreFleet(ScoreNodes(reg, model, now));
  for (Mending& mending : list) {
    fleet.lost -= 2 * mending.risk;
    mending.score = fleet.score();
  }
  return list;
}

Heat HeatOf(const Register& reg, const RiskModel& model, Timestamp now) {
  Heat heat;
  for (const auto& [id, risk] : reg.risks) {
    if (risk.open && risk.finding.standing == Standing::kFail) {
      const Weighed weighed = WeighRisk(reg, model, risk, now);
      ++heat.cells[weighed.likelihood - 1][weighed.impact - 1];
    }
  }
  return heat;
}

}  // namespace ringfence::assure

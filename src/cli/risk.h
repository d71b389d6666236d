#pragma once

// What the commands of `ringfence risk` share.

#include <optional>
#include <string>
#include <vector>

#include "assure/risk_register.h"
#include "cli/command.h"

namespace ringfence::cli {

struct RiskDesk {
  std::string path;  // of the register
  assure::Register reg;
  assure::RiskModel model;
  Timestamp now{};
};
// The register must be there, but for `may_be_new`.
Result<RiskDesk> OpenRiskDesk(Invocation& invocation, bool may_be_new);
const OptionSpec& RegisterOption();
const OptionSpec& RiskModelOption();

// What is known of a node that was assessed: here, in a file, or as the server has it.
struct NodeNews {
  assure::NodeFindings found;
  std::optional<int> tenants;
  std::optional<assure::Exposure> proofs;
  bool from_fleet = false;
};
// Of every node that the server has an assessment of.
Result<std::vector<NodeNews>> FleetNews(Invocation& invocation);

std::string Halves(std::int64_t halves);

Result<int> RiskUpdate(Invocation& invocation);
Result<int> RiskAccept(Invocation& invocation);
Result<int> RiskTransfer(Invocation& invocation);
Result<int> RiskAssign(Invocation& invocation);
Result<int> RiskReport(Invocation& invocation);
Result<int> RiskList(Invocation& invocation);
Result<int> RiskShow(Invocation& invocation);
Result<int> RiskMatrix(Invocation& invocation);
Result<int> RiskTop(Invocation& invocation);
Result<int> RiskTrend(Invocation& invocation);

}  // namespace ringfence::cli

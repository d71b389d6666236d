// The table of `ringfence risk`.

#include "cli/assess.h"
#include "cli/commands.h"
#include "cli/risk.h"
#include "cli/settings.h"

namespace ringfence::cli {
namespace {

const ArgumentSpec kRiskArgument = {
    .name = "RISK", .help = "NODE/CHECK; `ringfence risk list` shows them", .repeated = true};
constexpr OptionSpec kOwner = {.name = "owner", .value = "WHO", .help = "who answers for it"};
constexpr OptionSpec kUntil = {.name = "until", .value = "DAY", .help = "a day, as 2027-01-31"};
constexpr OptionSpec kReason = {.name = "reason", .value = "TEXT", .help = "why"};
constexpr OptionSpec kNode = {
    .name = "node", .value = "NAME", .help = "only of this node", .completes = Completes::kNode};

CommandTable ViewCommands() {
  return {
      {.path = "risk list",
       .group = Group::kEvidence,
       .summary = "List the risks of the register, the greatest first.",
       .options = {kNode,
                   {.name = "all", .help = "closed ones too, and those that cannot be told"},
                   LimitOption(),
                   RegisterOption(),
                   RiskModelOption()},
       .examples = {{"ringfence risk list", "what is open"},
                    {"ringfence risk list --node gpu-7 -o json", "of one node, for a program"}},
       .handler = RiskList},
      {.path = "risk show",
       .group = Group::kEvidence,
       .summary = "Spell out the arithmetic of a risk; without one, of the scores.",
       .options = {RegisterOption(), RiskModelOption()},
       .arguments = {{.name = "RISK", .help = "NODE/CHECK, or a node", .required = false}},
       .examples = {{"ringfence risk show", "the fleet's score and each node's"},
                    {"ringfence risk show gpu-7", "a node's score, line by line"},
                    {"ringfence risk show gpu-7/ssh-root-login", "one risk, with its history"}},
       .handler = RiskShow},
      {.path = "risk matrix",
       .group = Group::kEvidence,
       .summary = "Show how many risks there are of each likelihood and impact.",
       .options = {RegisterOption(), RiskModelOption()},
       .examples = {{"ringfence risk matrix", "the heat map"}},
       .handler = RiskMatrix},
      {.path = "risk top",
       .group = Group::kEvidence,
       .summary = "Show what takes away the most risk for the least effort.",
       .options = {RegisterOption(), RiskModelOption()},
       .examples = {{"ringfence risk top", "ten things to do, and the score after each"}},
       .handler = RiskTop},
      {.path = "risk trend",
       .group = Group::kEvidence,
       .summary = "Show how the scores went.",
       .options = {kNode, RegisterOption(), RiskModelOption()},
       .examples = {{"ringfence risk trend --node gpu-7", "of one node"}},
       .handler = RiskTrend},
      {.path = "risk report",
       .group = Group::kEvidence,
       .summary = "Print the register as a page of HTML; with -o json as a document.",
       .options = {RegisterOption(), RiskModelOption()},
       .examples = {{"ringfence risk report > risk.html", "with heat map and arithmetic"}},
       .handler = RiskReport},
  };
}

}  // namespace

CommandTable RiskCommands() {
  CommandTable table = {
      {.path = "risk update",
       .group = Group::kEvidence,
       .summary = "Bring what an assessment finds into the register of risks.",
       .details =
           "Assesses this machine, takes documents of `ringfence assess -o json`, or with --fleet "
           "what\n"
           "the server holds: how many tenants had leases on the node in the last 30 days and how "
           "its\n"
           "walls stood the last attacks are then known too. A finding that passes now is closed; "
           "one\n"
           "that cannot be told any more stays open. What is said of the node is remembered until "
           "it is\n"
           "said again.",
       .options = {{.name = "fleet",
                    .help = "every node's last assessment, tenants and proofs, from the server"},
                   {.name = "node", .value = "NAME", .help = "what the node is called"},
                   {.name = "tenants", .value = "N", .help = "how many tenants work on it"},
                   {.name = "classification",
                    .value = "WORD",
                    .help = "of the data on it",
                    .completes = Completes::kWords,
                    .words = "public internal confidential restricted"},
                   {.name = "reachable",
                    .value = "yes|no",
                    .help = "from networks that are not its operator's",
                    .completes = Completes::kWords,
                    .words = "yes no"},
                   {.name = "proofs",
                    .value = "FILE",
                    .help = "what `ringfence prove --last -o json` printed",
                    .completes = Completes::kFile},
                   AssessOption("root"),
                   SettingOption(Setting::kNodeDriverRoot),
                   AssessOption("csaf"),
                   AssessOption("checks"),
                   AssessOption("class"),
                   RegisterOption(),
                   RiskModelOption()},
       .arguments = {{.name = "FILE",
                      .help = "assessments as JSON; none: this machine",
                      .required = false,
                      .repeated = true,
                      .completes = Completes::kFile}},
       .examples = {{"ringfence risk update --tenants 3 --reachable no", "this machine"},
                    {"ringfence risk update --fleet", "all nodes, as the server knows them"},
                    {"ringfence risk update gpu-*.json", "assessments that others made"}},
       .handler = RiskUpdate},
      {.path = "risk accept",
       .group = Group::kEvidence,
       .summary = "Accept risks until a day, a year at most.",
       .details = "It still counts in the score. It lapses after the day, and when the risk grows.",
       .options = {kOwner, kUntil, kReason, RegisterOption(), RiskModelOption()},
       .arguments = {kRiskArgument},
       .examples = {{"ringfence risk accept gpu-7/smt --owner ann --until 2027-01-31 --reason "
                     "'one tenant'",
                     "ann answers for it"}},
       .handler = RiskAccept},
      {.path = "risk transfer",
       .group = Group::kEvidence,
       .summary = "Note that somebody else bears the loss; the impact counts one less.",
       .options = {kOwner,
                   {.name = "to", .value = "WHOM", .help = "insurer, provider or tenant"},
                   kReason,
                   RegisterOption(),
                   RiskModelOption()},
       .arguments = {kRiskArgument},
       .examples = {{"ringfence risk transfer gpu-7/tpm --owner ann --to 'the hoster' --reason "
                     "'contract 12'",
                     ""}},
       .handler = RiskTransfer},
      {.path = "risk assign",
       .group = Group::kEvidence,
       .summary = "Give risks to somebody who mends them by a day.",
       .options = {kOwner, kUntil, kReason, RegisterOption(), RiskModelOption()},
       .arguments = {kRiskArgument},
       .examples = {{"ringfence risk assign gpu-7/ssh-root-login --owner bob --until 2026-12-01",
                     "overdue after that day"}},
       .handler = RiskAssign},
  };
  CommandTable views = ViewCommands();
  table.insert(table.end(), views.begin(), views.end());
  return table;
}

}  // namespace ringfence::cli

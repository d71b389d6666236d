#pragma once

// What `ringfence comply` and `ringfence evidence` share.

#include <memory>
#include <string>
#include <vector>

#include "assure/control_status.h"
#include "cli/api.h"
#include "cli/assess.h"
#include "cli/command.h"

namespace ringfence::cli {

// All that is known about controls; the pieces refer to each other, so it stays where it is made.
struct Dossier {
  Bench bench;
  assure::Assessment assessment;
  std::vector<assure::Framework> frameworks;
  assure::Evidence evidence;
  std::vector<assure::FrameworkStatus> statuses;
  std::string baseline_source;  // the profile's or catalog's title; empty: the shipped mapping
  // As the server answered.
  std::unique_ptr<Api> api;  // null: no server was asked
  std::vector<Json> proofs;  // of each node
};
Status Compile(Invocation& invocation, Dossier& dossier);

// The options that Compile reads, by name.
OptionSpec ComplyOption(std::string_view name);
std::vector<OptionSpec> ComplyOptions();

// `ringfence evidence ...`; ComplyCommands() ends with them.
CommandTable EvidenceCommands();

}  // namespace ringfence::cli

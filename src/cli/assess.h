#pragma once

// What `ringfence assess` and `ringfence check` share.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assure/assess_report.h"
#include "assure/check_run.h"
#include "assure/nvml_view.h"
#include "cli/command.h"
#include "cli/console.h"

namespace ringfence::cli {

// Everything that a run needs; the pieces refer to each other, so it stays where it is made.
struct Bench {
  std::vector<assure::CheckSpec> checks;
  std::unique_ptr<assure::MachineView> machine;
  assure::BulletinSet bulletins;
  std::unique_ptr<assure::AdvisoryIndex> index;
  std::vector<assure::CheckException> exceptions;
  assure::ReportHead head;
  std::optional<assure::NvmlView> nvml;  // nothing: not asked

  assure::ProbeContext Context() const {
    return {*machine, index.get(), head.when, nvml ? &*nvml : nullptr};
  }
};
std::optional<assure::NvmlView> NvmlOf(const Invocation& invocation, const std::string& root);
// Those of --checks, or those shipped.
Result<std::vector<assure::CheckSpec>> ChecksFor(const Parsed& parsed);
Status SetUp(Invocation& invocation, Bench& bench);

// The state folder is made where it is needed; a folder that somebody named must be there.
Status MakeOwnFolder(const Invocation& invocation, const std::vector<std::string>& files);

// The options of these commands, by name.
OptionSpec AssessOption(std::string_view name);

// The rank from which on a failure counts, by --fail-on; without it none does.
Result<int> FailRankOf(const Parsed& parsed);

std::string Coloured(const Console& console, assure::Standing standing, const std::string& text);
void PrintResults(Console& console, const assure::Assessment& assessment);

}  // namespace ringfence::cli

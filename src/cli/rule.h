#pragma once

// What the `ringfence rule` commands share.

#include <string>
#include <vector>

#include "cli/command.h"
#include "sigma/ruleset.h"

namespace ringfence::cli {

struct RulesRead {
  sigma::RuleSet set;
  std::vector<sigma::Problem> problems;
  std::size_t files = 0;
};

// Rules from files and folders, with the pipelines that --pipeline names.
Result<RulesRead> ReadRuleSet(const std::vector<std::string>& paths, const Parsed& parsed);
// The same, and any problem is an error that shows the first few.
Result<sigma::RuleSet> NeedRuleSet(Invocation& invocation, const std::vector<std::string>& paths);

OptionSpec PipelineOption();
CommandTable RuleMatchCommands();
CommandTable RuleViewCommands();

}  // namespace ringfence::cli

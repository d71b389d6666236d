#pragma once

// The policy folder that a command reads by itself, without a server.

#include <memory>
#include <string>

#include "cli/command.h"
#include "policy/policy.h"

namespace ringfence::cli {

// `named`, or where that is empty the setting policy.folder.
Result<std::unique_ptr<policy::Policy>> LoadPolicyFolder(const Invocation& invocation,
                                                         std::string named);
OptionSpec PolicyFolderOption();

}  // namespace ringfence::cli

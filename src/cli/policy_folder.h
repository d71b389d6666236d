#pragma once

// The policy folder that a command reads by itself, without a server.

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "policy/policy.h"

namespace ringfence::cli {

// The first argument, or policy.folder where there is none. kNotFound when it is no folder.
Result<std::string> PolicyFolderOf(const Invocation& invocation);

// `named`, or where that is empty the setting policy.folder.
Result<std::unique_ptr<policy::Policy>> LoadPolicyFolder(const Invocation& invocation,
                                                         std::string named);
OptionSpec PolicyFolderOption();

}  // namespace ringfence::cli

#pragma once

// The policy folder that a command reads by itself, without a server.

#include <map>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "cli/api.h"
#include "cli/command.h"
#include "cli/console.h"
#include "policy/policy.h"

namespace ringfence::cli {

// The first argument, or policy.folder where there is none. kNotFound when it is no folder.
Result<std::string> PolicyFolderOf(const Invocation& invocation);

// `named`, or where that is empty the setting policy.folder.
Result<std::unique_ptr<policy::Policy>> LoadPolicyFolder(const Invocation& invocation,
                                                         std::string named);
OptionSpec PolicyFolderOption();

// What --policy or --in-force says. Without either it is policy.folder, and where a server can be
// asked and has another policy in force, that is said.
Result<std::unique_ptr<policy::Policy>> LoadAskedPolicy(const Invocation& invocation);
OptionSpec InForceOption();
// From the server, parsed here.
Result<std::unique_ptr<policy::Policy>> FetchPolicyInForce(Api& api);
// The files of a version as the server tells it.
Result<std::map<std::string, std::string>> FilesOfVersion(const Json& version);

// What the validator holds to be a slip, though it is no error.
void WarnOfRules(Console& console, const policy::Policy& policy);

}  // namespace ringfence::cli

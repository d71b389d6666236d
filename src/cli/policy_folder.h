#pragma once

#include <string>

#include "base/result.h"
#include "cli/command.h"

namespace ringfence::cli {

// The first argument, or policy.folder where there is none. kNotFound when it is no folder.
Result<std::string> PolicyFolderOf(const Invocation& invocation);

}  // namespace ringfence::cli

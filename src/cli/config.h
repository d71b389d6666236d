#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/settings.h"

namespace ringfence::cli {

// `config check`: prints every finding and returns what to exit with. A wrong configuration stops
// every other command before it begins, so this one is called with what the loading found.
int ShowConfigFindings(Console& console, const Settings& settings,
                       const std::vector<Finding>& findings);

// What `config init` writes: every setting, commented out, at its default.
std::string ConfigTemplate();

}  // namespace ringfence::cli

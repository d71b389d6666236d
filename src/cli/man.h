#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace ringfence::cli {

// The manual's pages by their files' names: "ringfence.1", "ringfence-lease.1", "ringfence.yaml.5".
std::vector<std::string> ManPages(const CommandTable& table);
// The roff of one of them; empty when there is no such page.
std::string ManPage(const CommandTable& table, std::string_view page);

}  // namespace ringfence::cli

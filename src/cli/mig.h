#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/commands.h"
#include "gpu/mig_layout.h"

namespace ringfence::cli {

// What --strategy, --layout or --file with --selected-config ask of a board; of a file only what is
// for the GPU of this index, where one is given.
Result<std::vector<gpu::MigWish>> MigWishes(const Parsed& parsed, const gpu::MigBoard& board,
                                            std::optional<std::uint32_t> index = {});

// `mig apply` and `mig show`, which ask the server.
CommandTable MigFleetCommands();

}  // namespace ringfence::cli

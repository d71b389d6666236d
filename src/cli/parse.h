#pragma once

// Words to a Parsed command. Options that every command takes may stand anywhere.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace ringfence::cli {

inline constexpr std::size_t kWordsMax = 4096;

// Taken by every command: --output, --state, --help, ...
const std::vector<OptionSpec>& GlobalOptions();

// `words` are without the program's name. A wrong command line is kInvalidArgument; its `field` is
// the command as far as it was understood ("lease list"), for the usage line.
// With --help among the words, what is missing or too much is no error.
Result<Parsed> Parse(const CommandTable& table, const std::vector<std::string>& words);

const CommandSpec* FindCommand(const CommandTable& table, std::string_view path);
// The words that may follow `path` ("" for the top), without hidden ones; empty for a command.
std::vector<std::string> NextWords(const CommandTable& table, std::string_view path);
const OptionSpec* FindOption(const CommandSpec* command, std::string_view name);
const OptionSpec* FindOption(const CommandSpec* command, char letter);

}  // namespace ringfence::cli

#pragma once

// Help texts and docs/cli.md, made from the tables.

#include <string>
#include <string_view>

#include "cli/command.h"

namespace ringfence::cli {

// `ringfence --help`.
std::string TopHelp(const CommandTable& table);
// Of a command ("lease list") or of all that begin so ("lease"); empty when there is no such.
std::string HelpOf(const CommandTable& table, std::string_view path);
// "ringfence lease show [options] LEASE".
std::string UsageOf(const CommandTable& table, std::string_view path);
// What a word with several commands below it ("lease") is about.
std::string_view NounSummary(std::string_view noun);
std::string ExitCodesHelp();
std::string SettingsHelp();
// The whole of docs/cli.md.
std::string Document(const CommandTable& table);

}  // namespace ringfence::cli

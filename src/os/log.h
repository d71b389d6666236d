#pragma once

// Diagnostics, not audit: one line to standard error, a constant event name and key-values.
//   os::Log(os::Level::kWarning, "lease_output_cut", {{"lease", id}, {"bytes", "4096"}});
// More than kLogLinesPerSecond lines are counted, not written; the count is said when it ends.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace ringfence::os {

enum class Level { kDebug, kInfo, kWarning, kError };
inline constexpr int kLogLinesPerSecond = 200;

using LogField = std::pair<std::string_view, std::string>;

void SetLogLevel(Level least);
void SetLogName(std::string_view process);  // "server", "agent": the second word of each line
// Any thread. Values are quoted where they must be; control characters never reach the terminal.
void Log(Level level, std::string_view event, std::initializer_list<LogField> fields = {});

}  // namespace ringfence::os

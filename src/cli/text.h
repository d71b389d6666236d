#pragma once

// Text from elsewhere, made fit for a terminal.

#include <cstddef>
#include <string>
#include <string_view>

namespace ringfence::cli {

// What could move the cursor, change colours, reorder or hide text is written out ("\x1b",
// "\u202e"); so are bytes that are not UTF-8. Line breaks and tabs too: the result is one line.
std::string Safe(std::string_view text);
// The same, but line breaks stay: for messages of several lines.
std::string SafeLines(std::string_view text);

// Columns that safe text takes on a terminal: two for wide characters, none for combining marks.
std::size_t Columns(std::string_view safe_text);

}  // namespace ringfence::cli

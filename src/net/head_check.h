#pragma once

// What must hold of a request's head before any parser is asked about it.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ringfence::net {

std::string LowerAscii(std::string_view text);

// The bytes from `from` on: text without control characters, CR and LF only as a pair, and the
// first of all a letter. Says no as early as can be said, so that garbage is not waited for.
Status CheckHeadBytes(std::string_view head, std::size_t from);

// A whole head, with its empty line: how many header lines it has, none of them folded.
Result<std::size_t> CheckHeadLines(std::string_view head);

// Names in lower case. Version 10 is HTTP/1.0, 11 HTTP/1.1. Refuses what makes the message's end
// or its sender ambiguous.
Status CheckHeaders(const std::vector<std::pair<std::string, std::string>>& headers,
                    unsigned version);

}  // namespace ringfence::net

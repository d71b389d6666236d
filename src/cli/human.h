#pragma once

// Numbers and times as people write and read them.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace ringfence::cli {

// "512M", "4G", "1.5G", "65536": powers of 1024; "4GiB" and "4GB" mean the same.
Result<std::uint64_t> ParseSize(std::string_view text);
std::string FormatSize(std::uint64_t bytes);  // "64 MiB", "1.2 MiB", "141 GiB", "17 B"

// "1.5" cores -> 1500 thousandths.
Result<std::uint32_t> ParseCpus(std::string_view text);
Result<std::int64_t> ParseCount(std::string_view text, std::int64_t least, std::int64_t most);

// "3m ago", "in 2h", "just now"; "" for text that is empty, and the text itself for one that is no
// time.
std::string RelativeTime(std::string_view rfc3339, Timestamp now);

// "1 GPU", "2 GPUs".
std::string Count(std::uint64_t count, std::string_view noun);

}  // namespace ringfence::cli

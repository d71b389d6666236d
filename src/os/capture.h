#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::os {

// What a program prints, run without anything of ours but a plain PATH. kUnavailable when it fails,
// kExhausted when it prints more than `bytes_max`.
Result<std::string> Capture(const std::vector<std::string>& arguments, std::size_t bytes_max);

}  // namespace ringfence::os

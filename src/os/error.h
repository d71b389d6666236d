#pragma once

#include <string_view>

#include "base/result.h"

namespace ringfence::os {

// The error that errno (or `number`) stands for, as "what: No such file or directory".
Error ErrnoError(std::string_view what);
Error ErrnoError(std::string_view what, int number);

}  // namespace ringfence::os

#pragma once

// For a program that others start, with whatever they please around it.

#include <string>
#include <string_view>

#include "base/result.h"

namespace ringfence::os {

// Starts this program anew with the same words and no environment at all, if it has one; returns
// when there is none. Nothing of it is read before.
Status LeaveEnvironment(char** arguments);
// Standard input to its end; kExhausted over `bytes_max`.
Result<std::string> ReadInput(std::size_t bytes_max);

}  // namespace ringfence::os

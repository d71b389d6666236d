#pragma once

#include <string>

namespace ringfence::assure {

// VERIFY.md of a package: how to verify it with nothing of ours.
std::string VerifyPage();

}  // namespace ringfence::assure

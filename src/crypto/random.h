#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/secret.h"

namespace ringfence::crypto {

Bytes RandomBytes(std::size_t count);
SecretBytes RandomSecret(std::size_t count);

// "lease-7k3m9q2x4abc": the prefix and 60 random bits.
std::string RandomId(std::string_view prefix);

}  // namespace ringfence::crypto

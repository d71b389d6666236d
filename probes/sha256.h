#pragma once

// SHA-256 (FIPS 180-4). The probe carries its own: in a box there may be no library.

#include <array>
#include <cstdint>
#include <string_view>

namespace ringfence::probe {

using Sha256Digest = std::array<std::uint8_t, 32>;
Sha256Digest Sha256(std::string_view bytes);

}  // namespace ringfence::probe

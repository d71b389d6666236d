#pragma once

// Whether bytes are one canonical JSON object (RFC 8785, whole numbers only), decided in one pass
// and without building anything: the verifier asks it of every entry.

#include <string_view>

namespace ringfence::audit::verify {

// Null when it is; otherwise what is wrong with it, as a constant text.
const char* WhyNotCanonical(std::string_view text);

}  // namespace ringfence::audit::verify

#pragma once

// RINGFENCE_ADDRESS_SANITIZER: AddressSanitizer is compiled in. g++ says so by a macro, clang by a
// feature.
#if defined(__SANITIZE_ADDRESS__)
#define RINGFENCE_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RINGFENCE_ADDRESS_SANITIZER
#endif
#endif

#pragma once

// The most of everything that foreign Cedar text or JSON may ask for.

#include <cstddef>

namespace ringfence::cedar {

inline constexpr std::size_t kTextBytesMax = 64 * 1024 * 1024;  // one file
inline constexpr int kNestingMax = 200;     // brackets within brackets, and JSON within JSON
inline constexpr int kExprDepthMax = 1000;  // operators within operators
inline constexpr std::size_t kPoliciesMax = 1'000'000;
inline constexpr std::size_t kEntitiesMax = 10'000'000;
inline constexpr std::size_t kTypeNodesMax = 1'000'000;  // a schema with its common types unfolded

}  // namespace ringfence::cedar

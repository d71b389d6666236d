#pragma once

#include <cstddef>

namespace ringfence::policy {

inline constexpr std::size_t kPolicyFilesMax = 1024;
inline constexpr std::size_t kPolicyBytesMax = std::size_t{8} << 20U;
inline constexpr std::size_t kPolicyFolderDepthMax = 8;
inline constexpr std::size_t kPolicyEntriesMax = 16384;  // of the folder, whatever they are

}  // namespace ringfence::policy

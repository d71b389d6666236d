#pragma once

// The few shapes of text that cross the border to root. Each is checked where it comes in, so that
// what is inside can be used as a file name, a cgroup name or an argument.

#include <string_view>

namespace ringfence::isolate {

inline constexpr std::size_t kNameBytesMax = 64;

// Letters, digits, '.', '_' and '-', not starting with '.' or '-': never a path, never an option.
bool IsName(std::string_view text);
// "GPU-" and letters, digits and '-': as vendors write UUIDs.
bool IsGpuUuid(std::string_view text);  // of a whole one or a slice
// A letter or '_', then letters, digits and '_'.
bool IsVariableName(std::string_view text);

}  // namespace ringfence::isolate

#pragma once

// "did you mean": the known name nearest to one that is not known.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringfence {

// How many single-character changes (put in, left out, replaced, two swapped) turn `a` into `b`;
// `most` + 1 when there are more than `most`.
std::size_t EditDistance(std::string_view a, std::string_view b, std::size_t most);

// The candidate that a person most likely meant by `text`: the nearest, the first of equals, and
// none when even the nearest has more than a third of its characters wrong.
std::optional<std::string> Closest(std::string_view text,
                                   const std::vector<std::string_view>& candidates);

}  // namespace ringfence

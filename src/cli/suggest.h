#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringfence::cli {

// The candidate that `word` was probably meant to be: few edits away (a swap of neighbours counts
// as one), or the only one that begins with it.
std::optional<std::string> Closest(std::string_view word,
                                   const std::vector<std::string>& candidates);

// "did you mean `lease`?", or `otherwise` when nothing is close.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates,
                       std::string otherwise);

}  // namespace ringfence::cli

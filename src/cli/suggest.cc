#include "cli/suggest.h"

#include <algorithm>

namespace ringfence::cli {
namespace {

constexpr std::size_t kWordBytesMax = 64;  // beyond it nobody mistyped one of our words

// Optimal string alignment: insertions, deletions, replacements and swaps of neighbours.
std::size_t Edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    last[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string> Closest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kWordBytesMax) {
    return std::nullopt;
  }
  const std::string* best = nullptr;
  std::size_t best_edits = std::max<std::size_t>(1, std::min<std::size_t>(3, word.size() / 3)) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = Edits(word, candidate);
    if (edits < best_edits) {
      best = &candidate;
      best_edits = edits;
    }
  }
  if (best != nullptr) {
    return *best;
  }
  const auto begins = [&](const std::string& candidate) { return candidate.starts_with(word); };
  const auto first = std::find_if(candidates.begin(), candidates.end(), begins);
  if (first == candidates.end() ||
      std::find_if(first + 1, candidates.end(), begins) != candidates.end()) {
    return std::nullopt;
  }
  return *first;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates,
                       std::string otherwise) {
  const auto closest = Closest(word, candidates);
  return closest ? "did you mean `" + *closest + "`?" : std::move(otherwise);
}

}  // namespace ringfence::cli

#pragma once

// Memory for texts that are given up all at once. What was taken stays where it is until then.

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace ringfence::sigma {

class Arena {
 public:
  void Clear() {
    block_ = 0;
    used_ = 0;
  }
  char* Take(std::size_t bytes) {
    while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].size()) {
      ++block_;
      used_ = 0;
    }
    if (block_ == blocks_.size()) {
      blocks_.emplace_back(std::max(bytes, std::size_t{1} << 16U));
      used_ = 0;
    }
    char* taken = blocks_[block_].data() + used_;
    used_ += bytes;
    return taken;
  }
  // Hands back what the last Take had too much.
  void Return(std::size_t bytes) { used_ -= bytes; }

  std::string_view Copy(std::string_view text) {
    char* out = Take(text.size());
    std::copy(text.begin(), text.end(), out);
    return {out, text.size()};
  }

 private:
  std::vector<std::vector<char>> blocks_;
  std::size_t block_ = 0;
  std::size_t used_ = 0;
};

}  // namespace ringfence::sigma

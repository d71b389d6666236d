#pragma once

// The lines of a file of events, one after another, however large the file is.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/unique_fd.h"
#include "sigma/matcher.h"

namespace ringfence::sigma {

struct EventLine {
  std::uint64_t number = 0;  // from 1
  std::string_view text;     // valid until the next call; kEventPadding readable bytes follow
  bool too_long = false;     // `text` is only its beginning
};

class EventLines {
 public:
  static Result<EventLines> Open(const std::string& path);  // "-": standard input

  // The next line that is not empty; false at the end.
  Result<bool> Next(EventLine& line);

 private:
  explicit EventLines(os::UniqueFd fd);
  Status Fill();

  os::UniqueFd fd_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t number_ = 0;
  bool at_end_ = false;
};

}  // namespace ringfence::sigma

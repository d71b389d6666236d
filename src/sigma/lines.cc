#include "sigma/lines.h"

#include <cstring>

#include "os/file.h"

namespace ringfence::sigma {
namespace {
constexpr std::size_t kChunkBytes = std::size_t{1} << 20U;
}

EventLines::EventLines(os::UniqueFd fd)
    : fd_(std::move(fd)), buffer_(kEventBytesMax + kChunkBytes + kEventPadding) {}

Result<EventLines> EventLines::Open(const std::string& path) {
  RINGFENCE_ASSIGN(os::UniqueFd fd, os::OpenRead(path == "-" ? "/dev/stdin" : path));
  return EventLines(std::move(fd));
}

// More bytes behind those that are there, which move to the front first.
Status EventLines::Fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const std::size_t room = buffer_.size() - kEventPadding - end_;
  RINGFENCE_ASSIGN(
      const std::size_t got,
      os::ReadSome(fd_.get(), std::as_writable_bytes(std::span(buffer_.data() + end_, room))));
  end_ += got;
  at_end_ = got == 0;
  return {};
}

Result<bool> EventLines::Next(EventLine& line) {
  line = {};
  std::size_t searched = 0;
  while (true) {
    const char* start = buffer_.data() + begin_ + searched;
    const void* found = std::memchr(start, '\n', end_ - begin_ - searched);
    const bool full = found == nullptr && end_ - begin_ > kEventBytesMax;
    if (found == nullptr && !full && !at_end_) {
      searched = end_ - begin_;
      RINGFENCE_TRY(Fill());
      continue;
    }
    if (found == nullptr && !full && begin_ == end_) {
      return line.too_long;
    }
    const auto size =
        found != nullptr
            ? static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data()) - begin_
            : end_ - begin_;
    std::string_view text(buffer_.data() + begin_, size);
    if (full) {  // pass over the rest of it
      if (!line.too_long) {
        line.number = ++number_;
        line.too_long = true;
      }
      begin_ = end_;
      searched = 0;
      continue;
    }
    begin_ += size + (found != nullptr ? 1 : 0);
    if (line.too_long) {
      return true;
    }
    ++number_;
    if (text.ends_with('\r')) {
      text.remove_suffix(1);
    }
    if (text.find_first_not_of(" \t") == std::string_view::npos) {
      searched = 0;
      continue;
    }
    line.number = number_;
    line.text = text;
    line.too_long = text.size() > kEventBytesMax;
    return true;
  }
}

}  // namespace ringfence::sigma

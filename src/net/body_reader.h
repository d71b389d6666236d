#pragma once

// A message's body, of a known length or chunked. Our own decoder: Beast 1.81's ends the process
// (an assertion) when "0\r\n\r\n" arrives cut before its last byte, and keeps trailers as headers.

#include <cstdint>
#include <string>
#include <string_view>

namespace ringfence::net {

// A chunk's size line with its extensions; and, separately, all of the trailer.
inline constexpr std::size_t kChunkLineBytesMax = 4096;

// One thread at a time.
class BodyReader {
 public:
  enum class State { kMore, kDone, kTooLong, kBad };

  // No body until one of these is called. `bytes_max` bounds the decoded body.
  void BeginLength(std::uint64_t length, std::size_t bytes_max);
  void BeginChunked(std::size_t bytes_max);

  // Takes bytes until the body is done or wrong, or there are no more; returns how many.
  std::size_t Feed(std::string_view bytes);
  State state() const { return state_; }
  std::string& body() { return body_; }
  const std::string& body() const { return body_; }

 private:
  enum class Expect {
    kData,
    kSize,
    kExtension,
    kSizeLf,
    kDataCr,
    kDataLf,
    kTrailerStart,
    kTrailer,
    kTrailerLf,
    kEndLf,
  };

  void Step(char c);
  void StepSize(char c);
  void EndOfSizeLine();

  State state_ = State::kDone;
  Expect expect_ = Expect::kData;
  bool chunked_ = false;
  std::size_t bytes_max_ = 0;
  std::uint64_t left_ = 0;  // of the body or the chunk
  int digits_ = 0;
  std::size_t line_bytes_ = 0;
  std::string body_;
};

}  // namespace ringfence::net

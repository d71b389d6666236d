#include "net/body_reader.h"

#include <algorithm>

namespace ringfence::net {
namespace {

constexpr int kSizeDigitsMax = 8;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool IsLineText(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7f) || byte == '\t';
}

}  // namespace

void BodyReader::BeginLength(std::uint64_t length, std::size_t bytes_max) {
  *this = {};
  left_ = length;
  bytes_max_ = bytes_max;
  state_ = length == 0 ? State::kDone : length > bytes_max ? State::kTooLong : State::kMore;
}

void BodyReader::BeginChunked(std::size_t bytes_max) {
  *this = {};
  chunked_ = true;
  bytes_max_ = bytes_max;
  expect_ = Expect::kSize;
  state_ = State::kMore;
}

std::size_t BodyReader::Feed(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size() && state_ == State::kMore) {
    if (expect_ != Expect::kData) {
      Step(bytes[used++]);
      continue;
    }
    const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - used));
    body_.append(bytes.substr(used, take));
    used += take;
    left_ -= take;
    if (left_ == 0) {
      expect_ = Expect::kDataCr;
      state_ = chunked_ ? State::kMore : State::kDone;
    }
  }
  return used;
}

void BodyReader::EndOfSizeLine() {
  line_bytes_ = 0;
  if (left_ == 0) {
    expect_ = Expect::kTrailerStart;
  } else if (left_ > bytes_max_ - body_.size()) {
    state_ = State::kTooLong;
  } else {
    expect_ = Expect::kData;
  }
}

void BodyReader::StepSize(char c) {
  const int digit = HexDigit(c);
  if (digit >= 0 && digits_ < kSizeDigitsMax) {
    left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
    ++digits_;
  } else if (digits_ > 0 && c == '\r') {
    expect_ = Expect::kSizeLf;
  } else if (digits_ > 0 && c == ';') {
    expect_ = Expect::kExtension;
  } else {
    state_ = State::kBad;
  }
}

void BodyReader::Step(char c) {
  const auto expect = [&](char wanted, Expect next) {
    expect_ = next;
    state_ = c == wanted ? state_ : State::kBad;
  };
  switch (expect_) {
    case Expect::kData:
      break;
    case Expect::kSize:
      StepSize(c);
      break;
    case Expect::kExtension:
      if (c == '\r') {
        expect_ = Expect::kSizeLf;
      } else if (!IsLineText(c) || ++line_bytes_ > kChunkLineBytesMax) {
        state_ = State::kBad;
      }
      break;
    case Expect::kSizeLf:
      expect('\n', Expect::kSize);
      if (state_ == State::kMore) {
        EndOfSizeLine();
      }
      break;
    case Expect::kDataCr:
      expect('\r', Expect::kDataLf);
      break;
    case Expect::kDataLf:
      expect('\n', Expect::kSize);
      digits_ = 0;
      left_ = 0;
      break;
    case Expect::kTrailerStart:
      expect_ = c == '\r' ? Expect::kEndLf : Expect::kTrailer;
      if (c != '\r' &&
          (!IsLineText(c) || c == ' ' || c == '\t' || ++line_bytes_ > kChunkLineBytesMax)) {
        state_ = State::kBad;
      }
      break;
    case Expect::kTrailer:
      if (c == '\r') {
        expect_ = Expect::kTrailerLf;
      } else if (!IsLineText(c) || ++line_bytes_ > kChunkLineBytesMax) {
        state_ = State::kBad;
      }
      break;
    case Expect::kTrailerLf:
      expect('\n', Expect::kTrailerStart);
      break;
    case Expect::kEndLf:
      expect('\n', Expect::kSize);
      state_ = state_ == State::kBad ? State::kBad : State::kDone;
      break;
  }
}

}  // namespace ringfence::net

#include "server/output_store.h"

#include <algorithm>

namespace ringfence::server {
namespace {

constexpr std::size_t kHeaderBytes = 9;
constexpr std::byte kDroppedStream{3};  // its data: u64, bytes dropped so far

struct Frame {
  std::uint32_t sequence = 0;
  std::byte stream{};
  ByteView data;
  std::size_t size = 0;  // with its header
};

// The frame at the start of `bytes`; size 0 when it is cut short or not a frame.
Frame FrameAt(ByteView bytes) {
  Frame frame;
  if (bytes.size() < kHeaderBytes) {
    return frame;
  }
  const auto length = GetBigEndian<std::uint32_t>(bytes.subspan(5));
  if (length > kOutputFrameBytesMax || bytes.size() - kHeaderBytes < length) {
    return frame;
  }
  frame.sequence = GetBigEndian<std::uint32_t>(bytes);
  frame.stream = bytes[4];
  frame.data = bytes.subspan(kHeaderBytes, length);
  frame.size = kHeaderBytes + length;
  return frame;
}

Bytes MakeFrame(std::uint32_t sequence, std::byte stream, ByteView data) {
  Bytes bytes;
  bytes.reserve(kHeaderBytes + data.size());
  Append(bytes, PutBigEndian(sequence));
  bytes.push_back(stream);
  Append(bytes, PutBigEndian(static_cast<std::uint32_t>(data.size())));
  Append(bytes, data);
  return bytes;
}

}  // namespace

Result<OutputStore::Open*> OutputStore::Find(const std::string& lease) {
  const auto found = open_.find(lease);
  if (found != open_.end()) {
    return &found->second;
  }
  std::uint32_t sequence = 0;
  std::uint64_t size = 0;
  std::uint64_t dropped = 0;
  const auto existing = os::ReadFile(PathOf(lease), kOutputBytesMax * 2);
  if (existing.has_value()) {
    for (Frame frame = FrameAt(*existing); frame.size > 0;
         frame = FrameAt(ByteView(*existing).subspan(size))) {
      sequence = frame.sequence;
      size += frame.size;
      if (frame.stream == kDroppedStream && frame.data.size() == 8) {
        dropped = GetBigEndian<std::uint64_t>(frame.data);
      }
    }
  } else if (existing.error().code != Code::kNotFound) {
    return existing.error();
  }
  RINGFENCE_ASSIGN(os::AppendFile file, os::AppendFile::Open(PathOf(lease)));
  RINGFENCE_TRY(file.Truncate(size));
  return &open_.emplace(lease, Open{std::move(file), sequence, size, dropped}).first->second;
}

Status OutputStore::Append(const std::string& lease, std::uint32_t sequence,
                           const OutputChunk& chunk) {
  if (chunk.data.size() > kOutputFrameBytesMax) {
    return Error{Code::kInvalidArgument, "output chunk is too long", {}, "chunks"};
  }
  const std::lock_guard lock(mutex_);
  RINGFENCE_ASSIGN(Open* const open, Find(lease));
  if (sequence <= open->sequence) {
    return {};
  }
  if (sequence != open->sequence + 1) {
    return Error{Code::kFailedPrecondition,
                 "output of " + lease + ": expected " + std::to_string(open->sequence + 1)};
  }
  Bytes frame;
  if (open->bytes + chunk.data.size() > kOutputBytesMax) {
    open->dropped += chunk.data.size();
    frame = MakeFrame(sequence, kDroppedStream, PutBigEndian(open->dropped));
    if (open->bytes + frame.size() > kOutputBytesMax * 2) {
      open->sequence = sequence;  // even the notes of what was dropped have an end
      return {};
    }
  } else {
    frame = MakeFrame(sequence, std::byte(chunk.is_error ? 2 : 1), chunk.data);
  }
  if (const Status written = open->file.Append(frame); !written.has_value()) {
    open_.erase(lease);  // opened anew, the torn frame is found and dropped
    return written;
  }
  open->sequence = sequence;
  open->bytes += frame.size();
  return {};
}

Result<OutputPage> OutputStore::Read(const std::string& lease, std::uint64_t from) {
  OutputPage page;
  const std::lock_guard lock(mutex_);
  page.next = from;
  const auto file = os::OpenRead(PathOf(lease));
  if (!file.has_value()) {
    page.at_end = true;
    return file.error().code == Code::kNotFound ? Result<OutputPage>(page) : file.error();
  }
  RINGFENCE_ASSIGN(const Bytes window,
                   os::ReadAt(file->get(), from, kOutputPageBytesMax + kOutputFrameBytesMax));
  std::size_t at = 0;
  while (at < kOutputPageBytesMax) {
    const Frame frame = FrameAt(ByteView(window).subspan(std::min(at, window.size())));
    if (frame.size == 0) {
      page.at_end = true;
      break;
    }
    if (frame.stream == kDroppedStream) {
      page.dropped = frame.data.size() == 8 ? GetBigEndian<std::uint64_t>(frame.data) : 0;
    } else {
      page.chunks.push_back({frame.stream == std::byte{2}, {frame.data.begin(), frame.data.end()}});
    }
    at += frame.size;
  }
  page.next = from + at;
  return page;
}

void OutputStore::Close(const std::string& lease) {
  const std::lock_guard lock(mutex_);
  open_.erase(lease);
}

}  // namespace ringfence::server

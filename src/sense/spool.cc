#include "sense/spool.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/encoding.h"
#include "crypto/random.h"
#include "crypto/sha256.h"

namespace ringfence::sense {
namespace {

constexpr std::size_t kCheckDigits = 8;
constexpr std::size_t kSegmentReadMax = std::size_t{64} << 20U;
constexpr std::size_t kPeekBytes = std::size_t{512} << 10U;
constexpr const char* kSuffix = ".spool";

std::string CheckOf(std::string_view text) {
  return Hex(crypto::Sha256(AsBytes(text))).substr(0, kCheckDigits);
}

std::string LineOf(std::uint64_t sequence, const std::string& json) {
  const std::string rest = std::to_string(sequence) + " " + json;
  return CheckOf(rest) + " " + rest + "\n";
}

// The record of a line without its end; nullopt: it is none of ours.
std::optional<SpooledRecord> ParseLine(std::string_view line) {
  if (line.size() < kCheckDigits + 4 || line[kCheckDigits] != ' ') {
    return std::nullopt;
  }
  const std::string_view rest = line.substr(kCheckDigits + 1);
  if (CheckOf(rest) != line.substr(0, kCheckDigits)) {
    return std::nullopt;
  }
  SpooledRecord record;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), record.sequence);
  if (parsed.ec != std::errc() || parsed.ptr == rest.data() + rest.size() || *parsed.ptr != ' ') {
    return std::nullopt;
  }
  record.json = std::string(parsed.ptr + 1, rest.data() + rest.size());
  return record;
}

std::optional<std::uint64_t> FirstOf(const std::string& name) {
  std::uint64_t first = 0;
  if (!name.ends_with(kSuffix)) {
    return std::nullopt;
  }
  const char* const end = name.data() + name.size() - std::string_view(kSuffix).size();
  const auto parsed = std::from_chars(name.data(), end, first, 16);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(first) : std::nullopt;
}

}  // namespace

JsonObject GapRecord(std::uint64_t dropped, const std::string& why) {
  return {{"kind", "gap"}, {"dropped", static_cast<std::int64_t>(dropped)}, {"why", why}};
}

std::string Spool::PathOf(const Segment& segment) const {
  char name[32];
  (void)std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(segment.first));
  return options_.folder + "/" + name + kSuffix;
}

Result<Spool> Spool::Open(Options options) {
  Spool spool(std::move(options));
  RINGFENCE_TRY(os::MakeDirs(spool.options_.folder, 0700));
  const std::string epoch_path = spool.options_.folder + "/epoch";
  const auto epoch = os::ReadText(epoch_path, 64);
  if (epoch.has_value() && !epoch->empty()) {
    spool.epoch_ = *epoch;
  } else {
    spool.epoch_ = crypto::RandomId("spool");
    RINGFENCE_TRY(os::WriteFileDurable(epoch_path, AsBytes(spool.epoch_), 0600));
  }
  RINGFENCE_TRY(spool.TakeUp());
  return spool;
}

// Reads what is there; a segment ends with its first line that is not whole.
Status Spool::TakeUp() {
  RINGFENCE_ASSIGN(const auto names, os::ListDir(options_.folder));
  std::vector<Segment> found;
  for (const std::string& name : names) {
    if (const auto first = FirstOf(name)) {
      found.push_back({*first, 0});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Segment& a, const Segment& b) { return a.first < b.first; });
  bool begun = false;
  std::uint64_t damaged = 0;
  for (Segment segment : found) {
    const std::string path = PathOf(segment);
    RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kSegmentReadMax));
    std::uint64_t sequence = segment.first;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      const auto record = end == std::string::npos
                              ? std::nullopt
                              : ParseLine(std::string_view(text).substr(at, end - at));
      if (!record.has_value() || record->sequence != sequence) {
        break;
      }
      ++sequence;
      at = end + 1;
      segment.bytes = at;
    }
    if (segment.bytes < text.size()) {
      ++damaged;
      RINGFENCE_ASSIGN(os::AppendFile file, os::AppendFile::Open(path));
      RINGFENCE_TRY(file.Truncate(segment.bytes));
    }
    next_ = std::max(next_, sequence);
    if (segment.bytes == 0 && segment.first != found.back().first) {
      RINGFENCE_TRY(os::RemoveFile(path));
      continue;
    }
    if (!begun) {
      first_ = segment.first;
      begun = true;
    }
    segments_.push_back(segment);  // the last one also when it is empty: its name keeps the number
  }
  if (!begun) {
    first_ = next_;
  }
  // A line that was being written when its process died was acknowledged by nobody; more is damage.
  if (damaged > 0) {
    unwritten_ += damaged;
    unwritten_why_ = "the spool was cut short: its process or its disk failed while it was written";
  }
  return {};
}

std::uint64_t Spool::bytes() const {
  std::uint64_t sum = 0;
  for (const Segment& segment : segments_) {
    sum += segment.bytes;
  }
  return sum;
}

Status Spool::BeginSegment() {
  const Segment segment{next_, 0};
  RINGFENCE_ASSIGN(os::AppendFile file, os::AppendFile::Open(PathOf(segment)));
  file_.emplace(std::move(file));
  if (segments_.empty() || segments_.back().first != segment.first) {
    segments_.push_back(segment);
  }
  return {};
}

Status Spool::RemoveFront() {
  RINGFENCE_TRY(os::RemoveFile(PathOf(segments_.front())));
  segments_.pop_front();
  return {};
}

Status Spool::DropFront(const std::string& why, Timestamp now) {
  if (segments_.size() == 1) {
    RINGFENCE_TRY(BeginSegment());
  }
  const std::uint64_t end = segments_[1].first;
  const std::uint64_t lost = end - std::max(first_, segments_.front().first);
  RINGFENCE_TRY(RemoveFront());
  first_ = std::max(first_, end);
  if (lost == 0) {
    return {};
  }
  dropped_ += lost;
  return Write(GapRecord(lost, why), now);
}

Status Spool::Write(JsonObject record, Timestamp now) {
  if (!record.contains("time")) {
    record["time"] = now.time_since_epoch().count();
  }
  const std::string json = CanonicalJson(record);
  if (json.size() > kRecordBytesMax) {
    return Error{Code::kExhausted, "a record was too long"};
  }
  if (!file_.has_value() || segments_.empty() ||
      segments_.back().bytes >= options_.segment_bytes_max) {
    RINGFENCE_TRY(BeginSegment());
  }
  const std::string line = LineOf(next_, json);
  if (const Status written = file_->Append(AsBytes(line)); !written.has_value()) {
    (void)file_->Truncate(segments_.back().bytes);  // half a line would hide what follows
    return written;
  }
  segments_.back().bytes += line.size();
  ++next_;
  return {};
}

Status Spool::Append(JsonObject record, Timestamp now) {
  if (unwritten_ > 0 && Write(GapRecord(unwritten_, unwritten_why_), now).has_value()) {
    unwritten_ = 0;
  }
  if (const Status written = Write(std::move(record), now); !written.has_value()) {
    ++unwritten_;
    ++dropped_;
    unwritten_why_ = "not written: " + written.error().message;
    return written;
  }
  while (bytes() > options_.bytes_max && segments_.size() > 1) {
    RINGFENCE_TRY(DropFront("the spool was full: the server did not take what was in it", now));
  }
  return {};
}

Status Spool::Sync() { return file_.has_value() ? file_->Sync() : Status(); }

Result<std::vector<SpooledRecord>> Spool::Peek(std::size_t records_max, std::size_t bytes_max,
                                               Timestamp now) {
  std::vector<SpooledRecord> records;
  std::size_t bytes = 0;
  const auto damaged = [&](const Segment& segment) -> Result<std::vector<SpooledRecord>> {
    if (segment.first != segments_.front().first || segments_.front().bytes == 0) {
      return records;  // until it is the first
    }
    RINGFENCE_TRY(DropFront("the spool was damaged on disk", now));
    return Peek(records_max, bytes_max, now);
  };
  for (const Segment& segment : segments_) {
    std::uint64_t offset = 0;
    RINGFENCE_ASSIGN(const os::UniqueFd fd, os::OpenRead(PathOf(segment)));
    while (offset < segment.bytes) {
      const std::size_t want = std::min<std::uint64_t>(kPeekBytes, segment.bytes - offset);
      RINGFENCE_ASSIGN(const Bytes chunk, os::ReadAt(fd.get(), offset, want));
      const std::string_view text = AsText(chunk);
      std::size_t at = 0;
      for (std::size_t end = text.find('\n'); end != std::string_view::npos;
           end = text.find('\n', at)) {
        auto record = ParseLine(text.substr(at, end - at));
        if (!record.has_value()) {
          return damaged(segment);
        }
        at = end + 1;
        if (record->sequence < first_) {
          continue;
        }
        bytes += record->json.size();
        if (records.size() >= records_max || (bytes > bytes_max && !records.empty())) {
          return records;
        }
        records.push_back(std::move(*record));
      }
      if (at == 0) {
        return damaged(segment);
      }
      offset += at;
    }
  }
  return records;
}

Status Spool::Acknowledge(std::uint64_t next) {
  first_ = std::clamp(next, first_, next_);
  while (segments_.size() > 1 && segments_[1].first <= first_) {
    RINGFENCE_TRY(RemoveFront());
  }
  if (first_ == next_ && !segments_.empty() && segments_.back().bytes > 0) {
    // All of it was taken. A new segment is begun first, as its name keeps the number.
    RINGFENCE_TRY(BeginSegment());
    while (segments_.size() > 1) {
      RINGFENCE_TRY(RemoveFront());
    }
  }
  return {};
}

}  // namespace ringfence::sense

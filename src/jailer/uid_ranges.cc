#include "jailer/uid_ranges.h"

#include <charconv>
#include <sstream>

namespace ringfence::jailer {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{32} << 20U;

}  // namespace

Result<UidRanges> UidRanges::Open(const std::string& folder) {
  const std::string path = folder + "/uids";
  RINGFENCE_ASSIGN(os::AppendFile file, os::AppendFile::Open(path, 0600));
  UidRanges ranges(std::move(file));
  RINGFENCE_ASSIGN(const std::string text, os::ReadText(path, kFileBytesMax));
  // What has no end of line is of a Take that was never answered: no box has had that range.
  ranges.bytes_ = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  ranges.torn_ = ranges.bytes_ != text.size();
  std::istringstream lines(text.substr(0, ranges.bytes_));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    unsigned slot = 0;
    const auto [end, wrong] =
        std::from_chars(line.data(), line.data() + std::min(space, line.size()), slot);
    if (space == std::string::npos || wrong != std::errc() || end != line.data() + space ||
        slot >= kSlotsMax || line.size() == space + 1) {
      return Error{Code::kCorrupt, path + ": a line is damaged: " + line.substr(0, 100),
                   "restore the file from a backup; without it two tenants could get the same "
                   "user ids"};
    }
    ranges.owners_[slot] = line.substr(space + 1);
  }
  return ranges;
}

Result<unsigned> UidRanges::Take(const std::string& tenant, const std::set<unsigned>& busy) {
  if (tenant.empty() || tenant.find('\n') != std::string::npos) {
    return Error{Code::kInvalidArgument, "the tenant's name is empty or holds a line break"};
  }
  for (const auto& [slot, owner] : owners_) {
    if (owner == tenant && !busy.contains(slot)) {
      return slot;
    }
  }
  for (unsigned slot = 0; slot < kSlotsMax; ++slot) {
    if (owners_.contains(slot) || busy.contains(slot)) {
      continue;
    }
    if (torn_) {
      RINGFENCE_TRY(file_.Truncate(bytes_));
    }
    const std::string line = std::to_string(slot) + " " + tenant + "\n";
    torn_ = true;
    RINGFENCE_TRY(file_.Append(AsBytes(line)));
    RINGFENCE_TRY(file_.Sync());
    torn_ = false;
    bytes_ += line.size();
    owners_[slot] = tenant;
    return slot;
  }
  return Error{
      Code::kExhausted,
      "every range of user ids belongs to a tenant, and those of " + tenant + " are taken by boxes",
      "end a lease of the tenant, or give the node a new state folder and node.uid_base"};
}

}  // namespace ringfence::jailer

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
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    unsigned slot = 0;
    const auto [end, wrong] =
        std::from_chars(line.data(), line.data() + std::min(space, line.size()), slot);
    const bool whole = space != std::string::npos && wrong == std::errc() &&
                       end == line.data() + space && slot < kSlotsMax && line.size() > space + 1;
    if (!whole && !line.empty() && !lines.eof()) {
      return Error{Code::kCorrupt, path + ": a line is damaged: " + line.substr(0, 100),
                   "restore the file from a backup; without it two tenants could get the same "
                   "user ids"};
    }
    if (lines.eof()) {
      // No end of line: of a Take that was never answered. No box has that range yet, but a
      // tenant's name may be cut, so it is nobody's.
      ranges.torn_ = true;
      if (whole) {
        ranges.owners_[slot] = "";
      }
    } else if (whole) {
      ranges.owners_[slot] = line.substr(space + 1);
    }
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
    const std::string line = (torn_ ? "\n" : "") + std::to_string(slot) + " " + tenant + "\n";
    torn_ = true;
    RINGFENCE_TRY(file_.Append(AsBytes(line)));
    RINGFENCE_TRY(file_.Sync());
    torn_ = false;
    owners_[slot] = tenant;
    return slot;
  }
  return Error{
      Code::kExhausted,
      "every range of user ids belongs to a tenant, and those of " + tenant + " are taken by boxes",
      "end a lease of the tenant, or give the node a new state folder and node.uid_base"};
}

}  // namespace ringfence::jailer

#include "audit/verify_files.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>

#include "os/file.h"
#include "os/staged_file.h"

namespace ringfence::audit::verify {
namespace {

constexpr std::size_t kStraysLimit = 1000;
constexpr std::uint64_t kIndexLimit = UINT64_MAX / 1000 - 1;

// A number in decimal without leading zeroes.
std::optional<std::uint64_t> Number(std::string_view text) {
  if (text.empty() || text.size() > 18 || (text.size() > 1 && text[0] == '0')) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

// "007" is 7; exactly three digits.
std::optional<std::uint64_t> Group(std::string_view text) {
  if (text.size() != 3) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

// The bytes of the first `width` parts, or nothing when there are not so many.
std::optional<ByteView> FirstParts(unsigned kind, ByteView bytes, std::uint64_t width) {
  std::size_t end = 0;
  if (kind != kEntries) {
    end = width * sizeof(Digest);
  } else {
    for (std::uint64_t i = 0; i < width && end + 2 <= bytes.size(); ++i) {
      end += 2U + GetBigEndian<std::uint16_t>(bytes.subspan(end));
    }
  }
  return end <= bytes.size() ? std::optional(bytes.first(end)) : std::nullopt;
}

class StrayFinder {
 public:
  StrayFinder(const std::string& folder, std::uint64_t size) : folder_(folder), size_(size) {}

  Strays Run() {
    for (const std::string& name : List("tile")) {
      const std::optional<std::uint64_t> level = Number(name);
      if (name != "entries" && (!level.has_value() || *level >= kLevels)) {
        Problem("tile/" + name + " does not belong to a log");
        continue;
      }
      const unsigned kind = name == "entries" ? kEntries : static_cast<unsigned>(*level);
      if (PartsOf(kind, size_) == 0) {
        AddFolderBeyond("tile/" + name, kind, 1);
      } else {
        Walk(kind, "tile/" + name, 0);
      }
    }
    return std::move(strays_);
  }

 private:
  void Problem(std::string what) {
    if (strays_.problems.size() < kStraysLimit) {
      strays_.problems.push_back(std::move(what));
    }
  }
  void AddBeyond(std::string path, unsigned kind, std::uint64_t parts_needed) {
    if (strays_.beyond.size() < kStraysLimit) {
      strays_.beyond.push_back({std::move(path), kind, parts_needed});
    }
  }
  // An empty folder is nothing.
  void AddFolderBeyond(const std::string& path, unsigned kind, std::uint64_t parts_needed) {
    if (!List(path).empty()) {
      AddBeyond(path, kind, parts_needed);
    }
  }

  std::vector<std::string> List(const std::string& path) {
    Result<std::vector<std::string>> names = os::ListDir(folder_ + "/" + path);
    if (names.has_value()) {
      return std::move(names).value();
    }
    // An empty log has no tiles; a piece that is missing has been reported where it was needed; a
    // folder of partials may go while we look.
    if (names.error().code != Code::kNotFound) {
      Problem(names.error().message);
    }
    return {};
  }

  // The folder `path` holds the indices that begin with the digits of `prefix`.
  void Walk(unsigned kind, const std::string& path, std::uint64_t prefix) {
    const std::uint64_t parts = PartsOf(kind, size_);
    const std::uint64_t full = parts / kSpan;
    for (const std::string& name : List(path)) {
      const std::string below = path + "/" + name;
      const bool is_group = name.starts_with('x');
      const bool is_partial = name.ends_with(".p");
      std::string_view digits = name;
      digits.remove_prefix(is_group ? 1 : 0);
      digits.remove_suffix(is_partial ? 2 : 0);
      const std::optional<std::uint64_t> group = Group(digits);
      if (!group.has_value() || (is_group && is_partial) || prefix > kIndexLimit / 1000 ||
          (is_group && prefix == 0 && *group == 0)) {
        Problem(below + " does not belong to a log");
        continue;
      }
      const std::uint64_t index = prefix * 1000 + *group;
      if (is_group) {
        if (index * 1000 * kSpan >= parts) {
          AddFolderBeyond(below, kind, index * 1000 * kSpan + 1);
        } else {
          Walk(kind, below, index);
        }
      } else if (is_partial) {
        Partials(kind, below, index);
      } else if (index >= full) {
        AddBeyond(below, kind, (index + 1) * kSpan);
      }
    }
  }

  void Partials(unsigned kind, const std::string& path, std::uint64_t index) {
    const std::uint64_t parts = PartsOf(kind, size_);
    if (index * kSpan >= parts) {
      AddFolderBeyond(path, kind, index * kSpan + 1);
      return;
    }
    const std::uint64_t width = std::min(parts - index * kSpan, kSpan);
    Bytes whole;
    bool have_whole = false;
    for (const std::string& name : List(path)) {
      const std::optional<std::uint64_t> had = Number(name);
      const std::string below = path + "/" + name;
      if (!had.has_value() || *had == 0 || *had >= kSpan) {
        Problem(below + " does not belong to a log");
      } else if (*had > width) {
        AddBeyond(below, kind, index * kSpan + *had);
      } else if (*had < width) {
        have_whole = have_whole || ReadPiece(folder_, kind, index, width, whole).has_value();
        if (have_whole) {
          Compare(kind, below, *had, whole);
        }
      }
    }
  }

  void Compare(unsigned kind, const std::string& path, std::uint64_t width, ByteView whole) {
    Bytes bytes;
    const Status status = ReadInto(folder_ + "/" + path, kBundleFileLimit, bytes);
    if (!status.has_value()) {
      if (status.error().code != Code::kNotFound) {
        Problem(status.error().message);
      }
      return;
    }
    const std::optional<ByteView> expected = FirstParts(kind, whole, width);
    if (!expected.has_value() ||
        !std::equal(expected->begin(), expected->end(), bytes.begin(), bytes.end())) {
      Problem(path + " differs from the wider one that superseded it");
    }
  }

  const std::string& folder_;
  std::uint64_t size_;
  Strays strays_;
};

}  // namespace

std::string KindFolder(unsigned kind) {
  return kind == kEntries ? "tile/entries" : "tile/" + std::to_string(kind);
}

std::string PiecePath(unsigned kind, std::uint64_t index) {
  char last[8];
  std::snprintf(last, sizeof last, "%03u", static_cast<unsigned>(index % 1000));
  std::string groups;
  for (std::uint64_t rest = index / 1000; rest != 0; rest /= 1000) {
    char group[8];
    std::snprintf(group, sizeof group, "x%03u/", static_cast<unsigned>(rest % 1000));
    groups = group + groups;
  }
  return KindFolder(kind) + "/" + groups + last;
}

std::uint64_t PartsOf(unsigned kind, std::uint64_t size) {
  return kind == kEntries ? size : size >> (8 * kind);
}

Status ReadInto(const std::string& path, std::size_t limit, Bytes& buffer) {
  RINGFENCE_ASSIGN(const os::RegularFile file, os::OpenRegular(path));
  if (file.bytes > limit) {
    return Error{Code::kExhausted, path + " is longer than any such file can be"};
  }
  buffer.resize(file.bytes);
  std::size_t have = 0;
  while (have < buffer.size()) {
    const Result<std::size_t> got = os::ReadSome(file.fd.get(), std::span(buffer).subspan(have));
    if (!got.has_value()) {
      return Prefix(path, got.error());
    }
    if (*got == 0) {
      break;
    }
    have += *got;
  }
  buffer.resize(have);
  return {};
}

Result<Piece> ReadPiece(const std::string& folder, unsigned kind, std::uint64_t index,
                        std::uint64_t width, Bytes& buffer) {
  const std::size_t limit = kind == kEntries ? kBundleFileLimit : kTileFileLimit;
  const std::string full = PiecePath(kind, index);
  std::vector<std::string> choices = {full};
  if (width < kSpan) {
    choices = {full + ".p/" + std::to_string(width), full};
    for (std::uint64_t wider = width + 1; wider < kSpan; ++wider) {
      choices.push_back(full + ".p/" + std::to_string(wider));
    }
    choices.push_back(full);  // it may have become full while we looked
  }
  for (const std::string& path : choices) {
    const Status status = ReadInto(folder + "/" + path, limit, buffer);
    if (status.has_value()) {
      return Piece{path, &path == &choices.front()};
    }
    if (status.error().code != Code::kNotFound) {
      return status.error();
    }
  }
  return Error{Code::kNotFound, choices.front() + " is missing"};
}

Strays FindStrays(const std::string& folder, std::uint64_t size) {
  return StrayFinder(folder, size).Run();
}

}  // namespace ringfence::audit::verify

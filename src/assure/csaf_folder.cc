// A folder of bulletins.

#include <algorithm>
#include <map>

#include "assure/csaf.h"
#include "os/file.h"
#include "os/file_kind.h"

namespace ringfence::assure {
namespace {

constexpr std::size_t kFilesMax = 20'000;
constexpr int kDepthMax = 8;

struct Walk {
  std::vector<std::string> files;
  std::vector<std::string> problems;
};

void Collect(const std::string& folder, const std::string& shown, int depth, Walk& walk) {
  const auto names = os::ListDir(folder);
  if (!names.has_value()) {
    walk.problems.push_back(shown + ": " + names.error().message);
    return;
  }
  for (const std::string& name : *names) {
    const std::string path = folder + "/" + name;
    const std::string relative = shown.empty() ? name : shown + "/" + name;
    const auto kind = os::KindOf(path);
    if (!kind.has_value()) {
      walk.problems.push_back(relative + ": " + kind.error().message);
    } else if (*kind == os::FileKind::kFolder && !name.starts_with('.')) {
      if (depth >= kDepthMax) {
        walk.problems.push_back(relative + ": more than 8 folders deep; not read");
      } else {
        Collect(path, relative, depth + 1, walk);
      }
    } else if (*kind == os::FileKind::kFile && name.ends_with(".json")) {
      if (walk.files.size() >= kFilesMax) {
        walk.problems.push_back(relative + ": more than 20000 files; this and later ones not read");
        return;
      }
      walk.files.push_back(relative);
    }
  }
}

}  // namespace

Result<BulletinSet> LoadBulletins(const std::string& folder) {
  Walk walk;
  RINGFENCE_ASSIGN(const os::FileKind kind, os::KindOf(folder));
  const bool single = kind == os::FileKind::kFile;
  if (single) {
    walk.files.push_back(folder);
  } else {
    RINGFENCE_TRY(os::ListDir(folder));
    Collect(folder, "", 0, walk);
  }
  BulletinSet set;
  set.problems = std::move(walk.problems);
  std::map<std::string, std::size_t, std::less<>> known;
  for (const std::string& file : walk.files) {
    const auto text = os::ReadText(single ? file : folder + "/" + file, kCsafBytesMax);
    if (!text.has_value()) {
      set.problems.push_back(file + ": " + text.error().message);
      continue;
    }
    auto bulletin = ParseCsaf(*text, file);
    if (!bulletin.has_value()) {
      if (bulletin.error().code == Code::kNotFound) {
        ++set.passed_over;
      } else {
        set.problems.push_back(bulletin.error().message);
      }
      continue;
    }
    const auto [at, fresh] = known.try_emplace(bulletin->id, set.bulletins.size());
    if (fresh) {
      set.bulletins.push_back(std::move(*bulletin));
    } else if (set.bulletins[at->second].current < bulletin->current) {
      set.bulletins[at->second] = std::move(*bulletin);
    }
  }
  std::stable_sort(set.bulletins.begin(), set.bulletins.end(),
                   [](const Bulletin& a, const Bulletin& b) { return a.first < b.first; });
  return set;
}

}  // namespace ringfence::assure

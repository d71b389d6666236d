#include "os/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "os/error.h"

namespace ringfence::os {
namespace {

constexpr std::size_t kNamesPerFolderMax = 1'000'000;

Error Refused(std::string_view path, std::string_view why) {
  return Error{Code::kInvalidArgument,
               "\"" + std::string(path.substr(0, 300)) + "\" " + std::string(why)};
}

int OpenInRoot(int root, const char* path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  return static_cast<int>(syscall(SYS_openat2, root, path, &how, sizeof how));
}

std::string SeenPath(int fd) {
  const std::string name = "/proc/self/fd/" + std::to_string(fd);
  std::array<char, 8192> target{};
  const ssize_t got = readlink(name.c_str(), target.data(), target.size());
  return got <= 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(got));
}

Result<std::vector<std::string>> NamesIn(int folder, const std::string& path) {
  UniqueFd copy(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(copy.valid() ? fdopendir(copy.get()) : nullptr,
                                                [](DIR* one) { return one ? closedir(one) : 0; });
  if (dir == nullptr) {
    return ErrnoError("list " + path);
  }
  (void)copy.Release();  // closedir owns it now
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") {
      continue;
    }
    if (names.size() >= kNamesPerFolderMax) {
      return Error{Code::kExhausted, path + " holds too many names"};
    }
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

TreeKind KindOfMode(mode_t mode) {
  return S_ISREG(mode)   ? TreeKind::kFile
         : S_ISDIR(mode) ? TreeKind::kFolder
         : S_ISLNK(mode) ? TreeKind::kLink
                         : TreeKind::kOther;
}

// One that is there is fine.
Status MakeFolderAt(int parent, const std::string& name, const std::string& path) {
  if (mkdirat(parent, name.c_str(), 0755) == 0) {
    // Whatever the umask.
    return fchmodat(parent, name.c_str(), 0755, 0) == 0 ? Status()
                                                        : Status(ErrnoError("make " + path));
  }
  return errno == EEXIST ? Status() : Status(ErrnoError("make " + path));
}

// Something beneath `path` is to be kept.
bool KeepsBeneath(const std::set<std::string>& keep, const std::string& path) {
  const auto next = keep.lower_bound(path + "/");
  return next != keep.end() && next->starts_with(path + "/");
}

std::string Join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

}  // namespace

Status CheckTreePath(std::string_view path, const TreeLimits& limits) {
  if (path.empty() || path.front() == '/') {
    return Refused(path, path.empty() ? "is no name" : "is an absolute path");
  }
  if (path.size() > limits.path_bytes_max) {
    return Refused(path, "is longer than " + std::to_string(limits.path_bytes_max) + " bytes");
  }
  std::size_t depth = 0;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == "..") {
      return Refused(path, "leads out of its folder (..)");
    }
    if (part.empty() || part == "." || part.find('\0') != std::string_view::npos) {
      return Refused(path, "has an empty part");
    }
    if (part.size() > limits.name_bytes_max) {
      return Refused(path, "has a part over " + std::to_string(limits.name_bytes_max) + " bytes");
    }
    if (++depth > limits.depth_max) {
      return Refused(path, "lies deeper than " + std::to_string(limits.depth_max) + " folders");
    }
    at = end + 1;
  }
  return {};
}

Result<Tree> Tree::Open(const std::string& folder, const TreeLimits& limits) {
  UniqueFd root(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root.valid()) {
    return ErrnoError("open " + folder);
  }
  return Take(std::move(root), limits);
}

Result<Tree> Tree::Take(UniqueFd folder, const TreeLimits& limits) {
  std::string seen = SeenPath(folder.get());
  if (seen.empty()) {
    return Error{Code::kUnavailable, "a folder's own path cannot be read in /proc"};
  }
  return Tree(std::move(folder), std::move(seen), limits);
}

// A link may have led deeper than the name says.
Status Tree::CheckDepth(int folder, const std::string& path) const {
  const std::string seen = SeenPath(folder);
  if (!seen.starts_with(seen_)) {
    return Refused(path, "leads out of its folder");
  }
  const std::string_view inside = std::string_view(seen).substr(seen_.size());
  const auto depth = static_cast<std::size_t>(std::count(inside.begin(), inside.end(), '/'));
  if (depth >= limits_.depth_max || inside.size() > limits_.path_bytes_max) {
    return Refused(path, "lies deeper than " + std::to_string(limits_.depth_max) + " folders or " +
                             std::to_string(limits_.path_bytes_max) + " bytes, links resolved");
  }
  return {};
}

Result<UniqueFd> Tree::OpenFolder(const std::string& path) const {
  UniqueFd fd(OpenInRoot(root_.get(), path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY));
  if (!fd.valid()) {
    return ErrnoError("open " + path);
  }
  return fd;
}

Result<Tree::Place> Tree::Find(const std::string& path, bool make_parents) const {
  RINGFENCE_TRY(CheckTreePath(path, limits_));
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  auto parent = OpenFolder(folder);
  if (!parent.has_value() && make_parents && parent.error().code == Code::kNotFound) {
    for (std::size_t at = 0; at < folder.size();) {
      const std::size_t end = std::min(folder.find('/', at), folder.size());
      const std::size_t before = at == 0 ? 0 : at - 1;
      RINGFENCE_ASSIGN(const UniqueFd above, OpenFolder(folder.substr(0, before)));
      RINGFENCE_TRY(CheckDepth(above.get(), path));
      const std::string part = folder.substr(at, end - at);
      RINGFENCE_TRY(MakeFolderAt(above.get(), part, folder.substr(0, end)));
      at = end + 1;
    }
    parent = OpenFolder(folder);
  }
  if (!parent.has_value()) {
    return parent.error();
  }
  RINGFENCE_TRY(CheckDepth(parent->get(), path));
  return Place{std::move(*parent), name};
}

Status Tree::MakeRoom(const Place& place, const std::string& path) const {
  if (unlinkat(place.parent.get(), place.name.c_str(), 0) == 0 || errno == ENOENT) {
    return {};
  }
  if (errno == EISDIR || errno == EPERM) {
    return Error{Code::kConflict, "\"" + path + "\" is a folder"};
  }
  return ErrnoError("replace " + path);
}

Status Tree::MakeFolder(const std::string& path) {
  RINGFENCE_ASSIGN(const Place place, Find(path, true));
  struct stat facts{};
  if (fstatat(place.parent.get(), place.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISDIR(facts.st_mode)) {
      return {};
    }
    RINGFENCE_TRY(MakeRoom(place, path));
  }
  return MakeFolderAt(place.parent.get(), place.name, path);
}

Result<UniqueFd> Tree::MakeFile(const std::string& path, unsigned mode) {
  RINGFENCE_ASSIGN(const Place place, Find(path, true));
  RINGFENCE_TRY(MakeRoom(place, path));
  UniqueFd fd(openat(place.parent.get(), place.name.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid() || fchmod(fd.get(), mode & 0777U) != 0) {
    return ErrnoError("make " + path);
  }
  return fd;
}

Status Tree::MakeLink(const std::string& path, const std::string& target) {
  if (target.empty() || target.size() > limits_.path_bytes_max ||
      target.find('\0') != std::string::npos) {
    return Refused(path, "is a link to nothing, or to a name that is too long");
  }
  RINGFENCE_ASSIGN(const Place place, Find(path, true));
  RINGFENCE_TRY(MakeRoom(place, path));
  if (symlinkat(target.c_str(), place.parent.get(), place.name.c_str()) != 0) {
    return ErrnoError("link " + path);
  }
  return {};
}

Status Tree::MakeHardLink(const std::string& path, const std::string& existing) {
  RINGFENCE_ASSIGN(const Place from, Find(existing, false));
  RINGFENCE_ASSIGN(const Place to, Find(path, true));
  struct stat facts{};
  if (fstatat(from.parent.get(), from.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrnoError("hard link " + path + " to " + existing);
  }
  if (!S_ISREG(facts.st_mode)) {
    return Refused(path, "is a hard link to what is no plain file: " + existing.substr(0, 300));
  }
  struct stat there{};
  if (fstatat(to.parent.get(), to.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
      there.st_ino == facts.st_ino && there.st_dev == facts.st_dev) {
    return {};
  }
  RINGFENCE_TRY(MakeRoom(to, path));
  if (linkat(from.parent.get(), from.name.c_str(), to.parent.get(), to.name.c_str(), 0) != 0) {
    return ErrnoError("hard link " + path + " to " + existing);
  }
  return {};
}

Status Tree::ClearAt(int folder, const std::string& path, const std::set<std::string>& keep,
                     std::size_t depth) const {
  RINGFENCE_ASSIGN(const auto names, NamesIn(folder, path));
  for (const std::string& name : names) {
    RINGFENCE_TRY(RemoveAt(folder, name, Join(path, name), keep, depth));
  }
  return {};
}

Status Tree::RemoveAt(int parent, const std::string& name, const std::string& path,
                      const std::set<std::string>& keep, std::size_t depth) const {
  struct stat facts{};
  if (fstatat(parent, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? Status() : Status(ErrnoError("remove " + path));
  }
  if (!S_ISDIR(facts.st_mode)) {
    if (keep.contains(path) || unlinkat(parent, name.c_str(), 0) == 0) {
      return {};
    }
    return ErrnoError("remove " + path);
  }
  if (depth > limits_.depth_max + 1) {
    return Refused(path, "is nested too deep");
  }
  const UniqueFd folder(
      openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) {
    return ErrnoError("remove " + path);
  }
  RINGFENCE_TRY(ClearAt(folder.get(), path, keep, depth + 1));
  if (keep.contains(path) || KeepsBeneath(keep, path)) {
    return {};
  }
  return unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 ? Status()
                                                           : Status(ErrnoError("remove " + path));
}

Status Tree::Remove(const std::string& path, const std::set<std::string>& keep) {
  const auto place = Find(path, false);
  if (!place.has_value()) {
    return place.error().code == Code::kNotFound ? Status() : Status(place.error());
  }
  return RemoveAt(place->parent.get(), place->name, path, keep, 0);
}

Status Tree::Clear(const std::string& path, const std::set<std::string>& keep) {
  if (!path.empty()) {
    RINGFENCE_TRY(CheckTreePath(path, limits_));
  }
  const auto folder = OpenFolder(path);
  if (!folder.has_value()) {
    return folder.error().code == Code::kNotFound ? Status() : Status(folder.error());
  }
  return ClearAt(folder->get(), path, keep, 0);
}

Result<TreeKind> Tree::KindOf(const std::string& path) const {
  const auto place = Find(path, false);
  if (!place.has_value()) {
    return place.error().code == Code::kNotFound ? Result<TreeKind>(TreeKind::kNothing)
                                                 : Result<TreeKind>(place.error());
  }
  struct stat facts{};
  if (fstatat(place->parent.get(), place->name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? Result<TreeKind>(TreeKind::kNothing)
                           : Result<TreeKind>(ErrnoError("look at " + path));
  }
  return KindOfMode(facts.st_mode);
}

Status Tree::WalkAt(int folder, const std::string& path, std::size_t depth,
                    const Visit& visit) const {
  if (depth > limits_.depth_max + 1) {
    return Refused(path, "is nested too deep");
  }
  RINGFENCE_ASSIGN(const auto names, NamesIn(folder, path));
  for (const std::string& name : names) {
    TreeEntry entry;
    entry.path = Join(path, name);
    struct stat facts{};
    if (fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
      return ErrnoError("look at " + entry.path);
    }
    entry.kind = KindOfMode(facts.st_mode);
    entry.mode = facts.st_mode & 07777U;
    entry.bytes = static_cast<std::uint64_t>(facts.st_size);
    UniqueFd file;
    if (entry.kind == TreeKind::kLink) {
      std::array<char, 8192> target{};
      const ssize_t got = readlinkat(folder, name.c_str(), target.data(), target.size());
      if (got < 0) {
        return ErrnoError("read link " + entry.path);
      }
      entry.target.assign(target.data(), static_cast<std::size_t>(got));
    } else if (entry.kind == TreeKind::kFile || entry.kind == TreeKind::kFolder) {
      const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
      file = UniqueFd(openat(folder, name.c_str(),
                             entry.kind == TreeKind::kFolder ? flags | O_DIRECTORY : flags));
      if (!file.valid()) {
        return ErrnoError("open " + entry.path);
      }
    }
    RINGFENCE_TRY(visit(entry, entry.kind == TreeKind::kFile ? file.get() : -1));
    if (entry.kind == TreeKind::kFolder) {
      RINGFENCE_TRY(WalkAt(file.get(), entry.path, depth + 1, visit));
    }
  }
  return {};
}

Status Tree::Walk(const Visit& visit) const { return WalkAt(root_.get(), "", 0, visit); }

}  // namespace ringfence::os

#pragma once

// A folder that a stranger's names are put beneath. The kernel keeps every name inside (openat2
// with RESOLVE_IN_ROOT): a link in the tree, wherever it points, leads to a place in the tree.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

struct TreeLimits {
  std::size_t depth_max = 60;         // folders above an entry, links resolved
  std::size_t path_bytes_max = 2048;  // links resolved
  std::size_t name_bytes_max = 255;
};

enum class TreeKind { kNothing, kFile, kFolder, kLink, kOther };

struct TreeEntry {
  std::string path;  // "usr/bin/env"
  TreeKind kind = TreeKind::kNothing;
  unsigned mode = 0;  // permission bits, with set-user-id and the like
  std::uint64_t bytes = 0;
  std::string target;  // of a link
};

// Paths are relative, without ".", ".." or empty parts; what is not is kInvalidArgument. Parents
// that are not there are made. One thread.
class Tree {
 public:
  static Result<Tree> Open(const std::string& folder, const TreeLimits& limits = {});
  // A folder that is open already: what lies above it may be closed to this process.
  static Result<Tree> Take(UniqueFd folder, const TreeLimits& limits = {});

  // A folder that is there stays; anything else there is replaced.
  Status MakeFolder(const std::string& path);
  // Open for writing, empty. Replaces what is there; kConflict when that is a folder.
  Result<UniqueFd> MakeFile(const std::string& path, unsigned mode);
  Status MakeLink(const std::string& path, const std::string& target);
  // `existing` must be a plain file of the tree.
  Status MakeHardLink(const std::string& path, const std::string& existing);
  // Removes it and all beneath, but for paths in `keep` and what leads to them. Absent is OK.
  Status Remove(const std::string& path, const std::set<std::string>& keep);
  // The same for all that is in a folder, but not for the folder.
  Status Clear(const std::string& path, const std::set<std::string>& keep);
  // What is there; the last part is not followed, if it is a link.
  Result<TreeKind> KindOf(const std::string& path) const;

  // Visits everything, parents first, names sorted by bytes. `file` is open for reading for a plain
  // file, otherwise -1.
  using Visit = std::function<Status(const TreeEntry& entry, int file)>;
  Status Walk(const Visit& visit) const;

 private:
  Tree(UniqueFd root, std::string seen, const TreeLimits& limits)
      : root_(std::move(root)), seen_(std::move(seen)), limits_(limits) {}
  struct Place {
    UniqueFd parent;
    std::string name;
  };
  Result<UniqueFd> OpenFolder(const std::string& path) const;
  Result<Place> Find(const std::string& path, bool make_parents) const;
  Status CheckDepth(int folder, const std::string& path) const;
  Status MakeRoom(const Place& place, const std::string& path) const;
  Status RemoveAt(int parent, const std::string& name, const std::string& path,
                  const std::set<std::string>& keep, std::size_t depth) const;
  Status ClearAt(int folder, const std::string& path, const std::set<std::string>& keep,
                 std::size_t depth) const;
  Status WalkAt(int folder, const std::string& path, std::size_t depth, const Visit& visit) const;

  UniqueFd root_;
  std::string seen_;  // the root's own path, as the kernel tells it
  TreeLimits limits_;
};

// Why `path` is none that a Tree takes; for people.
Status CheckTreePath(std::string_view path, const TreeLimits& limits);

}  // namespace ringfence::os

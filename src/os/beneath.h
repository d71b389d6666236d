#pragma once

// Files beneath a folder that others may be changing at this moment: a container's root, a folder
// that other programs write to. Nothing here follows a link, steps out of the folder, or opens a
// device or a pipe; the kernel (openat2) holds to that for the whole path at once, so that nothing
// can be swapped between a check and its use.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

// A folder to start from. Its own path is the caller's: links in it are followed.
Result<UniqueFd> OpenFolder(const std::string& path);
// `path` as a process whose root is `root` would see it: links are followed, but never out of it.
Result<UniqueFd> OpenFolderInRoot(int root, const std::string& path);
// A folder that root alone can change: root owns it and everything above it, and nobody else may
// write there (above it: but for folders like /tmp, where nobody moves what is another's).
// kFailedPrecondition says which of them it is and why.
Result<UniqueFd> OpenFolderOfRoot(const std::string& path);

// Whatever lies at `path` beneath `folder`, to look at and to start from. kNotFound: nothing.
// kPermissionDenied: a link is on the way, or the path leaves the folder.
Result<UniqueFd> OpenBeneath(int folder, const std::string& path);

enum class Kind { kFile, kFolder, kLink, kCharacterDevice, kBlockDevice, kOther };
struct OpenFacts {
  Kind kind = Kind::kOther;
  unsigned uid = 0;
  unsigned mode = 0;  // the permission bits
  std::uint64_t file_system = 0;
  std::uint64_t inode = 0;
  std::uint32_t major = 0;  // of a device
  std::uint32_t minor = 0;
};
Result<OpenFacts> FactsOf(int fd);
// Of the name itself: a link is a link.
Result<OpenFacts> FactsBeneath(int folder, const std::string& name);

// The names in a folder, sorted; kExhausted when there are more than `count_max`.
Result<std::vector<std::string>> NamesIn(int folder, std::size_t count_max);
// A regular file, whole. kInvalidArgument when it is none, kExhausted over `bytes_max`.
Result<std::string> ReadBeneath(int folder, const std::string& path, std::size_t bytes_max);
// All or nothing, and durable: written beside, synced, renamed over. A name, not a path. What a
// crash may leave is StagedName(name), which no reader of the folder takes for a file of its own.
Status ReplaceBeneath(int folder, const std::string& name, std::string_view text, unsigned mode);
std::string StagedName(const std::string& name);
bool IsStagedName(std::string_view name);
Status RemoveBeneath(int folder, const std::string& name);  // a file or link; absent is OK. Durable
Status RenameBeneath(int folder, const std::string& from, const std::string& to);  // durable
Status MakeFolderBeneath(int folder, const std::string& name, unsigned mode);      // there is OK
Status RemoveFolderBeneath(int folder, const std::string& name);  // empty; absent is OK. Durable

// Where an open file lies, as far as the kernel can say.
Result<std::string> PathOf(int fd);

}  // namespace ringfence::os

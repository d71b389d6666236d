#pragma once

// Files that are written first and made durable later, several at a time: what a writer needs
// whose commit is one rename at the end. And opening a file that someone else prepared.

#include <cstdint>
#include <string>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

// Empty and open for writing, with exactly this mode whatever the umask. A link is refused.
Result<UniqueFd> OpenForWrite(const std::string& path, unsigned mode);
// Lets the disk begin with what was written, so that a later SyncData of several files need not
// wait for one after the other. Promises nothing.
void StartWriting(int fd);
// OK only when what was written to `fd` would survive a power cut. Not the file's name: SyncDir.
Status SyncData(int fd);
// The new name is not durable before a SyncDir of its folder.
Status RenameStaged(const std::string& from, const std::string& to);
// One folder, its parent must exist. True when it was made, false when it was there.
Result<bool> MakeDir(const std::string& path, unsigned mode);

struct RegularFile {
  UniqueFd fd;
  std::uint64_t bytes = 0;
};
// For reading. kInvalidArgument when it is a link, a pipe, a device or a folder: none of these can
// make the reader wait or wander off.
Result<RegularFile> OpenRegular(const std::string& path);

}  // namespace ringfence::os

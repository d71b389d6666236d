#pragma once

// The last step of work that is all or nothing: everything is written beside, made durable at once,
// and gets its name.

#include <string>

#include "base/result.h"

namespace ringfence::os {

// kConflict when `to` exists; nothing is ever replaced. Durable.
Status RenameNew(const std::string& from, const std::string& to);

// OK only when all that was written to the file system of `path` would survive a power cut.
Status SyncFileSystem(const std::string& path);

}  // namespace ringfence::os

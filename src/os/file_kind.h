#pragma once

#include <string>

#include "base/result.h"

namespace ringfence::os {

enum class FileKind { kFile, kFolder, kLink, kOther };

// What lies at `path` itself: a link is a link, wherever it leads. Opening what is kOther (a pipe,
// a device) may block or act.
Result<FileKind> KindOf(const std::string& path);

}  // namespace ringfence::os

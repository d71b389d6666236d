#include "os/file_kind.h"

#include <sys/stat.h>

#include "os/error.h"

namespace ringfence::os {

Result<FileKind> KindOf(const std::string& path) {
  struct stat facts{};
  if (lstat(path.c_str(), &facts) != 0) {
    return ErrnoError("look at " + path);
  }
  if (S_ISREG(facts.st_mode)) {
    return FileKind::kFile;
  }
  if (S_ISDIR(facts.st_mode)) {
    return FileKind::kFolder;
  }
  return S_ISLNK(facts.st_mode) ? FileKind::kLink : FileKind::kOther;
}

}  // namespace ringfence::os

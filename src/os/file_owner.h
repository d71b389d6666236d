#pragma once

#include <string>

#include "base/result.h"

namespace ringfence::os {

struct FileOwner {
  unsigned uid = 0;
  unsigned gid = 0;
  unsigned mode = 0;  // the permission bits
};
Result<FileOwner> OwnerOf(const std::string& path);
Status ChangeOwner(int fd, unsigned uid, unsigned gid);  // of an open file, pipe or socket

}  // namespace ringfence::os

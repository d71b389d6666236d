#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace ringfence::os {

// By which a change of a file is noticed without reading it.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  // since 1970
  std::uint64_t inode = 0;
};
Result<FileStamp> StampOf(const std::string& path);  // links followed

}  // namespace ringfence::os

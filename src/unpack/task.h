#pragma once

// What ringfence-unpack does. Everything it touches is open already:
//   resolve (--tar FD | --file FD=NAME...) [--tag T] [--digest D]     {"digest"}
//   unpack  --tree FD, and the same                                   image::Report
//   check   --tree FD                                                 {"tree_digest"}

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ringfence::image {

Result<std::string> RunTask(const std::vector<std::string_view>& words);

}  // namespace ringfence::image

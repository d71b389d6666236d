#pragma once

#include <string>

namespace ringfence::policy {

struct Source {      // where a thing is written
  std::string file;  // relative to the folder
  int line = 0;
};

}  // namespace ringfence::policy

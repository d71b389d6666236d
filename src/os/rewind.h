#pragma once

#include "base/result.h"

namespace ringfence::os {

Status Rewind(int fd);  // to the start of the file

}  // namespace ringfence::os

#include "os/rewind.h"

#include <unistd.h>

#include "os/error.h"

namespace ringfence::os {

Status Rewind(int fd) {
  return lseek(fd, 0, SEEK_SET) == 0 ? Status() : Status(ErrnoError("go to the start of a file"));
}

}  // namespace ringfence::os

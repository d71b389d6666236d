#pragma once

// A file without a name, in memory: how one process hands another a text of any length.

#include "base/bytes.h"
#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

// Holds `bytes`, positioned at its start, and can never be changed again (sealed).
Result<UniqueFd> MakeMemoryFile(std::string_view name, ByteView bytes);
// From its start. kExhausted when it holds more than `bytes_max`.
Result<Bytes> ReadMemoryFile(int fd, std::size_t bytes_max);

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
Result<Pipe> MakePipe();  // close-on-exec

}  // namespace ringfence::os

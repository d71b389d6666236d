#include "os/capture.h"

#include <array>

#include "os/file.h"
#include "os/memory_file.h"
#include "os/process.h"

namespace ringfence::os {

Result<std::string> Capture(const std::vector<std::string>& arguments, std::size_t bytes_max) {
  RINGFENCE_ASSIGN(Pipe out, MakePipe());
  SpawnOptions spawn;
  spawn.path = arguments.at(0);
  spawn.arguments = arguments;
  spawn.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"};
  spawn.fds = {{out.write.get(), 1}};
  RINGFENCE_ASSIGN(const int pid, Spawn(spawn));
  out.write.Reset();
  std::string text;
  std::array<std::byte, 65536> chunk{};
  for (;;) {
    const auto got = ReadSome(out.read.get(), chunk);
    if (!got.has_value() || *got == 0 || text.size() + *got > bytes_max) {
      break;
    }
    text += AsText(ByteView(chunk).first(*got));
  }
  const auto more = ReadSome(out.read.get(), chunk);
  out.read.Reset();  // whoever prints on gets a broken pipe
  const Ended ended = WaitFor(pid);
  if (!more.has_value() || *more != 0) {
    return Error{Code::kExhausted, arguments[0] + " prints too much"};
  }
  if (ended.signalled || ended.code != 0) {
    return Error{Code::kUnavailable, arguments[0] + " failed"};
  }
  return text;
}

}  // namespace ringfence::os

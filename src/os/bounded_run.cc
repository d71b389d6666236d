#include "os/bounded_run.h"

#include <signal.h>

#include <array>

#include "os/file.h"
#include "os/memory_file.h"

namespace ringfence::os {

Result<Finished> RunBounded(SpawnOptions spawn, const BoundedRun& bounds) {
  RINGFENCE_ASSIGN(Pipe out, MakePipe());
  spawn.fds.emplace_back(out.write.get(), 1);
  if (bounds.with_errors) {
    spawn.fds.emplace_back(out.write.get(), 2);
  }
  spawn.new_session = true;
  spawn.parent_death_signal = SIGKILL;
  RINGFENCE_ASSIGN(const int pid, Spawn(spawn));
  out.write.Reset();
  const auto end_it = [pid] {
    (void)kill(-pid, SIGKILL);
    (void)WaitFor(pid);
  };
  auto process = OpenProcess(pid);
  if (!process.has_value()) {
    end_it();
    return process.error();
  }
  const auto deadline = std::chrono::steady_clock::now() + bounds.time_max;
  Finished finished;
  std::array<std::byte, 65536> chunk{};
  for (bool ended = false; !ended || out.read.valid();) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      end_it();
      return Error{Code::kUnavailable,
                   "did not finish within " + std::to_string(bounds.time_max.count()) + " ms"};
    }
    std::vector<PollItem> items;
    if (!ended) {
      items.push_back({process->get()});
    }
    if (out.read.valid()) {
      items.push_back({out.read.get()});
    }
    (void)Poll(items, left);
    if (out.read.valid() && (items.back().ready || items.back().hung_up)) {
      const auto got = ReadSome(out.read.get(), chunk);
      if (!got.has_value() || *got == 0) {
        out.read.Reset();
      } else if (finished.text.size() + *got > bounds.bytes_max) {
        end_it();
        return Error{Code::kExhausted, "prints too much"};
      } else {
        finished.text += AsText(ByteView(chunk).first(*got));
      }
    }
    if (!ended && items.front().fd == process->get() &&
        (items.front().ready || items.front().hung_up)) {
      ended = true;
      finished.ended = WaitFor(pid);
      (void)kill(-pid, SIGKILL);  // what it left behind, which may hold the pipe
    }
  }
  return finished;
}

}  // namespace ringfence::os

#pragma once

// Starting, watching and ending other processes.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/unique_fd.h"

namespace ringfence::os {

struct SpawnOptions {
  std::string path;  // what to execute, unless `exec_fd` says it
  int exec_fd = -1;  // an open program: its folder may then be closed to the new process
  std::vector<std::string> arguments;    // with the program's own name first
  std::vector<std::string> environment;  // "K=V"; nothing is inherited
  // {ours, theirs}: descriptors the program gets. 0, 1 and 2 are /dev/null unless named here;
  // every other descriptor of ours is closed to it.
  std::vector<std::pair<int, int>> fds;
  bool new_session = false;
  int parent_death_signal = 0;  // sent to it when the calling thread ends
  // Runs in the new process before the program does. Only for processes with one thread, as it
  // may do anything.
  std::function<Status()> before_exec;
};

// Returns the process id once the program runs, or why it could not be started.
Result<int> Spawn(const SpawnOptions& options);

struct Ended {
  int pid = 0;
  bool signalled = false;
  int code = 0;  // exit status, or the signal's number
};
// Children (also those inherited as a subreaper) that have ended; never waits.
std::vector<Ended> ReapChildren();
Ended WaitFor(int pid);

Result<UniqueFd> OpenProcess(int pid);     // a pidfd
Status SendSignal(int pidfd, int signal);  // OK when it has already ended

// Blocks these signals for the calling thread and those it starts, and makes them readable.
Result<UniqueFd> OpenSignals(const std::vector<int>& signals);
// The next signal's number; 0 when none is waiting.
int ReadSignal(int signals_fd);

struct PollItem {
  int fd = -1;
  bool write = false;    // wait for room instead of something to read
  bool ready = false;    // out
  bool hung_up = false;  // out: the other side has closed, or an error
};
// Waits for any of them; nullopt waits for ever. Interrupted waits return with nothing ready.
Status Poll(std::vector<PollItem>& items, std::optional<std::chrono::milliseconds> timeout);

}  // namespace ringfence::os

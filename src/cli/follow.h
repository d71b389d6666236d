#pragma once

// Follows a job's output to its end, across restarts of the server and presses of Ctrl-C.

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/api.h"
#include "cli/console.h"
#include "cli/presses.h"

namespace ringfence::cli {

inline constexpr int kExitTimeout = 124;  // the job ran past its --timeout
inline constexpr int kExitNotRun = 125;   // the job could not be run, and has no code of its own
inline constexpr int kExitOutOfMemory = 137;  // as a shell shows a killed process
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitBrokenPipe = 141;

struct FollowOptions {
  bool wait = true;             // for the job's end; else only what is there now
  bool end_on_press = false;    // the first press ends the lease; else it ends the following
  bool all_to_stderr = false;   // standard output is needed for something else
  Milliseconds poll{20000};     // how long one request waits at the server
  Milliseconds give_up{60000};  // how long to try to reach the server again
  Milliseconds first_pause{250};
};

struct JobEnd {
  bool complete = false;     // the job has ended and all of its output was shown
  bool left = false;         // the user went away before that
  bool output_lost = false;  // nobody reads our output any more
  std::string state;
  std::string outcome;
  std::string reason;
  std::optional<int> exit_code;
  std::uint64_t dropped_bytes = 0;
};

Result<JobEnd> Follow(Api& api, Console& console, Presses& presses, const std::string& lease,
                      const FollowOptions& options);

// What `run` exits with: the job's own code, or what stands for how it ended.
int JobExitStatus(const std::string& outcome, std::optional<int> exit_code);

}  // namespace ringfence::cli

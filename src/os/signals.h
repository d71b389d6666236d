#pragma once

#include <chrono>
#include <vector>

#include "base/result.h"

namespace ringfence::os {

enum class Signal { kNone, kStop, kReload, kChild };

// Keeps SIGTERM, SIGINT, SIGHUP and SIGCHLD for WaitForSignal in this and every later thread, and
// has writes to a closed pipe fail instead of killing the process. Call before making threads.
void HoldSignals();
// Undoes the mask; for a child process before it executes another program.
void ReleaseSignals();
// kNone when nothing came in time.
Signal WaitForSignal(std::chrono::milliseconds timeout);

}  // namespace ringfence::os

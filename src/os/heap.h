#pragma once

namespace ringfence::os {

// For a process with many threads that must stay small: they share a few heaps instead of having
// one each, so that what one frees is there for the next. Before the threads are started.
void ShareHeaps();

}  // namespace ringfence::os

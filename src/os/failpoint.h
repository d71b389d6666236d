#pragma once

// Named places where a test makes a program stop, die or fail, and a clock and a disk that a test
// can spoil. Compiled into test builds only (RINGFENCE_FAILPOINTS); in a release the macros expand
// to nothing and failpoint.cc is empty.
//
// A test makes a file of kTableBytes, says its path in RINGFENCE_FAIL_FILE and starts `ringfence
// up`. Every process that comes of it maps the file, handed on as a descriptor: most of them could
// not open it. So a place can be armed while they run, and its hits be seen (tests/faults/fail.py).

#ifdef RINGFENCE_FAILPOINTS

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringfence::os::failpoint {

// Every name, once. tests/faults walks those of a lease's life (not mig, not disk), and fails for
// one that is never reached.
inline constexpr std::string_view kNames[] = {
    // The server, around each commit of a lease's life.
    "server.request",
    "server.requested",
    "server.grant",
    "server.granted",
    "server.start",
    "server.started",
    "server.output",
    "server.output_kept",
    "server.end_asked",
    "server.end",
    "server.ended",
    "server.receipt",
    "server.receipt_taken",
    "store.commit",
    "store.committed",
    "sequencer.append",
    "sequencer.appended",
    "sequencer.published",
    // The agent, around each thing it asks of its jailer and says to the server.
    "agent.start",
    "agent.started",
    "agent.said_started",
    "agent.output",
    "agent.output_sent",
    "agent.end",
    "agent.ended",
    "agent.said_ended",
    "agent.scrubbed",
    "agent.delivered",
    "agent.forgot",
    "agent.recover",
    "agent.reported",
    // The jailer: a box from grant to nothing, a scrub from request to receipt.
    "jailer.start",
    "jailer.begun",
    "jailer.built",
    "jailer.launched",
    "jailer.runtime_ended",
    "jailer.connected",
    "jailer.running",
    "jailer.box_ended",
    "jailer.taken_down",
    "jailer.ended",
    "jailer.scrub",
    "jailer.dirty",
    "jailer.worker_started",
    "jailer.worker_ended",
    "jailer.sealed",
    "jailer.scrubbed",
    "jailer.forget",
    "jailer.forget_noted",
    "jailer.forgotten",
    "jailer.recover",
    "jailer.recovered",
    // The worker that scrubs.
    "worker.begin",
    "worker.overwritten",
    "worker.scrubbed",
    "worker.printed",
    // Process 1 of a box.
    "init.begin",
    "init.forked",
    "init.ready",
    "init.command_ended",
    "init.said_ending",
    // A reshape of a GPU: what is to be is written down, done by a worker, forgotten.
    "mig.wished",
    "mig.unmade",
    "mig.mode",
    "mig.made",
    "mig.reached",
    // The C library's own calls, so that SQLite is covered too. Regular files only.
    "disk.write",
    "disk.sync",
    "disk.rename",
};
inline constexpr std::size_t kCount = sizeof kNames / sizeof kNames[0];

// A name that is not in the list does not compile.
consteval std::size_t IndexOf(std::string_view name) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (kNames[i] == name) {
      return i;
    }
  }
  throw "no such failpoint";
}

// Counts the hit and does what the place is armed with. 0: go on; else the errno to fail with,
// or kTorn.
inline constexpr int kTorn = -1;
int Hit(std::size_t index);
[[noreturn]] void Die();
// How far the test has put the clock forward.
std::int64_t ClockOffsetMillis();

// The descriptor number under which a new process finds the table, and those that boxes use.
inline constexpr int kHandedOnFd = 999;
inline constexpr int kBoxFd = 4;
// The table's descriptor here; -1: none, and nothing ever happens.
int TableFd();
// Between fork and exec: the program to be executed will find the table.
void HandOn();
// Takes the table from this descriptor, if it is one.
void TakeFrom(int fd);

}  // namespace ringfence::os::failpoint

#define RINGFENCE_FAILPOINT(name) \
  (void)::ringfence::os::failpoint::Hit(::ringfence::os::failpoint::IndexOf(name))

#else

#define RINGFENCE_FAILPOINT(name) static_cast<void>(0)

#endif

#include "os/failpoint.h"

#ifdef RINGFENCE_FAILPOINTS

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace ringfence::os::failpoint {
namespace {

constexpr std::uint64_t kMagic = 0x31304c4941464652;  // "RFFAIL01"
constexpr int kSlotsMax = 255;
// A test that was killed must not leave a program stopped for ever.
constexpr int kStoppedMillisMax = 60000;

enum Action : std::uint32_t { kNothing, kStop, kKill, kError, kTornWrite, kDelay };

// One line of cache each; tests/faults/fail.py knows the layout.
struct alignas(64) Slot {
  std::atomic<std::uint32_t> action;
  std::atomic<std::uint32_t> argument;  // an errno, or milliseconds
  std::atomic<std::uint32_t> skip;      // hits to let pass first
  std::atomic<std::uint32_t> times;     // then so often
  std::atomic<std::uint32_t> only_pid;  // 0: whoever comes
  std::atomic<std::uint32_t> hits;
  std::atomic<std::uint32_t> stopped_pid;
};
struct alignas(64) Table {
  std::uint64_t magic;
  std::atomic<std::int64_t> clock_offset_ms;
  alignas(64) Slot slots[kSlotsMax];
};
static_assert(sizeof(Table) == 64 * (kSlotsMax + 1) && kCount <= kSlotsMax);

std::atomic<Table*> g_table{nullptr};
std::atomic<int> g_fd{-1};

Table* TheTable() { return g_table.load(std::memory_order_acquire); }

void SleepMillis(int millis) {
  const timespec time{millis / 1000, millis % 1000 * 1000000L};
  (void)nanosleep(&time, nullptr);
}

bool TakeOne(std::atomic<std::uint32_t>& count) {
  std::uint32_t have = count.load();
  while (have > 0) {
    if (count.compare_exchange_weak(have, have - 1)) {
      return true;
    }
  }
  return false;
}

void Stop(Slot& slot) {
  slot.stopped_pid = static_cast<std::uint32_t>(getpid());
  for (int i = 0; i < kStoppedMillisMax && slot.action.load() == kStop; ++i) {
    SleepMillis(1);
  }
  slot.stopped_pid = 0;
}

// Before main, while the environment and the file system are still the test's.
const bool g_found = [] {
  TakeFrom(kHandedOnFd);
  const char* path = getenv("RINGFENCE_FAIL_FILE");
  if (TheTable() == nullptr && path != nullptr) {
    TakeFrom(open(path, O_RDWR | O_CLOEXEC));
  }
  return TheTable() != nullptr;
}();

}  // namespace

void Die() {
  (void)kill(getpid(), SIGKILL);
  _exit(128 + SIGKILL);  // process 1 of a box is deaf to its own signals
}

std::int64_t ClockOffsetMillis() {
  const Table* const table = TheTable();
  return table == nullptr ? 0 : table->clock_offset_ms.load();
}

void TakeFrom(int fd) {
  struct stat facts{};
  if (fd < 0 || TheTable() != nullptr || fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode) ||
      facts.st_size != static_cast<off_t>(sizeof(Table))) {
    return;
  }
  void* const at = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    return;
  }
  if (static_cast<Table*>(at)->magic != kMagic) {
    (void)munmap(at, sizeof(Table));
    return;
  }
  (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
  g_fd = fd;
  g_table.store(static_cast<Table*>(at), std::memory_order_release);
}

int TableFd() { return g_fd; }

void HandOn() {
  if (g_fd == kHandedOnFd) {
    (void)fcntl(kHandedOnFd, F_SETFD, 0);
  } else if (g_fd >= 0) {
    (void)dup2(g_fd, kHandedOnFd);
  }
}

int Hit(std::size_t index) {
  Table* const table = TheTable();
  if (table == nullptr) {
    return 0;
  }
  Slot& slot = table->slots[index];
  slot.hits.fetch_add(1);
  const std::uint32_t action = slot.action.load();
  const std::uint32_t only = slot.only_pid.load();
  if (action == kNothing || (only != 0 && only != static_cast<std::uint32_t>(getpid())) ||
      TakeOne(slot.skip) || !TakeOne(slot.times)) {
    return 0;
  }
  switch (action) {
    case kStop:
      Stop(slot);
      return 0;
    case kKill:
      Die();
    case kError:
      return static_cast<int>(slot.argument.load());
    case kTornWrite:
      return kTorn;
    case kDelay:
      SleepMillis(static_cast<int>(slot.argument.load()));
      return 0;
    default:
      return 0;
  }
}

}  // namespace ringfence::os::failpoint

#endif

#pragma once

// Workers: they load a vendor's library and make a context on a card, and so run with
// nothing but that card: their own user, no capability, no network, a /dev of their own, Landlock
// and a seccomp filter.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device_files.h"
#include "os/unique_fd.h"

namespace ringfence::isolate {

enum class WorkerWalls {
  kAll,       // as root on a machine that can run boxes
  kUserOnly,  // as root where namespaces cannot be had: inventory only, no box runs there anyway
  kSameUser,  // not root: inventory only, as whoever started us
};

struct WorkerPlace {
  std::string program;  // the ringfence-worker binary
  std::string driver_root = "/";
  std::string run_folder;  // the jailer's tmpfs; used with kAll
  unsigned uid = 0;        // of workers; used unless kSameUser
  WorkerWalls walls = WorkerWalls::kSameUser;
  int kernel_log = -1;  // the kernel's log, open, for the sensor; -1: it may not be read
};

struct StartedWorker {
  int pid = 0;
  os::UniqueFd out;  // its one JSON document, to end of file; non-blocking
};

// Shows the worker every card.
Result<StartedWorker> StartInventory(const WorkerPlace& place);
// The same, and stays: prints a line of JSON (gpu/readings.h) each second and at each fault.
Result<StartedWorker> StartSense(const WorkerPlace& place);
// Shows it these cards and no other. Simulated memory belongs to the worker's user until
// FinishScrub gives it back to root; call that whenever the worker has ended.
Result<StartedWorker> StartScrub(const WorkerPlace& place, const std::vector<gpu::WantedGpu>& gpus);
Status FinishScrub(const WorkerPlace& place, const std::vector<gpu::WantedGpu>& gpus);

// Reads MIG of one GPU, or changes it: may configure MIG, and sees this GPU and no other.
struct MigChange {
  std::string target;  // gpu::ParseMigTarget
  std::string before;  // what is put back where that fails
};
Result<StartedWorker> StartMig(const WorkerPlace& place, const gpu::WantedGpu& gpu,
                               const std::optional<MigChange>& change);

}  // namespace ringfence::isolate

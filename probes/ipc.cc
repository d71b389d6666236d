// Attacks on System V shared memory.

#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "util.h"

namespace ringfence::probe {
namespace {

constexpr std::size_t kBytes = 4096;

// Readable to all, as many programs make them. Marked for removal at once: it lives as long as we.
void PlantSegment(Victim& victim) {
  const int id = shmget(IPC_PRIVATE, kBytes, IPC_CREAT | 0666);
  void* const at = id < 0 ? nullptr : shmat(id, nullptr, 0);
  if (id < 0 || at == reinterpret_cast<void*>(-1)) {
    victim.CouldNotPlant("shmget", errno);
    return;
  }
  std::memcpy(at, victim.secret.data(), victim.secret.size());
  (void)shmctl(id, IPC_RMID, nullptr);
  victim.facts["segment"] = std::to_string(id);
}

Outcome AttackSegments(const Input& input) {
  shmid_ds facts{};
  const int last = shmctl(0, SHM_INFO, &facts);
  if (last < 0) {
    return Refused("shmctl(SHM_INFO)", errno, {ENOSYS});
  }
  int seen = 0;
  int error = 0;
  for (int index = 0; index <= last; ++index) {
    const int id = shmctl(index, SHM_STAT, &facts);
    if (id < 0) {
      error = errno == EINVAL ? error : errno;
      continue;
    }
    ++seen;
    const void* const at = shmat(id, nullptr, SHM_RDONLY);
    if (at == reinterpret_cast<void*>(-1)) {
      error = errno;
      continue;
    }
    if (facts.shm_segsz >= 32 && input.IsSecret({static_cast<const char*>(at), 32})) {
      return Leaked(32, "the secret was in a shared memory segment");
    }
    (void)shmdt(at);
  }
  return Held(std::to_string(seen) + " segments are here, and the secret is in none of them" +
              (error == 0 ? "" : "; " + Words(error)));
}

constexpr Code kCodes[] = {{"sysv-shm", AttackSegments, PlantSegment}};

}  // namespace

std::span<const Code> IpcAttacks() { return kCodes; }

}  // namespace ringfence::probe

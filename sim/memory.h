#pragma once

// A simulated GPU's memory, shared by every process that uses the card.
//
// What it holds lies in <root>/memory/<uuid>, and nothing clears it but a write. Who has what of
// it is kept by the kernel: a process holds a read lock (fcntl) on the GPU's `information` file,
//   bytes [0, memory size)       for each range it has allocated,
//   one byte from kContextBase   as long as it has a context,
// so a process that is killed gives back what it had, no table can be left broken, and a reader in
// any pid namespace sees the owner's id as its own namespace knows it. Taking a range is guarded
// by a write lock on one byte beyond the end of the memory file.
//
// POSIX drops a process's locks on a file when it closes *any* descriptor of it. So each file is
// opened once in a process's life and never closed before the library goes; and the NVML stand-in,
// which a program may load and unload while CUDA has memory, never goes (-z nodelete).

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/scenario.h"

namespace ringfence::sim {

inline constexpr std::uint64_t kContextBase = std::uint64_t{1} << 50U;
inline constexpr std::uint64_t kContextsMax = 4096;

struct Held {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t pid = 0;  // 0: not visible from here
};

// The locks on [start, end) of an `information` file: all of them, or those of other processes.
enum class Whose { kAll, kOthers };
std::vector<Held> ListHeld(int information_fd, std::uint64_t start, std::uint64_t end, Whose whose);

// The descriptor of an `information` file, opened once and kept; -1 when it cannot be opened.
int InformationFd(const std::string& root, const gpu::SimulatedGpu& gpu);

// One card as one process uses it. Any thread.
class GpuMemory {
 public:
  // nullptr: the files are not there or may not be opened.
  static std::unique_ptr<GpuMemory> Open(const std::string& root, const gpu::SimulatedGpu& gpu);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  // Contexts of this process are counted; the first takes the lock and the last drops it.
  bool AddContext();
  void DropContext();

  // An offset that no other process has; nullopt when there is no gap so large.
  std::optional<std::uint64_t> Allocate(std::uint64_t bytes);
  bool Free(std::uint64_t offset);  // false: nothing was allocated there
  bool Holds(std::uint64_t offset, std::uint64_t bytes) const;  // inside one allocation of ours
  std::uint64_t FreeBytes() const;

  // The range must be held. False: the file system failed (full, or gone).
  bool Read(std::uint64_t offset, std::span<std::byte> into) const;
  bool Write(std::uint64_t offset, std::span<const std::byte> bytes);
  bool Fill(std::uint64_t offset, std::uint64_t bytes, std::uint32_t pattern);

  // On-chip memory as clients of one MPS daemon share it. It lies behind the card's memory in its
  // file, and holds something only as long as another process has a context.
  bool WriteChip(std::span<const std::byte> bytes);
  void ReadChip(std::span<std::byte> into) const;

 private:
  GpuMemory(gpu::SimulatedGpu gpu, int information, int memory)
      : gpu_(std::move(gpu)), information_(information), memory_(memory) {}
  bool Guard(bool take) const;
  bool Mark(std::uint64_t start, std::uint64_t bytes, bool held) const;
  std::vector<Held> Occupied() const;
  bool WearOut(std::uint64_t offset, std::uint64_t bytes);

  gpu::SimulatedGpu gpu_;
  int information_;
  int memory_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> ours_;  // offset to size
  unsigned contexts_ = 0;
  std::uint64_t context_slot_ = 0;
};

}  // namespace ringfence::sim

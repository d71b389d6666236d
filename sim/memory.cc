#include "memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

namespace ringfence::sim {
namespace {

constexpr std::uint64_t kGranule = 512;
constexpr std::uint64_t kGuardByte = std::uint64_t{1} << 51U;
constexpr std::size_t kHeldMax = 65536;
constexpr int kGuardTries = 5000;  // of a millisecond each
constexpr std::size_t kFillBytes = std::size_t{1} << 20U;

bool SetLock(int fd, short type, std::uint64_t start, std::uint64_t bytes) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(start);
  lock.l_len = static_cast<off_t>(bytes);
  return fcntl(fd, F_SETLK, &lock) == 0;
}

// Descriptors live as long as the library: see the top of memory.h.
class Descriptors {
 public:
  ~Descriptors() {
    for (const auto& [path, fd] : open_) {
      (void)close(fd);
    }
    for (const int fd : replaced_) {
      (void)close(fd);
    }
  }
  int Get(const std::string& path, int flags) {
    const std::lock_guard lock(mutex_);
    if (const auto found = open_.find(path); found != open_.end()) {
      struct stat held{};
      struct stat named{};
      if (fstat(found->second, &held) == 0 && stat(path.c_str(), &named) == 0 &&
          held.st_dev == named.st_dev && held.st_ino == named.st_ino) {
        return found->second;
      }
      replaced_.push_back(found->second);  // the path leads to another file now
      open_.erase(found);
    }
    const int fd = open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
      open_.emplace(path, fd);
    }
    return fd;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> open_;
  std::vector<int> replaced_;
};

Descriptors& OpenFiles() {
  static Descriptors descriptors;
  return descriptors;
}

}  // namespace

std::vector<Held> ListHeld(int information_fd, std::uint64_t start, std::uint64_t end,
                           Whose whose) {
  std::vector<Held> found;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> open = {{start, end}};
  while (!open.empty() && found.size() < kHeldMax) {
    const auto [from, to] = open.back();
    open.pop_back();
    if (from >= to) {
      continue;
    }
    // Asked for an open file description, the kernel shows the locks of processes, ours too;
    // asked for a process, it leaves out our own. A write lock clashes with every read lock.
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(from);
    lock.l_len = static_cast<off_t>(to - from);
    const int question = whose == Whose::kAll ? F_OFD_GETLK : F_GETLK;
    if (fcntl(information_fd, question, &lock) != 0 || lock.l_type == F_UNLCK) {
      continue;
    }
    const auto first = std::max(from, static_cast<std::uint64_t>(lock.l_start));
    const auto last =
        lock.l_len == 0 ? to : std::min(to, static_cast<std::uint64_t>(lock.l_start + lock.l_len));
    found.push_back({first, last, lock.l_pid > 0 ? static_cast<std::uint32_t>(lock.l_pid) : 0U});
    open.emplace_back(from, first);
    open.emplace_back(last, to);
  }
  std::sort(found.begin(), found.end(),
            [](const Held& a, const Held& b) { return a.start < b.start; });
  return found;
}

int InformationFd(const std::string& root, const gpu::SimulatedGpu& gpu) {
  return OpenFiles().Get(gpu::InformationPath(root, gpu), O_RDONLY);
}

std::unique_ptr<GpuMemory> GpuMemory::Open(const std::string& root, const gpu::SimulatedGpu& gpu) {
  const int information = InformationFd(root, gpu);
  const int memory = OpenFiles().Get(gpu::MemoryPath(root, gpu), O_RDWR);
  if (information < 0 || memory < 0) {
    return nullptr;
  }
  return std::unique_ptr<GpuMemory>(new GpuMemory(gpu, information, memory));
}

GpuMemory::~GpuMemory() {
  (void)Mark(0, gpu_.memory_bytes(), false);
  (void)Mark(kContextBase, kContextsMax, false);
}

bool GpuMemory::Mark(std::uint64_t start, std::uint64_t bytes, bool held) const {
  return SetLock(information_, held ? F_RDLCK : F_UNLCK, start, bytes);
}

bool GpuMemory::Guard(bool take) const {
  if (!take) {
    return SetLock(memory_, F_UNLCK, kGuardByte, 1);
  }
  // Never for ever: the holder may have been stopped between two steps.
  for (int i = 0; i < kGuardTries; ++i) {
    if (SetLock(memory_, F_WRLCK, kGuardByte, 1)) {
      return true;
    }
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
      return false;
    }
    const timespec pause{0, 1'000'000};
    (void)nanosleep(&pause, nullptr);
  }
  return false;
}

bool GpuMemory::AddContext() {
  const std::lock_guard lock(mutex_);
  if (contexts_ == 0) {
    if (!Guard(true)) {
      return false;
    }
    const std::vector<Held> held =
        ListHeld(information_, kContextBase, kContextBase + kContextsMax, Whose::kOthers);
    context_slot_ = kContextBase;
    for (const Held& one : held) {
      if (one.start > context_slot_) {
        break;
      }
      context_slot_ = std::max(context_slot_, one.end);
    }
    const bool marked = context_slot_ < kContextBase + kContextsMax && Mark(context_slot_, 1, true);
    (void)Guard(false);
    if (!marked) {
      return false;
    }
  }
  ++contexts_;
  return true;
}

void GpuMemory::DropContext() {
  const std::lock_guard lock(mutex_);
  if (contexts_ > 0 && --contexts_ == 0) {
    (void)Mark(context_slot_, 1, false);
  }
}

std::vector<Held> GpuMemory::Occupied() const {
  std::vector<Held> occupied = ListHeld(information_, 0, gpu_.usable_bytes(), Whose::kOthers);
  for (const auto& [offset, bytes] : ours_) {
    occupied.push_back({offset, offset + bytes, 0});
  }
  std::sort(occupied.begin(), occupied.end(),
            [](const Held& a, const Held& b) { return a.start < b.start; });
  return occupied;
}

std::optional<std::uint64_t> GpuMemory::Allocate(std::uint64_t bytes) {
  if (bytes == 0 || bytes > gpu_.usable_bytes()) {
    return std::nullopt;
  }
  bytes = (bytes + kGranule - 1) / kGranule * kGranule;
  const std::lock_guard lock(mutex_);
  if (!Guard(true)) {
    return std::nullopt;
  }
  std::uint64_t at = 0;
  for (const Held& one : Occupied()) {
    if (one.start >= at + bytes) {
      break;
    }
    at = std::max(at, (one.end + kGranule - 1) / kGranule * kGranule);
  }
  const bool marked = at + bytes <= gpu_.usable_bytes() && Mark(at, bytes, true);
  (void)Guard(false);
  if (!marked) {
    return std::nullopt;
  }
  // What its last owner left is cleared before anybody can see it, which is as good as at once.
  if (gpu_.scrubs_on_free && !Fill(at, bytes, 0)) {
    (void)Mark(at, bytes, false);
    return std::nullopt;
  }
  ours_.emplace(at, bytes);
  return at;
}

bool GpuMemory::Free(std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto found = ours_.find(offset);
  if (found == ours_.end()) {
    return false;
  }
  const std::uint64_t bytes = found->second;
  ours_.erase(found);
  return Mark(offset, bytes, false);
}

bool GpuMemory::Holds(std::uint64_t offset, std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto found = ours_.upper_bound(offset);
  if (found == ours_.begin()) {
    return false;
  }
  --found;
  const std::uint64_t inside = offset - found->first;
  return inside <= found->second && bytes <= found->second - inside;
}

std::uint64_t GpuMemory::FreeBytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t used = 0;
  for (const Held& one : Occupied()) {
    used += one.end - one.start;
  }
  return gpu_.usable_bytes() - std::min(used, gpu_.usable_bytes());
}

bool GpuMemory::Read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = pread(memory_, into.data(), into.size(), static_cast<off_t>(offset));
    if (got <= 0) {
      if (got < 0 && errno == EINTR) {
        continue;
      }
      return false;
    }
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

bool GpuMemory::WriteChip(std::span<const std::byte> bytes) {
  return pwrite(memory_, bytes.data(), bytes.size(), static_cast<off_t>(gpu_.memory_bytes())) ==
         static_cast<ssize_t>(bytes.size());
}

void GpuMemory::ReadChip(std::span<std::byte> into) const {
  std::fill(into.begin(), into.end(), std::byte{0});
  if (!ListHeld(information_, kContextBase, kContextBase + kContextsMax, Whose::kOthers).empty()) {
    (void)Read(gpu_.memory_bytes(), into);
  }
}

bool GpuMemory::Write(std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t start = offset;
  const std::uint64_t size = bytes.size();
  while (!bytes.empty()) {
    const ssize_t put = pwrite(memory_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0) {
      if (errno == EINTR) {
        continue;
      }
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return WearOut(start, size);
}

bool GpuMemory::Fill(std::uint64_t offset, std::uint64_t bytes, std::uint32_t pattern) {
  // Zeros need no room on disk.
  if (pattern == 0 && fallocate(memory_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) {
    return WearOut(offset, bytes);
  }
  std::vector<std::byte> block(std::min<std::uint64_t>(kFillBytes, bytes));
  for (std::size_t i = 0; i < block.size(); ++i) {
    block[i] = static_cast<std::byte>((pattern >> (8U * (i % 4))) & 0xffU);
  }
  while (bytes > 0) {
    const std::uint64_t part = std::min<std::uint64_t>(block.size(), bytes);
    if (!Write(offset, std::span(block).first(part))) {
      return false;
    }
    offset += part;
    bytes -= part;
  }
  return true;
}

// What bad bytes make of what was just written over them.
bool GpuMemory::WearOut(std::uint64_t offset, std::uint64_t bytes) {
  for (const gpu::BadByte& bad : gpu_.bad_memory) {
    if (bad.offset < offset || bad.offset - offset >= bytes) {
      continue;
    }
    std::array<std::byte, 1> cell{};
    if (!Read(bad.offset, cell)) {
      return false;
    }
    cell[0] = (cell[0] & std::byte{bad.and_mask}) | std::byte{bad.or_mask};
    if (pwrite(memory_, cell.data(), 1, static_cast<off_t>(bad.offset)) != 1) {
      return false;
    }
  }
  return true;
}

}  // namespace ringfence::sim

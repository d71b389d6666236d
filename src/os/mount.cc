#include "os/mount.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "os/error.h"
#include "os/process.h"

namespace ringfence::os {
namespace {

constexpr int kStackedMountsMax = 16;

unsigned long FlagIf(bool on, unsigned long flag) { return on ? flag : 0; }

Status TryInChild(int flags, std::string_view what) {
  const pid_t pid = fork();
  if (pid < 0) {
    return ErrnoError("start a process");
  }
  if (pid == 0) {
    _exit(unshare(flags) == 0 ? 0 : errno);
  }
  const Ended ended = WaitFor(pid);
  if (ended.signalled || ended.code != 0) {
    return ErrnoError(what, ended.signalled ? EPERM : ended.code);
  }
  return {};
}

}  // namespace

Status EnterNewNamespaces(const Namespaces& wanted) {
  int flags = 0;
  flags |= wanted.mount ? CLONE_NEWNS : 0;
  flags |= wanted.network ? CLONE_NEWNET : 0;
  flags |= wanted.ipc ? CLONE_NEWIPC : 0;
  flags |= wanted.uts ? CLONE_NEWUTS : 0;
  if (unshare(flags) != 0) {
    return ErrnoError("enter new namespaces");
  }
  if (wanted.mount && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return ErrnoError("make mounts private");
  }
  return {};
}

Status MountTmpfs(const std::string& path, const TmpfsOptions& options) {
  std::array<char, 96> data{};
  (void)snprintf(data.data(), data.size(), "mode=%04o,size=%llu", options.mode,
                 static_cast<unsigned long long>(options.bytes_max));
  const unsigned long flags =
      MS_NOSUID | FlagIf(!options.devices, MS_NODEV) | FlagIf(!options.programs, MS_NOEXEC);
  if (mount("ringfence", path.c_str(), "tmpfs", flags, data.data()) != 0) {
    return ErrnoError("mount tmpfs on " + path);
  }
  return {};
}

Status BindMount(const std::string& from, const std::string& to, const BindOptions& options) {
  if (mount(from.c_str(), to.c_str(), nullptr, MS_BIND | FlagIf(options.recursive, MS_REC),
            nullptr) != 0) {
    return ErrnoError("bind " + from + " to " + to);
  }
  const unsigned long flags = MS_BIND | MS_REMOUNT | MS_NOSUID |
                              FlagIf(options.read_only, MS_RDONLY) |
                              FlagIf(!options.devices, MS_NODEV);
  if (mount("none", to.c_str(), nullptr, flags, nullptr) != 0) {
    return ErrnoError("limit the mount at " + to);
  }
  return {};
}

Status UnmountIfMounted(const std::string& path) {
  for (int i = 0; i < kStackedMountsMax; ++i) {
    if (umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0) {
      if (errno == EINVAL || errno == ENOENT) {
        return {};
      }
      return ErrnoError("unmount " + path);
    }
  }
  return Error{Code::kInternal, "unmount " + path + ": too many mounts on each other"};
}

Status MakeNode(const std::string& path, const NodeOptions& options) {
  const mode_t kind = options.block ? S_IFBLK : S_IFCHR;
  if (mknod(path.c_str(), kind | options.mode, makedev(options.major, options.minor)) != 0 ||
      lchown(path.c_str(), options.uid, options.gid) != 0 ||
      chmod(path.c_str(), options.mode) != 0) {
    return ErrnoError("make device node " + path);
  }
  return {};
}

Status MakeLink(const std::string& target, const std::string& path) {
  if (symlink(target.c_str(), path.c_str()) != 0) {
    return ErrnoError("make link " + path);
  }
  return {};
}

Result<std::string> ReadLink(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t got = readlink(path.c_str(), target.data(), target.size());
  if (got < 0 || got == static_cast<ssize_t>(target.size())) {
    return Error{Code::kNotFound, path + " is not a link"};
  }
  return std::string(target.data(), static_cast<std::size_t>(got));
}

Status TryNamespaces() {
  return TryInChild(
      CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID | CLONE_NEWCGROUP,
      "make namespaces");
}

Status TryUserNamespace() { return TryInChild(CLONE_NEWUSER, "make a user namespace"); }

}  // namespace ringfence::os

#include "isolate/box_root.h"

#include "os/file.h"
#include "os/mount.h"

namespace ringfence::isolate {
namespace {

struct TextFile {
  const char* path;
  const char* text;
};

constexpr TextFile kEtcFiles[] = {
    {"/etc/passwd",
     "root:x:0:0:root:/:/usr/sbin/nologin\n"
     "job:x:1000:1000:job:/home/job:/bin/sh\n"
     "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"},
    {"/etc/group", "root:x:0:\ntty:x:5:\njob:x:1000:\nnogroup:x:65534:\n"},
    {"/etc/hosts", "127.0.0.1 localhost box\n::1 localhost box\n"},
    {"/etc/hostname", "box\n"},
    {"/etc/resolv.conf", ""},  // a box with rules to names has one mounted over it
    {"/etc/nsswitch.conf",
     "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n"
     "protocols: files\n"},
};

constexpr const char* kSkeletonFolders[] = {
    "/dev", "/etc", "/home", "/home/job", "/proc", "/run", "/run/ringfence", "/sys", "/tmp",
};
constexpr const char* kHostFolders[] = {"/etc/ssl", "/usr", "/var", "/var/tmp"};

// What programs of the host's /usr look for in /etc, and that says nothing about the host's
// people, keys or services.
constexpr const char* kHostEtc[] = {
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/mime.types",   "/etc/protocols",   "/etc/services",   "/etc/ssl/certs",
};

constexpr const char* kMergedFolders[] = {"bin", "sbin", "lib", "lib64", "lib32", "libx32"};

Status MakeOwned(const std::string& path, unsigned mode, unsigned uid) {
  RINGFENCE_TRY(os::MakeDirs(path, mode));
  RINGFENCE_TRY(os::ChangeMode(path, mode));  // whatever the umask
  return os::ChangeOwner(path, uid, uid);
}

Status WriteOwned(const std::string& path, std::string_view text, unsigned uid) {
  RINGFENCE_TRY(os::WriteFile(path, AsBytes(text), 0444));
  RINGFENCE_TRY(os::ChangeMode(path, 0444));
  return os::ChangeOwner(path, uid, uid);
}

}  // namespace

Status BuildSkeleton(const std::string& folder, unsigned owner_uid) {
  for (const char* path : kSkeletonFolders) {
    RINGFENCE_TRY(MakeOwned(folder + path, 0755, owner_uid));
  }
  // The runtime gives what it mounts there the mode of the folder beneath.
  RINGFENCE_TRY(os::ChangeMode(folder + "/tmp", 01777));
  RINGFENCE_TRY(os::ChangeMode(folder + "/home/job", 0700));
  for (const TextFile& file : kEtcFiles) {
    RINGFENCE_TRY(WriteOwned(folder + file.path, file.text, owner_uid));
  }
  return WriteOwned(folder + kBoxInitPath, "", owner_uid);  // init is mounted over it
}

Result<std::vector<BoxFile>> BuildBoxRoot(const std::string& folder, const std::string& host_root,
                                          unsigned owner_uid) {
  const std::string host = host_root == "/" ? "" : host_root;
  RINGFENCE_TRY(BuildSkeleton(folder, owner_uid));
  for (const char* path : kHostFolders) {
    RINGFENCE_TRY(MakeOwned(folder + path, 0755, owner_uid));
  }

  std::vector<BoxFile> files = {{host + "/usr", "/usr"}};
  for (const char* name : kMergedFolders) {
    const std::string path = host + "/" + name;
    if (os::ReadLink(path).has_value()) {
      RINGFENCE_TRY(os::MakeLink(std::string("usr/") + name, folder + "/" + name));
    } else if (os::IsDirectory(path)) {
      files.push_back({path, std::string("/") + name});  // a system that has not merged /usr
      RINGFENCE_TRY(MakeOwned(folder + "/" + name, 0755, owner_uid));
    }
  }
  for (const char* path : kHostEtc) {
    if (!os::Exists(host + path)) {
      continue;
    }
    files.push_back({host + path, path});
    if (os::IsDirectory(host + path)) {
      RINGFENCE_TRY(MakeOwned(folder + path, 0755, owner_uid));
    } else {
      RINGFENCE_TRY(WriteOwned(folder + path, "", owner_uid));
    }
  }
  return files;
}

}  // namespace ringfence::isolate

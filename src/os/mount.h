#pragma once

// Mounts, namespaces and device nodes.

#include <cstdint>
#include <string>

#include "base/result.h"

namespace ringfence::os {

struct Namespaces {
  bool mount = false;
  bool network = false;
  bool ipc = false;
  bool uts = false;
};
// Moves the calling process (one thread) into new ones. With `mount`, nothing mounted from then on
// is seen outside, and nothing mounted outside is seen here.
Status EnterNewNamespaces(const Namespaces& wanted);

struct TmpfsOptions {
  std::uint64_t bytes_max = 0;
  unsigned mode = 0755;
  bool devices = false;   // device nodes on it work
  bool programs = false;  // programs on it can be executed
};
Status MountTmpfs(const std::string& path, const TmpfsOptions& options);

struct BindOptions {
  bool read_only = false;
  bool recursive = false;
  bool devices = false;
};
// Never honours set-user-id bits.
Status BindMount(const std::string& from, const std::string& to, const BindOptions& options);
Status UnmountIfMounted(const std::string& path);  // lazily, all that is stacked there

struct NodeOptions {
  bool block = false;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  unsigned mode = 0600;
  unsigned uid = 0;
  unsigned gid = 0;
};
Status MakeNode(const std::string& path, const NodeOptions& options);
Status MakeLink(const std::string& target, const std::string& path);  // symbolic
// `path` is a symbolic link, and where it points; kNotFound otherwise.
Result<std::string> ReadLink(const std::string& path);

// Tries it in a short-lived process.
Status TryNamespaces();
Status TryUserNamespace();

}  // namespace ringfence::os

#pragma once

// What this kernel can do, found out by asking it.

#include <string>

namespace ringfence::os {

std::string KernelRelease();  // "6.1.0-28-amd64"

bool HasPidfd();                              // pidfd_open, pidfd_send_signal: Linux 5.3
bool HasCloseRange();                         // with CLOSE_RANGE_CLOEXEC: Linux 5.11
bool HasOpenat2();                            // Linux 5.6
bool HasFileSystem(const std::string& name);  // in /proc/filesystems
// A BPF program that decides about devices can be loaded: how cgroup v2 enforces them. As root.
bool CanLoadDeviceProgram();

}  // namespace ringfence::os

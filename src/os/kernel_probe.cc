#include "os/kernel_probe.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sstream>

#include "os/file.h"

namespace ringfence::os {
namespace {

constexpr std::size_t kListBytesMax = 64 * 1024;

}  // namespace

std::string KernelRelease() {
  utsname names{};
  return uname(&names) == 0 ? names.release : "unknown";
}

bool HasPidfd() {
  const UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  return fd.valid() && syscall(SYS_pidfd_send_signal, fd.get(), 0, nullptr, 0) == 0;
}

bool HasCloseRange() {
  constexpr unsigned kCloexec = 4;
  // A range in which nothing is open.
  return syscall(SYS_close_range, ~0U - 1, ~0U, kCloexec) == 0;
}

bool HasOpenat2() {
  struct {
    std::uint64_t flags = O_PATH | O_CLOEXEC;
    std::uint64_t mode = 0;
    std::uint64_t resolve = 0;
  } how;
  const UniqueFd fd(static_cast<int>(syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how)));
  return fd.valid();
}

bool HasFileSystem(const std::string& name) {
  const auto text = ReadText("/proc/filesystems", kListBytesMax);
  std::istringstream words(text.has_value() ? *text : "");
  for (std::string word; words >> word;) {
    if (word == name) {
      return true;
    }
  }
  return false;
}

bool CanLoadDeviceProgram() {
  // "return 1": everything is allowed. It is loaded, attached to nothing, and dropped.
  std::array<bpf_insn, 2> program{};
  program[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  program[0].imm = 1;
  program[1].code = BPF_JMP | BPF_EXIT;
  static constexpr char kLicence[] = "GPL";
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insn_cnt = program.size();
  attributes.insns = reinterpret_cast<std::uint64_t>(program.data());
  attributes.license = reinterpret_cast<std::uint64_t>(kLicence);
  const UniqueFd fd(
      static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes)));
  return fd.valid();
}

}  // namespace ringfence::os

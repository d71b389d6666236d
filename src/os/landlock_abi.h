#pragma once

// The kernel's Landlock interface, written out here because the C library's headers of a Debian 12
// know only its first versions. Header only and free of the C++ library's heavier parts, so that
// the static init of a box can use it too.
//
// Rights are asked for as the running kernel knows them: what a kernel's ABI lacks is left out,
// and LandlockAbi() < 1 means that there is no Landlock at all.

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace ringfence::os::landlock {

inline constexpr std::uint64_t kExecute = 1ULL << 0U;
inline constexpr std::uint64_t kWriteFile = 1ULL << 1U;
inline constexpr std::uint64_t kReadFile = 1ULL << 2U;
inline constexpr std::uint64_t kReadDir = 1ULL << 3U;
inline constexpr std::uint64_t kRemoveDir = 1ULL << 4U;
inline constexpr std::uint64_t kRemoveFile = 1ULL << 5U;
inline constexpr std::uint64_t kMakeChar = 1ULL << 6U;
inline constexpr std::uint64_t kMakeDir = 1ULL << 7U;
inline constexpr std::uint64_t kMakeReg = 1ULL << 8U;
inline constexpr std::uint64_t kMakeSock = 1ULL << 9U;
inline constexpr std::uint64_t kMakeFifo = 1ULL << 10U;
inline constexpr std::uint64_t kMakeBlock = 1ULL << 11U;
inline constexpr std::uint64_t kMakeSym = 1ULL << 12U;
inline constexpr std::uint64_t kRefer = 1ULL << 13U;     // ABI 2
inline constexpr std::uint64_t kTruncate = 1ULL << 14U;  // ABI 3
inline constexpr std::uint64_t kIoctlDev = 1ULL << 15U;  // ABI 5

inline constexpr std::uint64_t kBindTcp = 1ULL << 0U;     // ABI 4
inline constexpr std::uint64_t kConnectTcp = 1ULL << 1U;  // ABI 4

inline constexpr std::uint64_t kScopeAbstractSocket = 1ULL << 0U;  // ABI 6
inline constexpr std::uint64_t kScopeSignal = 1ULL << 1U;          // ABI 6

// What each kind of place may be used for. Device files are never made by anyone inside.
inline constexpr std::uint64_t kReadRights = kReadFile | kReadDir;
inline constexpr std::uint64_t kReadExecRights = kReadRights | kExecute;
inline constexpr std::uint64_t kWriteRights = kReadExecRights | kWriteFile | kRemoveDir |
                                              kRemoveFile | kMakeDir | kMakeReg | kMakeSock |
                                              kMakeFifo | kMakeSym | kRefer | kTruncate;
inline constexpr std::uint64_t kDeviceRights = kReadFile | kWriteFile | kIoctlDev | kTruncate;
// The rights that mean something for a file that is not a folder.
inline constexpr std::uint64_t kFileOnlyRights =
    kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev;

struct RulesetAttr {
  std::uint64_t handled_access_fs;
  std::uint64_t handled_access_net;
  std::uint64_t scoped;
};
struct PathBeneathAttr {
  std::uint64_t allowed_access;
  std::int32_t parent_fd;
} __attribute__((packed));
struct NetPortAttr {
  std::uint64_t allowed_access;
  std::uint64_t port;
};

inline constexpr int kRulePathBeneath = 1;
inline constexpr int kRuleNetPort = 2;

inline constexpr long kSysCreateRuleset = 444;
inline constexpr long kSysAddRule = 445;
inline constexpr long kSysRestrictSelf = 446;

// 0 or less: none.
inline int Abi() {
  constexpr unsigned kVersionQuery = 1;
  return static_cast<int>(syscall(kSysCreateRuleset, nullptr, 0, kVersionQuery));
}

inline std::uint64_t FsRightsOf(int abi) {
  std::uint64_t rights = (kMakeSym << 1U) - 1;
  rights |= abi >= 2 ? kRefer : 0;
  rights |= abi >= 3 ? kTruncate : 0;
  rights |= abi >= 5 ? kIoctlDev : 0;
  return rights;
}
inline std::uint64_t NetRightsOf(int abi) { return abi >= 4 ? kBindTcp | kConnectTcp : 0; }
inline std::uint64_t ScopesOf(int abi) {
  return abi >= 6 ? kScopeAbstractSocket | kScopeSignal : 0;
}

// A descriptor, or -1 with errno.
inline int CreateRuleset(int abi) {
  const RulesetAttr attr{FsRightsOf(abi), NetRightsOf(abi), ScopesOf(abi)};
  // An older kernel refuses a longer structure than it knows unless the rest is zero.
  return static_cast<int>(syscall(kSysCreateRuleset, &attr, sizeof attr, 0));
}

// `rights` are cut to what the ABI and the kind of file know. 0, or -1 with errno.
inline int AllowFd(int ruleset, int abi, int path_fd, bool is_folder, std::uint64_t rights) {
  rights &= FsRightsOf(abi) & (is_folder ? ~0ULL : kFileOnlyRights);
  const PathBeneathAttr attr{rights, path_fd};
  return static_cast<int>(syscall(kSysAddRule, ruleset, kRulePathBeneath, &attr, 0));
}

inline int AllowPort(int ruleset, std::uint64_t rights, std::uint16_t port) {
  const NetPortAttr attr{rights, port};
  return static_cast<int>(syscall(kSysAddRule, ruleset, kRuleNetPort, &attr, 0));
}

// From here on the calling thread and what it starts are bound. Needs no_new_privs.
inline int RestrictSelf(int ruleset) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return -1;
  }
  return static_cast<int>(syscall(kSysRestrictSelf, ruleset, 0));
}

}  // namespace ringfence::os::landlock

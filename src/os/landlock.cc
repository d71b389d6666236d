#include "os/landlock.h"

#include <sys/stat.h>

#include <cerrno>

#include "os/error.h"
#include "os/landlock_abi.h"
#include "os/unique_fd.h"

namespace ringfence::os {
namespace {

std::uint64_t RightsOf(PathUse use) {
  switch (use) {
    case PathUse::kRead:
      return landlock::kReadRights;
    case PathUse::kReadExec:
      return landlock::kReadExecRights;
    case PathUse::kReadWrite:
      return landlock::kWriteRights;
    case PathUse::kDevice:
      return landlock::kDeviceRights;
  }
  return 0;
}

Status Allow(int ruleset, int abi, const LandlockPath& rule) {
  const UniqueFd fd(open(rule.path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.valid()) {
    if (!rule.must_exist && (errno == ENOENT || errno == ENOTDIR)) {
      return {};
    }
    return ErrnoError("landlock: open " + rule.path);
  }
  struct stat facts{};
  if (fstat(fd.get(), &facts) != 0) {
    return ErrnoError("landlock: look at " + rule.path);
  }
  if (landlock::AllowFd(ruleset, abi, fd.get(), S_ISDIR(facts.st_mode), RightsOf(rule.use)) != 0) {
    return ErrnoError("landlock: allow " + rule.path);
  }
  return {};
}

}  // namespace

int LandlockAbi() {
  const int abi = landlock::Abi();
  return abi < 0 ? 0 : abi;
}

Status EnterLandlock(const LandlockRules& rules) {
  const int abi = LandlockAbi();
  if (abi < 1) {
    return Error{Code::kFailedPrecondition, "this kernel has no Landlock",
                 "use Linux 5.13 or later with 'landlock' in its lsm= list"};
  }
  const landlock::RulesetAttr attr{landlock::FsRightsOf(abi),
                                   rules.any_tcp ? 0 : landlock::NetRightsOf(abi),
                                   rules.scoped ? landlock::ScopesOf(abi) : 0};
  const UniqueFd ruleset(
      static_cast<int>(syscall(landlock::kSysCreateRuleset, &attr, sizeof attr, 0)));
  if (!ruleset.valid()) {
    return ErrnoError("landlock: create ruleset");
  }
  for (const LandlockPath& rule : rules.paths) {
    RINGFENCE_TRY(Allow(ruleset.get(), abi, rule));
  }
  if (abi >= 4 && !rules.any_tcp) {
    for (const std::uint16_t port : rules.connect_ports) {
      if (landlock::AllowPort(ruleset.get(), landlock::kConnectTcp, port) != 0) {
        return ErrnoError("landlock: allow port " + std::to_string(port));
      }
    }
  }
  if (landlock::RestrictSelf(ruleset.get()) != 0) {
    return ErrnoError("landlock: restrict");
  }
  return {};
}

}  // namespace ringfence::os

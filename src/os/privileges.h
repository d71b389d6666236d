#pragma once

// What the calling process may do, and giving it up. Every function here fails loudly: a right
// that could not be dropped is an error, never a warning.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ringfence::os {

// Real, effective and saved; no supplementary groups. All capabilities are gone afterwards, from
// the bounding set too, and no_new_privs is set.
Status BecomeUser(unsigned uid, unsigned gid);
// The same end state without a change of user.
Status DropAllPrivileges();
// Gives up every capability that is not named ("CAP_SYS_ADMIN"), also from the bounding set.
Status KeepCapabilities(const std::vector<std::string>& names);
// Whether this process, or what it starts, could hold it: it is in the bounding set.
bool MayHoldCapability(const std::string& name);

enum class Limit { kCoreBytes, kOpenFiles, kProcesses, kLockedBytes };
Status SetLimit(Limit limit, std::uint64_t most);
// The most that this process could set.
std::uint64_t HardLimit(Limit limit);

Status SetDumpable(bool on);          // false: nobody of the same user can look into this process
Status AdoptOrphans();                // become the reaper of what children leave behind
Status DieWithParent();               // SIGKILL when the thread that started us ends
void SetFileModeMask(unsigned mask);  // umask

// The kernel's id of this boot.
Result<std::string> BootId();

}  // namespace ringfence::os

#pragma once

// Who this process is.

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace ringfence::os {

bool IsRoot();
unsigned UserId();
int ProcessId();
unsigned GroupId();
std::string HostName();  // lower case, cut at the first dot; "localhost" when there is none

struct Account {
  unsigned uid = 0;
  unsigned gid = 0;
};
std::optional<Account> FindAccount(const std::string& name);

// Absolute path of the running program.
Result<std::string> OwnPath();

std::optional<std::string> Environment(const char* name);

}  // namespace ringfence::os

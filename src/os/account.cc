// Apart from identity.cc, as programs that are linked statically cannot look accounts up.

#include <pwd.h>

#include <vector>

#include "os/identity.h"

namespace ringfence::os {

std::optional<Account> FindAccount(const std::string& name) {
  std::vector<char> buffer(16 * 1024);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return std::nullopt;
  }
  return Account{found->pw_uid, found->pw_gid};
}

}  // namespace ringfence::os
